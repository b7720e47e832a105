// Slot classes, histograms, the wait strategy, futexes and deadlines: each small, each alone.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <linux/membarrier.h>
#include <random>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "engine/publish/slot.hpp"
#include "engine/system/atomics.hpp"
#include "engine/system/clock.hpp"
#include "engine/system/join_deadline.hpp"
#include "engine/system/wait_strategy.hpp"
#include "engine/watch/histogram.hpp"

namespace ringmain::engine {
namespace {

TEST(SlotTest, EveryPayloadGetsTheSmallestClassThatHoldsIt) {
  for (std::size_t payload = 0; payload <= 1024 + sizeof(Envelope); ++payload) {
    const unsigned c = slot_class(payload);
    EXPECT_GE(slot_bytes(c), payload + sizeof(SlotHeader)) << payload;
    if (c != 0) {
      EXPECT_LT(slot_bytes(c - 1), payload + sizeof(SlotHeader)) << payload;
    }
  }
}

TEST(SlotTest, EverySlotKeepsItsPayloadAlignedToSixteen) {
  for (unsigned c = 0; c < slot_sizes().size(); ++c) EXPECT_EQ(slot_bytes(c) % 16, 0u);
}

TEST(JoinDeadlineTest, AThreadInACallbackGetsTheRestOfTheTimeAndAMomentAtLeast) {
  EXPECT_EQ(JoinDeadline(-1).left_ns(true), -1);
  EXPECT_EQ(JoinDeadline(-1).left_ns(false), -1);
  EXPECT_EQ(JoinDeadline(0, 100).left_ns(true, 100), JoinDeadline::kMomentNs);
  EXPECT_EQ(JoinDeadline(0, 100).left_ns(true, 100 + JoinDeadline::kMomentNs), 0);
  EXPECT_EQ(JoinDeadline(3 * JoinDeadline::kPatienceNs, 0).left_ns(true, JoinDeadline::kPatienceNs),
            2 * JoinDeadline::kPatienceNs);
}

TEST(JoinDeadlineTest, AThreadInNoneIsLookedAtAgainUntilPatienceEnds) {
  const JoinDeadline join_deadline(0, 0);
  EXPECT_EQ(join_deadline.left_ns(false, 1), JoinDeadline::kMomentNs - 1);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kMomentNs), JoinDeadline::kMomentNs);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kPatienceNs - 1), 1);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kPatienceNs), 0);
  EXPECT_EQ(join_deadline.left_ns(false, 2 * JoinDeadline::kPatienceNs), 0);
}

TEST(HistogramTest, AnEmptyOneSaysNothing) {
  const Histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.quantile(0.5), 0u);
  EXPECT_EQ(h.max(), 0u);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram h;
  for (int i = 0; i < 16; ++i) h.add(i);
  EXPECT_EQ(h.count(), 16u);
  EXPECT_EQ(h.quantile(0.0), 0u);
  EXPECT_EQ(h.quantile(1.0), 15u);
}

TEST(HistogramTest, ANegativeDurationCountsAsZero) {
  Histogram h;
  h.add(-5);
  EXPECT_EQ(h.count(), 1u);
  EXPECT_EQ(h.max(), 0u);
}

TEST(HistogramTest, TheLargestDurationHasABucket) {
  Histogram h;
  h.add(INT64_MAX);
  EXPECT_EQ(h.quantile(1.0), static_cast<std::uint64_t>(INT64_MAX));
}

TEST(HistogramTest, AQuantileIsAtMostASixteenthAboveTheTruth) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values;
  Histogram h;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t v = random() >> (random() % 60 + 2);
    values.push_back(v);
    h.add(static_cast<std::int64_t>(v));
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    const std::uint64_t truth = values[rank];
    EXPECT_GE(h.quantile(share), truth) << share;
    EXPECT_LE(h.quantile(share), truth + truth / 16 + 1) << share;
  }
}

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

TEST(FutexTest, AWaitOnAnotherValueReturnsAtOnce) {
  Atomic<std::uint32_t> word{1};
  EXPECT_TRUE(futex_wait(word, 0));
}

TEST(FutexTest, AWaitRunsOutOfTime) {
  Atomic<std::uint32_t> word{1};
  EXPECT_FALSE(futex_wait(word, 1, 1'000'000));
}

TEST(FutexTest, AWakeUpEndsAWait) {
  Atomic<std::uint32_t> word{0};
  std::thread sleeper([&word] {
    while (word.load() == 0) futex_wait(word, 0);
  });
  word.store(1);
  futex_wake(word, 1);
  sleeper.join();
}

TEST(DeadlineTest, ANegativeLimitNeverPasses) {
  const Deadline never(-1);
  EXPECT_EQ(never.left_ns(), -1);
  EXPECT_FALSE(never.passed());
}

TEST(DeadlineTest, AZeroLimitHasPassed) {
  const Deadline now(0);
  EXPECT_EQ(now.left_ns(), 0);
  EXPECT_TRUE(now.passed());
}

// Two threads store and then look at the other's word: both missing the other's store is what the
// barrier pair forbids, and what a machine with store buffers does without it.
TEST(BarrierTest, OfACheapAndADearSideOneSeesTheOther) {
  constexpr int kRounds = 20'000;
  std::vector<Atomic<int>> cheap(kRounds), dear(kRounds);
  std::vector<char> cheap_saw(kRounds), dear_saw(kRounds);
  std::atomic<int> started{0};
  const auto start = [&started] {
    ++started;
    while (started != 2) {
    }
  };
  std::thread other([&] {
    start();
    for (std::size_t i = 0; i < kRounds; ++i) {
      cheap[i].store(1, std::memory_order_relaxed);
      asymmetric_fence_light_or_full();
      cheap_saw[i] = static_cast<char>(dear[i].load(std::memory_order_relaxed));
    }
  });
  start();
  for (std::size_t i = 0; i < kRounds; ++i) {
    dear[i].store(1, std::memory_order_relaxed);
    asymmetric_fence_heavy();
    dear_saw[i] = static_cast<char>(cheap[i].load(std::memory_order_relaxed));
  }
  other.join();
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_TRUE(cheap_saw[i] || dear_saw[i]) << i;
}

TEST(BarrierTest, TheFenceFormIsTakenWhenAskedForOrWhereThereIsNoMembarrier) {
  const char* asked = std::getenv("RINGMAIN_BARRIER");
  const bool wanted = asked != nullptr && std::string_view(asked) == "fence";
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool missing = known < 0 || (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  EXPECT_EQ(barrier_is_fence(), wanted || missing);
}

}  // namespace
}  // namespace ringmain::engine
