#include "adapters/sources/collective/collective_watchdog.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/door/reply.hpp"

#include "bus/bus.hpp"
#include "bus/bus_events.hpp"
#include "bus/core/door_words.hpp"

#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/heard.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::OverdueOperation;
using collective::OverdueSince;
using collective::Watchdog;
using std::chrono::hours;

constexpr nanoseconds kPassed{
    1};  // a deadline that every operation has passed when it is looked at

class WatchdogTest : public testing::Test {
 protected:
  [[nodiscard]] collective::Operation hangs() {
    auto issuing = comm.issue(collective::AllReduce{});
    collective::Operation operation = issuing.operation();
    issuing.returned();
    return operation;
  }
  static std::vector<OverdueOperation> look(Watchdog& watchdog) {
    // Time passes between the issue and the look, unless the clock has not moved.
    std::vector<OverdueOperation> found = watchdog.look();
    while (found.empty()) found = watchdog.look();
    return found;
  }

  Bus bus;
  Heard<OverdueOperation> overdue{bus};
  Communicator comm =
      Communicator::make(
          bus, {.name = "dp", .backend = "own", .rank = 1, .size = 2, .abort = [](Name) {}})
          .value();
};

TEST_F(WatchdogTest, EachOperationIsSaidOnceForItsIssueAndOnceForItsStart) {
  auto watchdog =
      Watchdog::make(bus, {.from_issue = kPassed, .from_start = kPassed, .period = {}}).value();
  const auto operation = hangs();
  const auto before = look(watchdog);
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].op_id, operation.id());
  EXPECT_EQ(before[0].since, OverdueSince::issued);
  EXPECT_EQ(before[0].group.view(), "dp");
  EXPECT_EQ(before[0].rank, 1);
  EXPECT_GT(before[0].waited_ns, before[0].deadline_ns);
  EXPECT_TRUE(watchdog.look().empty());
  EXPECT_TRUE(operation.started());
  const auto after = look(watchdog);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].since, OverdueSince::started);
  EXPECT_TRUE(operation.completed());
  EXPECT_TRUE(watchdog.look().empty());
  EXPECT_EQ(overdue.all().size(), 2u);
  EXPECT_EQ(watchdog.looks(), overdue.all()[1].look + 1);
}

TEST_F(WatchdogTest, OperationsAreInTheLedgerForItAloneAndNoLongerThanItLives) {
  EXPECT_EQ(hangs().id(), 0u);
  {
    auto watchdog = Watchdog::make(bus, {.from_issue = kPassed, .period = {}}).value();
    const auto operation = hangs();
    ASSERT_NE(operation.id(), 0u);
    EXPECT_EQ(look(watchdog)[0].op_id, operation.id());
  }
  EXPECT_EQ(hangs().id(), 0u);
}

TEST_F(WatchdogTest, AnOperationWithinItsDeadlineIsNotSaid) {
  auto watchdog =
      Watchdog::make(bus, {.from_issue = hours(1), .from_start = kPassed, .period = {}}).value();
  const auto operation = hangs();
  EXPECT_TRUE(watchdog.look().empty());
  EXPECT_TRUE(operation.started());
  EXPECT_EQ(look(watchdog).size(), 1u);
}

TEST_F(WatchdogTest, WithoutADeadlineOfItsOwnTheGroupsTimeOutCounts) {
  auto watchdog = Watchdog::make(bus, {.period = {}}).value();
  const auto operation = hangs();
  EXPECT_TRUE(watchdog.look().empty());  // none is known
  comm.set_timeout(hours(1));
  EXPECT_TRUE(watchdog.look().empty());
  comm.set_timeout(kPassed);
  EXPECT_EQ(look(watchdog)[0].deadline_ns, 1);
}

TEST_F(WatchdogTest, AnOperationsOwnTimeOutGoesBeforeAllOthers) {
  comm.set_timeout(kPassed);
  auto watchdog =
      Watchdog::make(bus, {.from_issue = kPassed, .from_start = kPassed, .period = {}}).value();
  Heard<collective::Issued> issued(bus);
  const auto issue = [this](nanoseconds own) {
    auto issuing = comm.issue_within(collective::AllReduce{}, own);
    issuing.returned();
    return issuing.operation();
  };
  const auto patient = issue(hours(1)), hasty = issue(nanoseconds(2)), usual = issue({});
  EXPECT_TRUE(patient.started());
  collective::Issued said;
  said.op = Name("all_reduce");
  said.timeout_s = 7200;
  auto told = comm.issue(collective::AllReduce{}, said);
  told.returned();
  std::vector<OverdueOperation> found;
  while (found.size() < 2) {
    for (const OverdueOperation& one : watchdog.look()) found.push_back(one);
  }
  EXPECT_TRUE(watchdog.look().empty());
  for (const OverdueOperation& one : found)
    EXPECT_EQ(one.deadline_ns, one.op_id == hasty.id() ? 2 : 1) << one.op_id;
  EXPECT_NE(found[0].op_id, found[1].op_id);
  const auto all = issued.all();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].timeout_s, 3600);
  EXPECT_EQ(all[1].timeout_s, 1);  // rounded up
  EXPECT_EQ(all[3].timeout_s, 7200);
}

