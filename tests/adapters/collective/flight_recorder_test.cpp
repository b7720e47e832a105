#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/flight/dump.hpp"
#include "adapters/flight/job.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/pickle_reader.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/loopback.hpp"

namespace ringmain::tests {
namespace {

namespace loopback = collective::loopback;

using collective::FlightRecorderHook;
using loopback::Rank;
using loopback::Values;
using loopback::World;

/// A dump as the analysis reads it.
struct Read {
  flight::Kept kept;
  flight::Dump dump;
  flight::Document document;

  explicit Read(std::string bytes) {
    auto read = flight::read_document(std::move(bytes));
    EXPECT_TRUE(read) << (read ? "" : read.error().message);
    document = std::move(read).value();
    auto typed = flight::read_dump(document, kept);
    EXPECT_TRUE(typed) << (typed ? "" : typed.error().message);
    dump = std::move(typed).value();
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const flight::Entry& entry : dump.entries) all.emplace_back(kept.texts.of(entry.name));
    return all;
  }
};

class FlightRecorderTest : public testing::Test {
 protected:
  FlightRecorderTest() {
    std::string made = (std::filesystem::temp_directory_path() / "recorder-XXXXXX").string();
    folder = ::mkdtemp(made.data());
    ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", prefix().c_str(), 1);
  }
  ~FlightRecorderTest() override {
    ::unsetenv("TORCHCOMM_FR_DUMP_TEMP_FILE");
    std::filesystem::remove_all(folder);
  }
  [[nodiscard]] std::string prefix() const { return folder + "/made/rank_"; }
  [[nodiscard]] static FlightRecorderHook make(std::size_t entries) {
    return FlightRecorderHook({.max_entries = entries, .isolated = true});
  }

  [[nodiscard]] Read dumped(int rank) const {
    std::ifstream file(prefix() + std::to_string(rank), std::ios::binary);
    return Read(std::string(std::istreambuf_iterator<char>(file), {}));
  }

  void reduce(int times) {
    for (int i = 0; i < times; ++i) {
      std::array<float, 12> values{};
      ASSERT_TRUE(alone.all_reduce({.tensor = Values(values)}));
    }
  }

