// How far an operation came, and what a recorder says of it: states, time-outs, one dump for many
// calls.
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/job.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/single_flight.hpp"

#include "tests/adapters/collective/communicator_parts.hpp"

namespace ringmain::tests {
namespace {

using collective::FlightRecorderHook;
using collective::How;
using collective::detail::SingleFlight;

flight::Dump read_of(std::string bytes) {
  auto document = flight::read_document(std::move(bytes));
  EXPECT_TRUE(document) << (document ? "" : document.error().message);
  flight::Kept kept;
  auto typed = flight::read_dump(document.value(), kept);
  EXPECT_TRUE(typed) << (typed ? "" : typed.error().message);
  return std::move(typed).value();
}
std::string bytes_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class FlightRecorderStatesTest : public OnCommunicator {
 protected:
  FlightRecorderStatesTest() { EXPECT_TRUE(recorder_.register_with_comm(comm_)); }
  FlightRecorderHook recorder_{{.max_entries = 10, .isolated = true}};
};

TEST_F(FlightRecorderStatesTest, WhatStartedIsSaidWithItsTimeAndInTheGroupsStatus) {
  const auto waits = issue(all_reduced());
  const auto runs = issue(all_reduced());
  for (const bool pickle : {false, true}) {
    const auto dump = read_of(pickle ? recorder_.dump_pickle() : recorder_.dump_json());
    ASSERT_EQ(dump.status.size(), 1u);
    EXPECT_EQ(dump.status[0].started, -1);
    EXPECT_EQ(dump.entries[0].state, flight::EntryState::scheduled);
    EXPECT_EQ(dump.entries[0].started_ns, 0);
  }
  ASSERT_TRUE(runs.started());
  for (const bool pickle : {false, true}) {
    const auto dump = read_of(pickle ? recorder_.dump_pickle() : recorder_.dump_json());
    EXPECT_EQ(dump.status[0].enqueued, 2);
    EXPECT_EQ(dump.status[0].started, 2);
    EXPECT_EQ(dump.status[0].completed, -1);
    EXPECT_EQ(dump.entries[0].state, flight::EntryState::scheduled);
    EXPECT_EQ(dump.entries[1].state, flight::EntryState::started);
    EXPECT_GE(dump.entries[1].started_ns, dump.entries[1].created_ns);
    EXPECT_FALSE(dump.entries[1].retired);
  }
  EXPECT_NE(recorder_.dump_json().find("\"last_started_collective\":\"2\""), std::string::npos);
  ASSERT_TRUE(runs.completed());
  const auto dump = read_of(recorder_.dump_json());
  EXPECT_EQ(dump.entries[1].state, flight::EntryState::completed);
  EXPECT_GT(dump.entries[1].started_ns, 0);
  EXPECT_EQ(dump.status[0].completed, 2);
}

// Who hears that it is issued may end it before the recorder, a hook, is asked.
TEST_F(FlightRecorderStatesTest, WhatEndsAsSoonAsItIsHeardOfIsNotLeftOpen) {
  const auto ledger = collective::Ledger::of(bus_).value();
  int issued = 0;
  const Subscription ends =
      bus_.channel<collective::Issued>().subscribe_inline([&](const collective::Issued& said) {
        EXPECT_TRUE(ledger->started(said.op_id));
        ++issued;
        EXPECT_EQ(issued == 1 && ledger->completed(said.op_id), issued == 1);
        EXPECT_EQ(issued == 2 && ledger->failed(said.op_id, {}), issued == 2);
      });
  for (int i = 0; i < 3; ++i) (void)issue(all_reduced());
  const auto dump = read_of(recorder_.dump_json());
  ASSERT_EQ(dump.entries.size(), 3u);
  EXPECT_EQ(dump.entries[0].state, flight::EntryState::completed);
  EXPECT_TRUE(dump.entries[0].retired);
  EXPECT_EQ(dump.status[0].completed, 1);
  EXPECT_NE(dump.entries[1].state, flight::EntryState::completed);
  EXPECT_TRUE(dump.entries[1].retired);
  EXPECT_EQ(dump.entries[2].state, flight::EntryState::started);
  EXPECT_FALSE(dump.entries[2].retired);
}

TEST_F(FlightRecorderStatesTest, ATimeOutThatNobodySaidIsTheUsualOne) {
  (void)issue(all_reduced());
  comm_.set_timeout(std::chrono::milliseconds(1500));
  (void)issue(all_reduced());
  comm_.set_timeout(std::chrono::microseconds(1));
  (void)issue(all_reduced());
  const auto dump = read_of(recorder_.dump_json());
  EXPECT_EQ(dump.entries[0].timeout_ms, 600'000);
  EXPECT_EQ(dump.entries[1].timeout_ms, 1500);
  EXPECT_EQ(dump.entries[2].timeout_ms, 1);  // more than none
}

TEST_F(FlightRecorderStatesTest, AfterWhatCompletedNothingIsLeftWithoutIt) {
  ASSERT_TRUE(issue(all_reduced()).completed());
  ASSERT_TRUE(issue(all_reduced()).completed());
  EXPECT_EQ(recorder_.dump_json(false).find("\"entries\""), std::string::npos);
  EXPECT_EQ(read_of(recorder_.dump_pickle(false)).entries.size(), 0u);
  EXPECT_EQ(read_of(recorder_.dump_pickle(true)).entries.size(), 2u);
}

TEST_F(FlightRecorderStatesTest, WhatTimesOutIsDumpedOnceAndWhatIsCancelledIsNot) {
  std::string folder = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder + "/rank_").c_str(), 1);
  FlightRecorderHook dumps(
      {.max_entries = 10, .isolated = true, .rank = 6, .dumps_on_failure = true});
  ASSERT_TRUE(dumps.register_with_comm(comm_));
  const auto end_as = [this](How how) {
    collective::Failed said;
    said.how = how;
    ASSERT_TRUE(issue(all_reduced()).failed(said));
  };
  end_as(How::cancelled);
  EXPECT_FALSE(std::filesystem::exists(folder + "/rank_6"));
  end_as(How::timed_out);
  const auto dump = read_of(bytes_of(folder + "/rank_6"));
  ASSERT_EQ(dump.entries.size(), 2u);
  EXPECT_TRUE(dump.entries[1].retired);
  EXPECT_NE(dump.entries[1].state, flight::EntryState::completed);
  ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
  std::filesystem::remove_all(folder);
}

TEST(SingleFlightTest, CallsForOneThingAtOneTimeAreDoneOnce) {
  SingleFlight<std::string, int> flight;
  std::atomic<int> runs{0};
  std::atomic<bool> go_on{false};
  const auto slow = [&] {
    ++runs;
    while (!go_on) std::this_thread::yield();
    return 7;
  };
  std::thread first([&] { EXPECT_EQ(flight.run("a", slow), 7); });
  while (runs == 0) std::this_thread::yield();
  std::vector<std::thread> others;
  for (int i = 0; i < 5; ++i)
    others.emplace_back([&] { EXPECT_EQ(flight.run("a", [] { return 8; }), 7); });
  while (flight.waiting() < 5) std::this_thread::yield();
  std::thread another([&] { EXPECT_EQ(flight.run("b", [] { return 9; }), 9); });
  go_on = true;
  first.join();
  for (std::thread& other : others) other.join();
  another.join();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(flight.run("a", [] { return 10; }), 10);  // which comes later
}

TEST(SingleFlightTest, WhatIsThrownGoesToItsOwnCallerAndTheOthersRunTheirs) {
  SingleFlight<std::string, int> flight;
  std::atomic<bool> there{false}, go_on{false};
  std::thread first([&] {
    const auto throws = [&]() -> int {
      there = true;
      while (!go_on) std::this_thread::yield();
      throw std::runtime_error("no memory");
    };
    EXPECT_THROW((void)flight.run("a", throws), std::runtime_error);
  });
  while (!there) std::this_thread::yield();
  std::thread second([&] { EXPECT_EQ(flight.run("a", [] { return 8; }), 8); });
  while (flight.waiting() < 1) std::this_thread::yield();
  go_on = true;
  first.join();
  second.join();
}

}  // namespace
}  // namespace ringmain::tests
