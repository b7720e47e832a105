// Is a dump written when a signal asks for it?
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "bus/bus.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/job.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/pickle_reader.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/on_signal.hpp"

namespace ringmain::tests {
namespace {

namespace fs = std::filesystem;
namespace loopback = collective::loopback;
using collective::FlightRecorderHook;

class DumpsOnSignalTest : public OnSignalTest {
 protected:
  DumpsOnSignalTest() {
    std::string made = (fs::temp_directory_path() / "on-signal-XXXXXX").string();
    folder_ = ::mkdtemp(made.data());
    ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder_ + "/rank_").c_str(), 1);
  }
  ~DumpsOnSignalTest() override {
    ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
    fs::remove_all(folder_);
  }
  void reduce(int times) {
    for (int i = 0; i < times; ++i) {
      std::array<float, 12> values{};
      ASSERT_TRUE(alone_.all_reduce({.tensor = loopback::Values(values)}));
    }
  }
  [[nodiscard]] std::string file(int rank) const {
    return folder_ + "/rank_" + std::to_string(rank);
  }
  /// How many operations the file has, which is whole if it is there.
  static std::size_t entries(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    auto read = flight::read_document(std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    flight::Kept kept;
    auto typed = read ? flight::read_dump(read.value(), kept) : Result<flight::Dump>(read.error());
    EXPECT_TRUE(typed) << (typed ? "" : typed.error().message);
    return typed ? typed.value().entries.size() : 0;
  }
  static void await_file(const std::string& path) {
    while (!fs::exists(path)) std::this_thread::yield();
  }

  std::string folder_;
  Bus bus_;
  loopback::World world_ = loopback::World::make(bus_, {.name = "alone", .ranks = 1}).value();
  loopback::Rank alone_ = world_.rank(0);
};

TEST_F(DumpsOnSignalTest, AFileIsThereWholeForEachRecorderThatWantsIt) {
  FlightRecorderHook first(
      {.max_entries = 10, .isolated = true, .rank = 3, .dumps_on_signal = SIGUSR2});
  FlightRecorderHook second(
      {.max_entries = 10, .isolated = true, .rank = 4, .dumps_on_signal = SIGUSR2});
  const FlightRecorderHook other({.max_entries = 10, .isolated = true, .rank = 5});
  ASSERT_TRUE(first.register_with_comm(alone_.comm()));
  reduce(3);
  ::kill(::getpid(), SIGUSR2);
  await_file(file(4));
  EXPECT_EQ(entries(file(3)), 3u);
  EXPECT_EQ(entries(file(4)), 0u);
  EXPECT_FALSE(fs::exists(file(5)));
  EXPECT_EQ(first.complaint(), "");
}

TEST_F(DumpsOnSignalTest, WithoutAWordForItNoHandlerIsTouched) {
  std::array<Action, 65> before{};
  for (int number = 1; number < 65; ++number)
    before[static_cast<std::size_t>(number)] = current(number);
  FlightRecorderHook recorder({.max_entries = 10,
                               .isolated = true,
                               .rank = 3,
                               .dumps_on_abort = true,
                               .dumps_on_failure = true});
  ASSERT_TRUE(recorder.register_with_comm(alone_.comm()));
  for (int number = 1; number < 65; ++number) {
    EXPECT_EQ(current(number).sa_sigaction, before[static_cast<std::size_t>(number)].sa_sigaction)
        << number;
  }
}

TEST_F(DumpsOnSignalTest, WhatCannotBeIsRefusedAndWhatCouldNotBeWrittenIsSaid) {
  const auto make = [](int number, std::int64_t rank) {
    const FlightRecorderHook recorder({.isolated = true, .rank = rank, .dumps_on_signal = number});
  };
  EXPECT_THROW(make(SIGUSR2, -1), std::invalid_argument);
  EXPECT_THROW(make(SIGKILL, 3), std::invalid_argument);
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", "/proc/no/rank_", 1);
  FlightRecorderHook recorder({.isolated = true, .rank = 3, .dumps_on_signal = SIGUSR2});
  ::raise(SIGUSR2);
  while (recorder.complaint().empty()) std::this_thread::yield();
  EXPECT_NE(recorder.complaint().find("/proc/no"), std::string::npos) << recorder.complaint();
}

TEST_F(DumpsOnSignalTest, UnderAHailOfSignalsOperationsGoOnAndTheFileIsWhole) {
  FlightRecorderHook recorder(
      {.max_entries = 50, .isolated = true, .rank = 3, .dumps_on_signal = SIGUSR2});
  ASSERT_TRUE(recorder.register_with_comm(alone_.comm()));
  std::atomic<bool> over{false};
  const pthread_t issues = ::pthread_self();
  std::thread hail([&] {
    while (!over) ::pthread_kill(issues, SIGUSR2);
  });
  reduce(200);
  await_file(file(3));
  reduce(50);
  over = true;
  hail.join();
  EXPECT_LE(entries(file(3)), 50u);
  fs::remove(file(3));
  ::raise(SIGUSR2);
  await_file(file(3));
  EXPECT_EQ(entries(file(3)), 50u);
}

}  // namespace
}  // namespace ringmain::tests