TEST_F(WatchdogTest, ItsHeartbeatIsInADoorsStats) {
  const auto stats = [] {
    engine::door::Reply reply;
    ringmain::detail::DoorWords().answer("stats", reply);
    std::string text(reply.view());
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    return text;
  };
  EXPECT_NE(stats().find("\"watchdogs\":[]"), std::string::npos) << stats();
  auto watchdog = Watchdog::make(bus, {.from_issue = kPassed, .period = {}}).value();
  EXPECT_NE(stats().find("\"looks\":0,\"period_ns\":0,\"last_look_age_ns\":null,"
                         "\"inside_look_for_ns\":null,\"before_abort_for_ns\":null}]"),
            std::string::npos)
      << stats();
  std::string inside;
  const auto heard = bus.channel<OverdueOperation>().subscribe_inline(
      [&](const OverdueOperation&) { inside = stats(); });
  const auto operation = hangs();
  (void)look(watchdog);
  EXPECT_EQ(inside.find("\"inside_look_for_ns\":null"), std::string::npos) << inside;
  const std::string after = stats();
  EXPECT_NE(after.find("\"looks\":" + std::to_string(watchdog.looks())), std::string::npos)
      << after;
  EXPECT_EQ(after.find("\"last_look_age_ns\":null"), std::string::npos) << after;
  EXPECT_NE(after.find("\"inside_look_for_ns\":null"), std::string::npos) << after;
}

TEST_F(WatchdogTest, ARecorderWithoutARankIsRefused) {
  const collective::FlightRecorderHook recorder({.max_entries = 10, .isolated = true});
  const auto made = Watchdog::make(bus, {.recorder = &recorder});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("has no rank"), std::string::npos) << made.error().message;
}

TEST_F(WatchdogTest, WhatALookCallsIsInsideIt) {
  auto watchdog =
      Watchdog::make(bus, {.from_issue = kPassed, .period = {}, .aborts = true}).value();
  int inside = 0;
  const auto heard = bus.channel<OverdueOperation>().subscribe_inline(
      [&](const OverdueOperation&) { inside += watchdog.looks_here() ? 1 : 0; });
  const auto ended = comm.completion_hook(
      [&](const collective::CompletionHookArgs&) { inside += watchdog.looks_here() ? 10 : 0; });
  (void)hangs();
  EXPECT_FALSE(watchdog.looks_here());
  (void)look(watchdog);
  EXPECT_FALSE(watchdog.looks_here());
  EXPECT_EQ(inside, 11);
}

