// Whichever call of the driver's fails, once or from then on: each ticket that was given ends once,
// and the figures balance.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapters/sources/cuda/completions_core.hpp"

#include "tests/adapters/cuda/completions_fixture.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;

/// Answers `result` at the n-th call, or from it on. The fixture's own calls are not counted.
struct Fault {
  std::uint64_t at;
  int result;
  bool lasts;
  std::atomic<std::uint64_t> calls{0};
  static int answer(const char*, void* with) {
    auto& fault = *static_cast<Fault*>(with);
    const std::uint64_t n = fault.calls++;
    return n == fault.at || (fault.lasts && n > fault.at) ? fault.result : -1;
  }
};

struct Case {
  Strategy strategy;
  int result;
  bool lasts;
};
class CompletionsFaultsTest : public CompletionsFixture, public testing::WithParamInterface<Case> {
 protected:
  /// True: the fault's call was among those that were made.
  bool run(std::uint64_t at) {
    Fault fault{at, GetParam().result, GetParam().lasts, {}};
    const Heard heard(bus);
    fake_cuda_script(&Fault::answer, &fault);
    auto made = Completions::make(
        bus, {.strategy = GetParam().strategy, .lane_tickets = 4, .watch_us = microseconds(1)});
    std::uint64_t given = 0;
    if (made) {
      Completions completions = std::move(made).value();
      for (std::uint64_t tag = 1; tag <= 3; ++tag) given += completions.arm(stream, tag) ? 1 : 0;
      EXPECT_EQ(completions.end(minutes(10)), Detached::done);
      fake_cuda_script(nullptr, nullptr);
      EXPECT_EQ(completions.figures().armed, given);
      EXPECT_EQ(completions.figures().pending, 0U);
      expect_balanced(completions, heard);
      EXPECT_EQ(heard.size(), given);
    }
    fake_cuda_script(nullptr, nullptr);
    return fault.calls > at;
  }
};

TEST_P(CompletionsFaultsTest, EachCallOfTheDriversMayFail) {
  std::uint64_t at = 0;
  while (run(at)) ++at;
  EXPECT_GT(at, 15U);  // as many calls are made at least
}
INSTANTIATE_TEST_SUITE_P(
    , CompletionsFaultsTest,
    testing::Values(
        Case{Strategy::memory_writes, 1, false}, Case{Strategy::memory_writes, 700, true},
        Case{Strategy::memory_writes, 900, true}, Case{Strategy::automatic, 2, false},
        Case{Strategy::automatic, 999, true}, Case{Strategy::event_queries, 1, false},
        Case{Strategy::event_queries, 700, true}, Case{Strategy::event_queries, 900, false},
        Case{Strategy::host_functions, 1, false}, Case{Strategy::host_functions, 719, true}),
    [](const auto& tested) {
      return std::string(to_string(tested.param.strategy)) + "_" +
             std::to_string(tested.param.result) + (tested.param.lasts ? "_lasting" : "_once");
    });

TEST(CompletionsCoreTest, AContextThatWasMadeAnewAtTheSameAddressIsAnother) {
  static unsigned long long id = 1;
  Driver driver;
  driver.context_id = [](void*, unsigned long long* to) { return *to = id, 0; };
  driver.stream_query = [](void*) { return 0; };
  CompletionsCore core(driver, {});
  core.context_id = id;
  EXPECT_EQ(core.ask(), kDone);
  ++id;
  EXPECT_EQ(core.ask(), kContextGone);
}

