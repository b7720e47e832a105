// Do the promises hold under many threads at once? Each scenario for a count that fits its build.
//
// RINGMAIN_STRESS_SEED replays a run; RINGMAIN_STRESS_SCALE, in percent, makes it longer or
// shorter.
#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/stress/scenarios.hpp"

#if defined(__SANITIZE_THREAD__)
#define RINGMAIN_STRESS_PERCENT 15
#elif defined(__SANITIZE_ADDRESS__)
#define RINGMAIN_STRESS_PERCENT 20
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RINGMAIN_STRESS_PERCENT 15
#elif __has_feature(address_sanitizer)
#define RINGMAIN_STRESS_PERCENT 20
#endif
#endif
#ifndef RINGMAIN_STRESS_PERCENT
#define RINGMAIN_STRESS_PERCENT 100
#endif

namespace ringmain::stress {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

class StressTest : public ::testing::TestWithParam<unsigned> {
 protected:
  /// `release` rounds in a release build, fewer where everything is checked.
  static Until rounds(std::uint64_t release) {
    const std::uint64_t percent =
        from_environment("RINGMAIN_STRESS_SCALE", RINGMAIN_STRESS_PERCENT);
    Until until;
    until.rounds = std::max<std::uint64_t>(2, release * percent / 100);
    return until;
  }
  void TearDown() override {
    EXPECT_EQ(faults_.count(), 0u)
        << faults_.words() << "replay with RINGMAIN_STRESS_SEED=" << seed_;
  }

  const std::uint64_t seed_ = from_environment(
      "RINGMAIN_STRESS_SEED",
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) %
          1'000'000'000);
  Tally tally_;
  Faults faults_;
};

TEST_P(StressTest, LanesOfSegmentsKeepEveryPromise) {
  steady({.workers = GetParam()}, rounds(400), seed_, tally_, faults_);
  EXPECT_GT(tally_.heard, 0u);
}

TEST_P(StressTest, MoodycamelLanesKeepEveryPromise) {
  steady({.workers = GetParam(), .lane = LaneKind::moodycamel}, rounds(200), seed_, tally_,
         faults_);
  EXPECT_GT(tally_.heard, 0u);
}

TEST_P(StressTest, RingLanesKeepEveryPromise) {
  steady({.workers = GetParam(), .lane = LaneKind::ring}, rounds(400), seed_, tally_, faults_);
  EXPECT_GT(tally_.heard, 0u);
}

TEST_P(StressTest, LargeEventsKeepEveryPromise) {
  steady({.workers = GetParam(), .lane = static_cast<LaneKind>(GetParam() % 3), .large = true},
         rounds(60), seed_, tally_, faults_);
}

TEST_P(StressTest, ThreadsThatComeAndGoLeaveNoLanesBehind) {
  thread_churn(GetParam(), LaneKind::segments, rounds(10'000), tally_, faults_);
  thread_churn(GetParam(), LaneKind::ring, rounds(2'000), tally_, faults_);
}

TEST_P(StressTest, OneSourceSaysWhatLanesThreadsGet) {
  thread_lanes_storm(GetParam(), rounds(1'000), tally_, faults_);
}

TEST_P(StressTest, NoCallRunsAfterResetInAStormOfRegistrations) {
  registration_storm(GetParam(), rounds(GetParam() == 2 ? 1'000'000 : 100'000), seed_, tally_,
                     faults_);
}

TEST_P(StressTest, InlineSubscribersComeAndGoWhileOthersPublish) {
  inline_storm(GetParam(), rounds(1'000), seed_, tally_, faults_);
}

TEST_P(StressTest, OrderHoldsWhileThoseWhoWantItComeAndGo) {
  order_storm(GetParam(), rounds(3'000), seed_, tally_, faults_);
  EXPECT_GT(tally_.ordered, 0u);
}

TEST_P(StressTest, ParallelDeliveryIsExactlyOnceWhileSubscribersComeAndGo) {
  parallel_storm(GetParam(), rounds(1'500), seed_, tally_, faults_);
  EXPECT_GT(tally_.heard, 0u);
}

TEST_P(StressTest, SourcesKnowWhoListensAndEveryLossIsTold) {
  interest_storm(GetParam(), rounds(10'000), seed_, tally_, faults_);
  EXPECT_GT(tally_.told, 0u);
}

TEST_P(StressTest, CallbacksResetThemselvesAndEachOther) {
  resets_in_callbacks(GetParam(), rounds(5'000), tally_, faults_);
}

TEST_P(StressTest, ChannelsPatternsAndMailboxesComeWhileOthersFlush) {
  channels_and_patterns(GetParam(), rounds(3'000), seed_, tally_, faults_);
}

INSTANTIATE_TEST_SUITE_P(Workers, StressTest, ::testing::Values(1u, 2u, 3u));

class LifecycleTest : public StressTest {};

TEST_P(LifecycleTest, StopAccountsForEverythingInManyShortLives) {
  lifecycles(rounds(700), seed_ + GetParam(), tally_, faults_);
}

INSTANTIATE_TEST_SUITE_P(Slices, LifecycleTest, ::testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace ringmain::stress