  std::string folder;
  Bus bus;
  World world = World::make(bus, {.name = "alone", .ranks = 1}).value();
  Rank alone = world.rank(0);
};

TEST_F(FlightRecorderTest, ItIsEnabledByTheFirstRegistration) {
  auto recorder = make(10);
  EXPECT_FALSE(recorder.is_enabled());
  EXPECT_EQ(recorder.size(), 0u);
  EXPECT_TRUE(recorder.register_with_comm(alone.comm()).value());
  EXPECT_FALSE(recorder.register_with_comm(alone.comm()).value());
  EXPECT_TRUE(recorder.is_enabled());
  const std::string empty = recorder.dump_json();
  EXPECT_NE(empty.find("\"version\":\"2.10\""), empty.npos) << empty;
  EXPECT_NE(empty.find("\"pg_config\""), empty.npos);
  EXPECT_NE(empty.find("\"pg_status\""), empty.npos);
  EXPECT_EQ(empty.find("\"entries\""), empty.npos);
}

TEST_F(FlightRecorderTest, SizeCountsWhatItHoldsSinceTheLastReset) {
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  for (const int more : {2, 3, 4}) {
    reduce(more);
    EXPECT_EQ(recorder.size(), static_cast<std::size_t>(more));
    EXPECT_EQ(Read(recorder.dump_json()).dump.entries.size(), static_cast<std::size_t>(more));
    recorder.reset();
    EXPECT_EQ(recorder.size(), 0u);
  }
  for (const int after : {10, 3}) {  // a ring that is exactly full when it is reset
    reduce(10);
    EXPECT_EQ(recorder.size(), 10u);
    recorder.reset();
    reduce(after);
    const std::vector<std::string> all(static_cast<std::size_t>(after), "all_reduce");
    EXPECT_EQ(Read(recorder.dump_json()).names(), all);
    recorder.reset();
  }
  reduce(25);
  EXPECT_EQ(recorder.size(), 10u);
  const Read read(recorder.dump_json());
  EXPECT_EQ(read.dump.entries.front().record_id, 15);
  EXPECT_NE(
      recorder.dump_json().find("\"dropped_entries\":\"15\",\"whole_from_collective\":\"58\""),
      std::string::npos)
      << recorder.dump_json();
}

TEST_F(FlightRecorderTest, AnEntrySaysWhatTheFormatHas) {
  auto recorder = make(10);
  alone.set_timeout(std::chrono::seconds(7));
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  std::array<std::int64_t, 30> longs{};
  const std::int64_t sizes[] = {5, 6};
  ASSERT_TRUE(
      alone.broadcast({.tensor = {longs.data(), sizes, Name("int64"), sizeof longs}, .root = 0}));
  for (const bool pickle : {false, true}) {
    const Read read(pickle ? recorder.dump_pickle() : recorder.dump_json());
    ASSERT_EQ(read.dump.entries.size(), 1u);
    const flight::Entry& entry = read.dump.entries.front();
    EXPECT_EQ(read.kept.texts.of(entry.name), "broadcast");
    EXPECT_EQ(read.kept.texts.of(entry.backend), "nccl");
    EXPECT_EQ(read.kept.texts.of(entry.inputs.sizes), "[[5,6]]");
    EXPECT_EQ(read.kept.texts.of(entry.inputs.types), "Long");
    EXPECT_EQ(entry.timeout_ms, 7000);
    EXPECT_EQ(entry.collective_seq, 1);
    EXPECT_EQ(entry.state, flight::EntryState::completed);
    EXPECT_TRUE(entry.retired);
    EXPECT_GT(entry.duration_ms, 0);
    EXPECT_GT(entry.created_ns, 0);
    EXPECT_GE(entry.completed_ns, entry.created_ns);
    ASSERT_EQ(read.dump.status.size(), 1u);
    EXPECT_EQ(read.dump.status[0].enqueued, 1);
    EXPECT_EQ(read.dump.status[0].completed, 1);
  }
}

TEST_F(FlightRecorderTest, WithoutWhatCompletedOnlyTheOpenOnesAreThere) {
  World pair = World::make(bus, {.name = "pair", .ranks = 2}).value();
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(pair.rank(0).comm()));
  pair.run([](Rank& rank) {
    std::array<float, 4> values{};
    ASSERT_TRUE(rank.all_reduce({.tensor = Values(values)}));
  });
  std::array<float, 4> values{};
  const auto hangs = pair.rank(0).all_reduce({.tensor = Values(values), .async_op = true});
  EXPECT_EQ(Read(recorder.dump_pickle(true)).dump.entries.size(), 2u);
  const Read open(recorder.dump_json(false));
  ASSERT_EQ(open.dump.entries.size(), 1u);
  EXPECT_FALSE(open.dump.entries[0].retired);
  EXPECT_EQ(open.dump.entries[0].collective_seq, 2);
  pair.rank(0).comm().abort("the test is over");
  // Given up, and not completed: it is what the next one looks for.
  const Read over(recorder.dump_json(false));
  ASSERT_EQ(over.dump.entries.size(), 1u);
  EXPECT_TRUE(over.dump.entries[0].retired);
  EXPECT_NE(over.dump.entries[0].state, flight::EntryState::completed);
  EXPECT_FALSE(hangs);
}

TEST_F(FlightRecorderTest, PartsOfASplitAreRecordedAndPickledWithoutTheSplit) {
  auto recorder = make(20);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  const int first[] = {0};
  Rank child = alone.split({.ranks = first, .name = "child"}).value();
  Rank grandchild = child.split({.ranks = first, .name = "grandchild"}).value();
  for (const Rank& rank : {alone, child, grandchild}) {
    std::array<float, 4> values{};
    ASSERT_TRUE(rank.all_reduce({.tensor = Values(values)}));
  }
  const Read json(recorder.dump_json());
  EXPECT_EQ(json.names(),
            (std::vector<std::string>{"split", "split", "all_reduce", "all_reduce", "all_reduce"}));
  EXPECT_EQ(json.dump.groups.size(), 3u);
  EXPECT_EQ(Read(recorder.dump_pickle()).names(),
            (std::vector<std::string>{"all_reduce", "all_reduce", "all_reduce"}));
}