/// A poller whose first look comes when something is armed already, and that is never to ask.
TEST_F(CompletionsFixture, NothingIsAskedBeforeItsTime) {
  const Driver& driver = *Driver::open().value();
  auto core = std::make_shared<CompletionsCore>(
      driver,
      CompletionsOptions{.strategy = Strategy::event_queries, .watch_us = microseconds::max()});
  core->strategy = Strategy::event_queries;
  ASSERT_EQ(driver.context_current(&core->context), 0);
  ASSERT_EQ(driver.context_id(core->context, &core->context_id), 0);
  ASSERT_EQ(driver.stream_create(&core->own_stream, 1), 0);
  ASSERT_FALSE(run::hold_channel(bus, core->channel));
  core->publisher = core->channel.channel->publisher();
  const Heard heard(bus);
  const std::uint64_t held = fake_cuda_hold(stream);
  ASSERT_TRUE(core->arm(stream, 1, nullptr));
  std::atomic<int> looks{0};
  const auto count = [](const char* name, void* with) {
    *static_cast<std::atomic<int>*>(with) += std::string_view(name) == "cuEventQuery";
    return -1;
  };
  fake_cuda_script(count, &looks);
  core->poller = std::thread([&] {
    (void)cudaSetDevice(0);
    poll(*core);
  });
  EXPECT_TRUE(tests::eventually([&] { return looks >= 5; }));
  EXPECT_EQ(core->figures().asked, 0U);
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(core->end(nanoseconds(-1)), Detached::done);
}

/// The driver refuses a host function, and calls it all the same, once the next one is on its way.
TEST_F(CompletionsFixture, AHostFunctionThatComesThoughItWasRefusedEndsNoOtherTicket) {
  static std::vector<std::pair<HostFn, void*>> given;
  given.clear();
  Driver driver = *Driver::open().value();
  driver.launch_host = [](void*, HostFn function, void* with) {
    given.emplace_back(function, with);
    return given.size() == 1 ? 999 : 0;
  };
  auto core = std::make_shared<CompletionsCore>(driver, CompletionsOptions{.lanes_max = 8});
  core->strategy = Strategy::host_functions;
  core->words = Words::make(8);
  ASSERT_EQ(driver.context_current(&core->context), 0);
  EXPECT_EQ(core->arm(stream, 1, nullptr).code, ArmCode::driver);
  ASSERT_TRUE(core->arm(stream, 2, nullptr));
  ASSERT_EQ(given.size(), 2U);
  const auto reached = [&] {
    std::uint64_t many = 0;
    core->for_each_lane([&](const Lane& lane) {
      if (lane.armed() != 0) many += lane.word->reached >= lane.slots[0].value ? 1 : 0;
    });
    return many;
  };
  given[0].first(given[0].second);
  EXPECT_EQ(reached(), 0U);
  given[1].first(given[1].second);
  EXPECT_EQ(reached(), 1U);
}

/// What a stream has come to by the time that its context is found lost has completed.
TEST_F(CompletionsFixture, WhatIsReachedWhileTheDriverIsAskedHasCompleted) {
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  fake_cuda_hold(stream);
  ASSERT_TRUE(completions.arm(stream, 1));
  fake_cuda_script(
      [](const char* name, void*) {
        if (std::string_view(name) != "cuStreamQuery") return -1;
        fake_cuda_finish(0);
        return 700;
      },
      nullptr);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::completed);
  fake_cuda_script(nullptr, nullptr);
}

/// Is asked for a lane, which nobody has given yet, and waits; meanwhile the lanes are sealed.
struct AsksForALane {
  tests::Door door;
  std::atomic<bool> once{false}, lost{false};
  static int at(const char* name, void* with) {
    auto& its = *static_cast<AsksForALane*>(with);
    const std::string_view called(name);
    if (called == "cuStreamGetCtx" && !its.once.exchange(true)) its.door.pass();
    return called == "cuStreamQuery" && its.lost ? 700 : -1;
  }
};

TEST_F(CompletionsFixture, WhoComesForALaneWhileItEndsGetsNone) {
  AsksForALane late;
  Completions completions = made();
  fake_cuda_script(&AsksForALane::at, &late);
  Armed armed;
  std::thread arms([&] {
    (void)cudaSetDevice(0);
    armed = completions.arm(stream, 1);
  });
  ASSERT_TRUE(late.door.await_arrival());
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  late.door.open();
  arms.join();
  EXPECT_EQ(armed.code, ArmCode::ended);
  EXPECT_EQ(completions.figures().lanes, 0U);
}

