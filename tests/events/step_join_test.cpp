// Does an event that a reader joins with its step get the step in which it was published?
#include <barrier>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "events/steps/join.hpp"
#include "events/steps/source.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::step {
namespace {

using tests::Tick;
using tests::Tock;

std::string words(const Place& place) {
  return place.inside ? std::to_string(place.step) + "/" + std::string(place.phase.view()) + "/" +
                            std::to_string(place.micro_batch)
                      : "outside";
}

class StepJoinTest : public testing::Test {
 protected:
  StepJoinTest() : bus_(tests::with_workers(2)), steps_(Source::attach(bus_).value()) {}
  void tick() { ASSERT_TRUE(bus_.channel<Tick>().publish({1})); }

  Bus bus_;
  Source steps_;
  std::vector<std::string> heard_;
};

TEST_F(StepJoinTest, AnEventHasTheInnermostScopeThatWasOpenWhenItWasSaid) {
  const Subscription joined = subscribe_with_step<Tick, Tock>(
      bus_, [this](const auto&, const Place& in) { heard_.push_back(words(in)); });
  const Name forward("forward"), inner("inner");
  tick();
  {
    const auto step = steps_.step(7);
    tick();
    {
      const auto phase = steps_.phase(forward);
      tick();
      {
        const auto nested = steps_.phase(inner);
        const auto batch = steps_.micro_batch(2);
        tick();
      }
      ASSERT_TRUE(bus_.channel<Tock>().publish({}));
    }
    tick();
  }
  tick();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  EXPECT_EQ(heard_, (std::vector<std::string>{"outside", "7//0", "7/forward/0", "7/inner/2",
                                              "7/forward/0", "7//0", "outside"}));
}

TEST_F(StepJoinTest, AStepThatHadBegunBeforeIsNotGuessedAt) {
  const auto step = std::make_unique<Source::Scope>(steps_.step(1));
  const Subscription joined = subscribe_with_step<Tick>(
      bus_, [this](const Tick&, const Place& in) { heard_.push_back(words(in)); });
  {
    const auto phase = steps_.phase(Name("late"));
    tick();
  }
  tick();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  EXPECT_EQ(heard_, (std::vector<std::string>{"outside", "outside"}));
}

/// Barriers tie every event to its step, though many threads publish and the reader is late.
TEST_F(StepJoinTest, EventsOfAllThreadsHaveTheStepThatABarrierTiesThemTo) {
  enum : std::uint64_t { kThreads = 3, kSteps = 200, kEach = 5 };
  std::uint64_t heard = 0, wrong = 0;
  OrderOptions options;
  options.gap_us_max = std::chrono::minutes(10);  // a preempted publisher is waited for
  const Subscription joined = subscribe_with_step<Tick>(
      bus_,
      [&](const Tick& t, const Place& in) {
        ++heard;
        if (!in.inside || in.step != t.n) ++wrong;
      },
      options);
  std::barrier<> together(kThreads);
  std::vector<std::thread> threads;
  for (std::uint64_t who = 0; who < kThreads; ++who) {
    threads.emplace_back([&, who] {
      for (std::uint64_t n = 1; n <= kSteps; ++n) {
        std::unique_ptr<Source::Scope> scope;
        if (who == 0) scope = std::make_unique<Source::Scope>(steps_.step(n));
        together.arrive_and_wait();  // the step has begun
        for (std::uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(bus_.channel<Tick>().publish({n}));
        together.arrive_and_wait();  // all have said theirs: it may end
      }
    });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus_.flush(tests::kLong));
  EXPECT_EQ(heard, kThreads * kSteps * kEach);
  EXPECT_EQ(wrong, 0u);
}

TEST(FollowerTest, LostEdgesAreOverWithTheNextStep) {
  const Name phase("a");
  Follower f;
  f.follow({1, {}, 0, Edge::begin, 0});
  f.follow({1, phase, 0, Edge::begin, 0});  // its end, and the step's, are lost
  f.follow({2, {}, 0, Edge::begin, 0});
  EXPECT_EQ(words(f.here()), "2//0");
  f.follow({2, {}, 0, Edge::end, 0});
  EXPECT_EQ(words(f.here()), "outside");
  f.follow({2, phase, 0, Edge::end, 0});
  EXPECT_EQ(words(f.here()), "outside");
}

TEST(FollowerTest, ScopesDeeperThanItHasRoomForEndAsTheyBegan) {
  Follower f;
  f.follow({1, {}, 0, Edge::begin, 0});
  for (std::uint32_t n = 1; n <= 40; ++n) f.follow({1, {}, n, Edge::begin, 0});
  EXPECT_EQ(words(f.here()), "1//31");
  for (std::uint32_t n = 40; n >= 2; --n) f.follow({1, {}, n, Edge::end, 0});
  EXPECT_EQ(words(f.here()), "1//1");
}

}  // namespace
}  // namespace ringmain::step