TEST_F(FlightRecorderTest, ABatchIsItsMembersAndTheEntryThatClosesIt) {
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  std::array<float, 3> out{}, in{};
  const Values sent(out), received(in);  // which describe their tensors
  const loopback::OneToOne both[] = {collective::Send{sent, 0}, collective::Recv{{received, 0}}};
  ASSERT_TRUE(alone.batch_op_issue(both));
  const Read read(recorder.dump_json());
  EXPECT_EQ(read.names(), (std::vector<std::string>{"send", "recv", "coalesced"}));
  for (const flight::Entry& entry : read.dump.entries) {
    EXPECT_TRUE(entry.is_p2p);
    EXPECT_EQ(entry.p2p_seq, 1);
    EXPECT_EQ(entry.op_id, read.dump.entries[0].op_id);
    EXPECT_EQ(entry.state, flight::EntryState::completed);
  }
  EXPECT_EQ(read.dump.entries[0].from, 0);
  EXPECT_EQ(read.dump.entries[1].to, 0);
}

TEST_F(FlightRecorderTest, ABatchOfMoreMembersThanItHoldsLeavesTheLastOnes) {
  std::array<float, 3> out{}, in{};
  const Values sent(out), received(in);
  const loopback::OneToOne both[] = {collective::Send{sent, 0}, collective::Recv{{received, 0}}};
  for (const std::size_t entries : {1u, 2u}) {
    auto recorder = make(entries);
    ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
    ASSERT_TRUE(alone.batch_op_issue(both));
    EXPECT_EQ(recorder.size(), entries);
    const Read read(recorder.dump_json());
    EXPECT_EQ(read.names().back(), "coalesced");
    for (const flight::Entry& entry : read.dump.entries) EXPECT_TRUE(entry.retired);
    ASSERT_TRUE(alone.batch_op_issue(both));  // the one before left nothing behind
    EXPECT_TRUE(Read(recorder.dump_json()).dump.entries.back().retired);
  }
}

TEST_F(FlightRecorderTest, WhatAnotherHookRefusesIsNotThere) {
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  auto guard = alone.comm().pre_hook(
      [](const collective::PreHookArgs&) { return Verdict::veto(Name("no")); });
  std::array<float, 4> values{};
  EXPECT_FALSE(alone.all_reduce({.tensor = Values(values)}));
  (void)guard.value().reset();
  reduce(1);
  const Read read(recorder.dump_json());
  ASSERT_EQ(read.dump.entries.size(), 1u);
  EXPECT_EQ(read.dump.entries[0].collective_seq, 2);
}

TEST_F(FlightRecorderTest, AFinalizeLeavesNoHoleAndUnregisteringEndsIt) {
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  reduce(1);
  (void)alone.finalize();
  World next = World::make(bus, {.name = "next", .ranks = 1}).value();
  ASSERT_TRUE(recorder.register_with_comm(next.rank(0).comm()));
  std::array<float, 4> values{};
  ASSERT_TRUE(next.rank(0).all_reduce({.tensor = Values(values)}));
  const Read read(recorder.dump_json());
  ASSERT_EQ(read.dump.entries.size(), 2u);
  EXPECT_EQ(read.dump.entries[1].record_id, 1);
  EXPECT_EQ(read.dump.entries[1].op_id, read.dump.entries[0].op_id + 1);
  recorder.unregister();
  ASSERT_TRUE(next.rank(0).all_reduce({.tensor = Values(values)}));
  EXPECT_EQ(recorder.size(), 2u);
}

TEST_F(FlightRecorderTest, AFileHasItsRankInItsNameAndIsWholeOrNotThere) {
  auto recorder = make(10);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  reduce(3);
  EXPECT_EQ(recorder.dump_file(12).value(), prefix() + "12");
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] { EXPECT_EQ(recorder.dump_file(12).value(), prefix() + "12"); });
  for (std::thread& writer : writers) writer.join();
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::directory_iterator(folder + "/made"))
    files.push_back(file.path().filename());
  EXPECT_EQ(files, std::vector<std::string>{"rank_12"});
  const Read read = dumped(12);
  EXPECT_EQ(read.dump.rank, 12);
  EXPECT_EQ(read.dump.entries.size(), 3u);

  ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (prefix() + "12/beneath/a/file").c_str(), 1);
  const auto refused = recorder.dump_file(0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cannot make"), std::string::npos);
  EXPECT_FALSE(recorder.dump_file(-1));
}

