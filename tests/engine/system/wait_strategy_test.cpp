// Does a worker look again for a while before it parks, and anew after work?

#include "engine/system/wait_strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(WaitStrategyTest, ItLooksAgainAndThenParks) {
  WaitOptions options;
  options.spin_ns = 0;
  WaitStrategy wait(options);
  for (int again = 0; again < 3; ++again) {
    int looks = 0;
    while (wait.look_again()) ASSERT_LT(++looks, 10'000);
    EXPECT_GE(looks, 63);  // it never parks without having looked for a while
  }
}

TEST(WaitStrategyTest, WorkStartsTheLookingAnew) {
  WaitOptions options;
  options.spin_ns = 0;
  options.linger_ns = 0;
  WaitStrategy wait(options);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(wait.look_again());
    wait.worked(1);
  }
}

TEST(WaitStrategyTest, GlancesCountAsLooks) {
  WaitOptions options;
  options.spin_ns = 0;
  WaitStrategy wait(options);
  for (int again = 0; again < 3; ++again) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(wait.look_again(20));
    EXPECT_FALSE(wait.look_again(20)) << "64 lie between two looks at the clock";
  }
}

/// An event that a glance found came alone, as one that a look found after an empty one.
TEST(WaitStrategyTest, WhatAGlanceFindsWasNotChased) {
  WaitStrategy wait{WaitOptions{}};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(wait.linger_after(1, 1'000'000, 1), 0);
  std::int64_t chasing = 0;
  for (int i = 0; i < 20; ++i) chasing = wait.linger_after(1, 1'000'000, 0);
  EXPECT_GT(chasing, 0);
}

TEST(WaitStrategyTest, WhoeverChasesItsPublisherLingersLongerAndLonger) {
  WaitStrategy wait{WaitOptions{}};
  std::int64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const std::int64_t now = wait.linger_after(100, 1'000'000);
    EXPECT_GE(now, last);
    EXPECT_GE(now, WaitOptions{}.linger_ns);
    last = now;
  }
  EXPECT_EQ(last, 16 * WaitOptions{}.linger_ns);
  EXPECT_EQ(wait.linger_after(100, 1'000'000), last) << "a bound";
}

TEST(WaitStrategyTest, WhereFewEventsComeAWaitIsShorter) {
  WaitStrategy wait{WaitOptions{}};
  std::int64_t last = 0;
  for (int i = 0; i < 20; ++i) last = wait.linger_after(10, 1'000'000);
  EXPECT_EQ(last, 8 * WaitOptions{}.linger_ns);
}

TEST(WaitStrategyTest, ItDoesNotLingerWhileALotIsLeft) {
  WaitStrategy wait{WaitOptions{}};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(wait.linger_after(256, 1'000'000), 0);
}

TEST(WaitStrategyTest, ManyEventsBetweenTwoLingersMakeThemShorter) {
  WaitStrategy wait{WaitOptions{}};
  std::int64_t longest = 0, last = 0;
  for (int i = 0; i < 20; ++i) longest = wait.linger_after(100, 1'000'000);
  for (int i = 0; i < 20; ++i) {
    for (int batch = 0; batch < 20; ++batch) EXPECT_EQ(wait.linger_after(256, 1'000'000), 0);
    last = wait.linger_after(100, 1'000'000);
  }
  EXPECT_LT(last, longest);
  EXPECT_EQ(last, WaitOptions{}.linger_ns);
}

TEST(WaitStrategyTest, NothingIsWaitedForWhereALaneIsHalfFull) {
  WaitStrategy wait{WaitOptions{}};
  EXPECT_GT(wait.linger_after(31, 64), 0);
  EXPECT_EQ(wait.linger_after(32, 64), 0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(wait.linger_after(100, 128), 0);
}

/// A publisher of an event each 50 ns, and a worker that hands on what waits in 50 ns: it keeps up,
/// so what it waits for must not be more than the lane holds.
TEST(WaitStrategyTest, AWaitThatTheNextWouldFollowDoesNotFillASmallLane) {
  for (const std::size_t capacity : {16u, 64u, 256u}) {
    WaitStrategy wait{WaitOptions{}};
    std::size_t waiting = 1, most = 0;
    for (int round = 0; round < 1000; ++round) {
      waiting = 1 + static_cast<std::size_t>(wait.linger_after(waiting, capacity) / 50);
      most = std::max(most, waiting);
    }
    EXPECT_LE(most, capacity);
    EXPECT_GE(most, std::min<std::size_t>(capacity / 4, 48)) << "it does not wait where it may";
  }
}

TEST(WaitStrategyTest, AWaitThatWasLeftOutMakesTheNextOneShorter) {
  WaitStrategy wait{WaitOptions{}};
  std::int64_t longest = 0;
  for (int i = 0; i < 20; ++i) longest = wait.linger_after(10, 65536);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(wait.linger_after(32, 64), 0);
  EXPECT_LT(wait.linger_after(20, 64), longest);
  EXPECT_EQ(wait.linger_after(20, 64), WaitOptions{}.linger_ns);
}

TEST(WaitStrategyTest, AnEventAloneIsNotLingeredAfter) {
  WaitStrategy wait{WaitOptions{}};
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(wait.look_again());
    EXPECT_EQ(wait.linger_after(1, 65536), 0);
  }
}

TEST(WaitStrategyTest, AnEmptyLookEndsTheChase) {
  WaitStrategy wait{WaitOptions{}};
  for (int i = 0; i < 20; ++i) (void)wait.linger_after(100, 65536);
  EXPECT_TRUE(wait.look_again());
  EXPECT_EQ(wait.linger_after(100, 65536), WaitOptions{}.linger_ns);
}

}  // namespace
}  // namespace ringmain::engine