TEST_F(CompletionsFixture, WhoComesForALaneWhileTheContextIsLostIsToldSo) {
  AsksForALane late;
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  fake_cuda_hold(stream);
  ASSERT_TRUE(completions.arm(stream, 1));
  fake_cuda_script(&AsksForALane::at, &late);
  Armed armed;
  std::thread arms([&] {
    (void)cudaSetDevice(0);
    armed = completions.arm(stream, 2);
  });
  ASSERT_TRUE(late.door.await_arrival());
  late.lost = true;
  ASSERT_TRUE(heard.await(1));
  late.door.open();
  arms.join();
  EXPECT_EQ(armed.code, ArmCode::lost);
  EXPECT_EQ(armed.result, 700);
  fake_cuda_script(nullptr, nullptr);
  expect_balanced(completions, heard);
}

/// What the driver refused may be written all the same, so no other stream is given that word.
TEST_F(CompletionsFixture, ALaneWhoseWriteWasRefusedIsGivenToNoOtherStream) {
  const Heard heard(bus);
  Completions completions = made();
  const auto arm_once = [&] {
    std::thread([&] {
      (void)cudaSetDevice(0);
      (void)completions.arm(stream, 1);
    }).join();
  };
  fake_cuda_fail("cuStreamWriteValue64_v2", 1, 1);
  arm_once();
  EXPECT_EQ(completions.figures().lanes, 1U);
  arm_once();
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(completions.figures().lanes, 2U);
  expect_balanced(completions, heard);
}

/// However long it may sleep, it wakes for what the GPU has written.
TEST_F(CompletionsFixture, ASleepWithoutALimitIsNotForEver) {
  const Heard heard(bus);
  Completions completions = made({.sleep_us_max = microseconds::max()});
  cudaStream_t gone = nullptr;
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  std::size_t tickets = 0;
  for (int sleeps = 44; sleeps <= 53; ++sleeps) {  // each sleep is twice as long as the one before
    const std::uint64_t held = fake_cuda_hold(stream);
    ASSERT_TRUE(completions.arm(stream, 1));
    for (int i = 0; i < sleeps; ++i) {
      const std::uint64_t asked = completions.figures().asked;
      EXPECT_FALSE(completions.arm(gone, 2));  // wakes it
      ASSERT_TRUE(tests::eventually([&] { return completions.figures().asked > asked; }));
    }
    fake_cuda_finish(held);
    ASSERT_TRUE(heard.await(++tickets));
    EXPECT_EQ(heard.all().back().outcome, Outcome::completed);
  }
}

/// An event that is of no use fails its ticket alone.
TEST_F(CompletionsFixture, AnEventThatAnswersWithAnErrorForEverFailsItsTicketAlone) {
  const Heard heard(bus);
  Completions completions = made({.strategy = Strategy::event_queries});
  fake_cuda_fail("cuEventQuery", 400, 3);
  ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::failed);
  EXPECT_EQ(heard.all()[0].result, 400);
  ASSERT_TRUE(completions.arm(stream, 2));
  ASSERT_TRUE(heard.await(2));
  EXPECT_EQ(heard.all()[1].outcome, Outcome::completed);
  expect_balanced(completions, heard);
}

TEST_F(CompletionsFixture, OneAnswerOfTheDriversIsNotTakenForAnError) {
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  const std::uint64_t held = fake_cuda_hold(stream);
  fake_cuda_fail("cuStreamQuery", 999, 1);
  ASSERT_TRUE(completions.arm(stream, 1));
  ASSERT_TRUE(tests::eventually([&] { return completions.figures().asked > 4; }));
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::completed);
  EXPECT_EQ(completions.figures().result, 0);
}

}  // namespace
}  // namespace ringmain::cuda