TEST_F(FlightRecorderTest, AForkedChildFindsItsLockFree) {
  auto recorder = make(2000);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  reduce(1000);
  std::atomic<bool> enough{false};
  std::thread copies([&] {
    while (!enough) (void)recorder.dump_json();
  });
  int status = 0;
  for (int i = 0; i < 50 && status == 0; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // where it would wait for ever
      ::_exit(recorder.size() == 1000 ? 0 : 1);
    }
    ASSERT_EQ(::waitpid(child, &status, 0), child);
  }
  enough = true;
  copies.join();
  EXPECT_EQ(status, 0);
}

TEST_F(FlightRecorderTest, AFileLargerThanTheProcessMayWriteIsNotTried) {
  auto recorder = make(100);
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  reduce(100);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto refused = recorder.dump_file(0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("ulimit -f"), std::string::npos);
  EXPECT_TRUE(recorder.dump_file(0));
}

TEST_F(FlightRecorderTest, ItIsDumpedBeforeAnAbort) {
  World pair = World::make(bus, {.name = "pair", .ranks = 2}).value();
  FlightRecorderHook recorder(
      {.max_entries = 10, .isolated = true, .rank = 1, .dumps_on_abort = true});
  ASSERT_TRUE(recorder.register_with_comm(pair.rank(1).comm()));
  std::array<float, 4> values{};
  const auto hangs = pair.rank(1).all_reduce({.tensor = Values(values), .async_op = true});
  pair.rank(1).comm().abort("it hangs");
  const Read read = dumped(1);
  ASSERT_EQ(read.dump.entries.size(), 1u);
  EXPECT_FALSE(read.dump.entries[0].retired);  // before
}

TEST_F(FlightRecorderTest, ItIsDumpedAtTheFirstFailureAndNotAgain) {
  FlightRecorderHook recorder(
      {.max_entries = 10, .isolated = true, .rank = 2, .dumps_on_failure = true});
  ASSERT_TRUE(recorder.register_with_comm(alone.comm()));
  reduce(1);
  EXPECT_FALSE(std::filesystem::exists(prefix() + "2"));
  const auto fails = [this] {
    auto issuing = alone.comm().issue(collective::Barrier{});
    issuing.threw("the link is down");
  };
  fails();
  EXPECT_EQ(dumped(2).dump.entries.size(), 2u);
  fails();
  EXPECT_EQ(dumped(2).dump.entries.size(), 2u);
}

TEST_F(FlightRecorderTest, ItIsDumpedWhenTheProcessEndsByExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("RINGMAIN_PARENTS_PREFIX", prefix().c_str(), 0);  // the child has a folder of its own
  EXPECT_EXIT(
      {
        std::filesystem::remove_all(folder);
        ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", std::getenv("RINGMAIN_PARENTS_PREFIX"), 1);
        FlightRecorderHook recorder(
            {.max_entries = 10, .isolated = true, .rank = 3, .dumps_at_exit = true});
        (void)recorder.register_with_comm(alone.comm());
        reduce(3);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(dumped(3).dump.entries.size(), 3u);
  ::unsetenv("RINGMAIN_PARENTS_PREFIX");
}

TEST_F(FlightRecorderTest, ADumpThatNobodyAsksForNeedsARank) {
  const std::pair<const char*, collective::FlightRecorderOptions> all[] = {
      {"dumps_on_abort", {.isolated = true, .dumps_on_abort = true}},
      {"dumps_on_failure", {.isolated = true, .dumps_on_failure = true}},
      {"dumps_at_exit", {.isolated = true, .dumps_at_exit = true}}};
  for (const auto& [name, options] : all) {
    try {
      const FlightRecorderHook recorder(options);
      ADD_FAILURE() << name << " is accepted";
    } catch (const std::invalid_argument& why) {
      EXPECT_EQ(why.what(),
                std::string(name) + " needs a rank for the file's name: give rank, from 0");
    }
  }
}

}  // namespace
}  // namespace ringmain::tests