TEST_F(WatchdogTest, AForkedChildDoesNotWaitForItsParentsThread) {
  std::optional<Watchdog> watchdog;
  watchdog.emplace(Watchdog::make(bus, {.period = std::chrono::milliseconds(1)}).value());
  while (watchdog->looks() == 0) std::this_thread::yield();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // where it would wait for ever
    const bool quiet = watchdog->look().empty();
    watchdog.reset();
    ::_exit(quiet ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(WatchdogTest, APeriodBeyondAllClocksIsNoLookAfterTheOther) {
  auto watchdog = Watchdog::make(bus, {.period = nanoseconds::max()}).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(watchdog.looks(), 0u);
}

TEST_F(WatchdogTest, ATimeBelowZeroIsRefusedByName) {
  const nanoseconds below(-1);
  const std::pair<const char*, collective::WatchdogOptions> all[] = {
      {"from_issue", {.from_issue = below}},
      {"from_start", {.from_start = below}},
      {"period", {.period = below}},
      {"before_abort_within", {.before_abort_within = below}}};
  for (const auto& [name, options] : all) {
    const auto made = Watchdog::make(bus, options);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, Error::Code::refused);
    EXPECT_EQ(made.error().message,
              "a watchdog's " + std::string(name) + " is -1 ns; give it a time from 0");
  }
}

TEST_F(WatchdogTest, APeriodThatIsNoneIsRefused) {
  for (const nanoseconds none : {nanoseconds(1), nanoseconds(999'999)}) {
    const auto made = Watchdog::make(bus, {.period = none});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Error::Code::refused);
    EXPECT_NE(made.error().message.find("give it 1 ms or more, or 0"), std::string::npos);
  }
  EXPECT_TRUE(Watchdog::make(bus, {.period = std::chrono::milliseconds(1)}));
}

// Once in a process, so that each of these has one of its own.
class WatchdogProcessTest : public WatchdogTest {
 protected:
  WatchdogProcessTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  template <class F>
  static void in_process(F f) {
    EXPECT_EXIT(
        {
          f();
          std::_Exit(HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
  }
  Heard<collective::Issued> issued{bus};  // so that what hangs before the watchdog is seen, too
};

TEST_F(WatchdogProcessTest, TheProgramIsCalledBeforeTheAbort) {
  in_process([&] {
    std::atomic<int> calls{0};
    std::atomic<bool> aborted_before{false};
    const auto operation = hangs();
    {
      auto watchdog = Watchdog::make(bus, {.from_issue = kPassed,
                                           .period = std::chrono::milliseconds(1),
                                           .before_abort =
                                               [&](const OverdueOperation&) {
                                                 aborted_before = comm.aborted();
                                                 ++calls;
                                               },
                                           .before_abort_within = hours(1),
                                           .aborts = true})
                          .value();
      while (!comm.aborted()) std::this_thread::yield();
    }  // what was open has failed by now
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(aborted_before);
    EXPECT_FALSE(operation.completed());  // it failed as aborted
  });
}

TEST_F(WatchdogProcessTest, ARecordersFileIsThereBeforeTheProgramIsCalledAndBeforeTheAbort) {
  std::string folder = (std::filesystem::temp_directory_path() / "watchdog-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  in_process([&] {
    ::setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", (folder + "/rank_").c_str(), 1);
    std::atomic<bool> was_there{false}, aborted_before{true};
    const auto world =
        collective::loopback::World::make(bus, {.name = "hangs", .ranks = 2}).value();
    const auto rank = world.rank(1);
    const Communicator hung = rank.comm();
    auto watchdog = [&] {
      // Gone when the file is written.
      collective::FlightRecorderHook recorder({.max_entries = 10, .isolated = true, .rank = 1});
      EXPECT_TRUE(recorder.register_with_comm(hung));
      return Watchdog::make(bus, {.from_issue = kPassed,
                                  .period = std::chrono::milliseconds(1),
                                  .before_abort =
                                      [&](const OverdueOperation&) {
                                        was_there = std::filesystem::exists(folder + "/rank_1");
                                        aborted_before = hung.aborted();
                                      },
                                  .recorder = &recorder,
                                  .before_abort_within = hours(1),
                                  .aborts = true})
          .value();
    }();
    const auto work = rank.barrier({.async_op = true});  // rank 0 never joins
    while (!hung.aborted()) std::this_thread::yield();
    EXPECT_TRUE(was_there);
    EXPECT_FALSE(aborted_before);
  });
  std::filesystem::remove_all(folder);
}

TEST_F(WatchdogProcessTest, WhatEndsWhileTheProgramIsCalledIsNoReasonToGiveItsGroupUp) {
  in_process([&] {
    Communicator other =
        Communicator::make(
            bus, {.name = "tp", .backend = "own", .rank = 0, .size = 2, .abort = [](Name) {}})
            .value();
    auto issuing = other.issue(collective::AllReduce{});
    issuing.returned();
    const auto operation = hangs();
    auto watchdog =
        Watchdog::make(
            bus,
            {.from_issue = kPassed,
             .period = {},
             .before_abort = [&](const OverdueOperation&) { EXPECT_TRUE(operation.completed()); },
             .before_abort_within = hours(1),
             .aborts = true})
            .value();
    while (!other.aborted()) (void)watchdog.look();
    EXPECT_FALSE(comm.aborted());
  });
}

TEST_F(WatchdogProcessTest, TheProgramIsCalledOnceAndNotWaitedForForEver) {
  in_process([&] {
    std::atomic<int> calls{0};
    std::atomic<bool> go_on{false}, over{false};
    Heard<SlowSubscriber> slow{bus};
    const auto operation = hangs();
    {
      auto watchdog = Watchdog::make(bus, {.from_issue = kPassed,
                                           .period = std::chrono::milliseconds(1),
                                           .before_abort =
                                               [&](const OverdueOperation&) {
                                                 ++calls;
                                                 while (!go_on) std::this_thread::yield();
                                                 over = true;
                                               },
                                           .before_abort_within = std::chrono::milliseconds(1),
                                           .aborts = true})
                          .value();
      while (!comm.aborted()) std::this_thread::yield();  // though the call is stuck
      EXPECT_GE(watchdog.looks(), 1u);
    }
    const auto told = slow.all();
    EXPECT_EQ(told.size(), 1u);
    EXPECT_EQ(told.at(0).subscriber.view(), "a watchdog's before_abort");
    EXPECT_EQ(told.at(0).budget_ns, 1'000'000);
    go_on = true;
    while (!over) std::this_thread::yield();
    EXPECT_EQ(calls, 1);

    auto second = Watchdog::make(bus, {.from_issue = kPassed,
                                       .period = {},
                                       .before_abort = [&](const OverdueOperation&) { ++calls; }})
                      .value();
    comm = Communicator::make(bus, {.name = "next", .backend = "own"}).value();
    const auto again = hangs();
    EXPECT_EQ(look(second).size(), 1u);
    EXPECT_EQ(calls, 1);
  });
}

}  // namespace
}  // namespace ringmain::tests
