// Between two whole looks at nothing: is what comes meanwhile seen, and what ends the glances?
#include "engine/deliver/glances.hpp"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::keep_numbers;
using tests::make_channel;
using tests::push_number;

enum : std::size_t { kForEver = ~std::size_t{0} };

class GlancesTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  Lane& take() {
    LaneOptions options;
    options.capacity = 4;
    options.kind = GetParam();
    Lane* const lane = channel_->take_lane(options, *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    return *lane;
  }
  /// Drains, with no end of glances, and publishes into that lane meanwhile.
  std::size_t drain_while(Lane& lane, std::uint64_t n) {
    drainer_.glances.most = kForEver;
    std::jthread publisher([&] {
      while (!drains_.load()) std::this_thread::yield();
      EXPECT_EQ(push_number(lane, n), Pushed::accepted);
    });
    drains_ = true;
    return drain(drainer_, *channel_, 256);
  }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = make_channel(workers_);
  std::vector<std::uint64_t> heard_;
  AttachedSubscriber attached_{*channel_, keep_numbers(heard_)};
  Drainer drainer_;
  std::atomic<bool> drains_{false};
};

TEST_P(GlancesTest, WhatComesMeanwhileIsTakenByTheSameDrain) {
  Lane& lane = take();
  std::uint64_t n = 0;
  for (int i = 0; i < 30; ++i) {
    // Over the ends of segments and rings: each time at another place of them.
    for (int more = 0; more < 13; ++more) {
      ASSERT_EQ(push_number(lane, n++), Pushed::accepted);
      ASSERT_EQ(drain(drainer_, *channel_, 256), 1u);
    }
    drains_ = false;
    ASSERT_EQ(drain_while(lane, n), 1u);
    ASSERT_EQ(heard_.back(), n++);
  }
  EXPECT_EQ(heard_.size(), n);
}

TEST_P(GlancesTest, OnWhicheverOfAFewLanes) {
  for (std::size_t lanes = 1; lanes <= Glances::kLanesMax; ++lanes) {
    drains_ = false;
    Lane& lane = take();
    EXPECT_EQ(drain_while(lane, lanes), 1u);
    EXPECT_EQ(heard_.back(), lanes);
  }
}

TEST_P(GlancesTest, AfterSoManyADrainComesBackWithNothing) {
  for (std::size_t lanes = 0; lanes <= Glances::kLanesMax; ++lanes) {
    drainer_.glances.most = 7;
    EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
    EXPECT_EQ(drainer_.glances.made, lanes == 0 ? 0u : 7u) << lanes << " lanes";
    take();
  }
  EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
  EXPECT_EQ(drainer_.glances.made, 0u) << "many lanes are looked at once";
}

TEST_P(GlancesTest, WhatWaitsNeedsNone) {
  Lane& lane = take();
  drainer_.glances.most = 7;
  EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
  EXPECT_EQ(push_number(lane, 1), Pushed::accepted);
  EXPECT_EQ(drain(drainer_, *channel_, 256), 1u);
  EXPECT_EQ(drainer_.glances.made, 0u);
}

TEST_P(GlancesTest, TheyAreCountedOnceAlsoIfNoDrainFollows) {
  take();
  drainer_.glances.most = 7;
  EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
  EXPECT_EQ(drainer_.glances.take_made(), 7u);
  EXPECT_EQ(drainer_.glances.take_made(), 0u);
}

TEST_P(GlancesTest, AnotherChannelThatWaitsEndsThem) {
  take();
  ReadyChannels ready;
  ready.use(1);
  drainer_.glances.most = kForEver;
  drainer_.glances.others = &ready;
  std::jthread other([&] {
    while (!drains_.load()) std::this_thread::yield();
    ready.signal(0);
  });
  drains_ = true;
  EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
  EXPECT_TRUE(ready.waits(0));
  EXPECT_EQ(drain(drainer_, *channel_, 256), 0u);
  EXPECT_EQ(drainer_.glances.made, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GlancesTest,
                         ::testing::Values(LaneKind::segments, LaneKind::ring,
                                           LaneKind::moodycamel),
                         [](const auto& p) { return tests::name_of(p.param); });

/// A feeder that is stopped while it puts a newer event in an older one's place holds up that lane
/// and not the thread.
TEST(GlancesOfKeysTest, AnEventThatIsBeingReplacedIsNotWaitedFor) {
  const auto workers = tests::resting_workers();
  const auto channel = make_channel(workers);
  const AttachedSubscriber attached(*channel, [](const engine::Run&) {});
  LaneOptions options;
  options.capacity = 4;
  options.kind = LaneKind::ring;
  options.coalesce = true;
  Lane* const lane = channel->take_lane(options, *channel);
  ASSERT_NE(lane, nullptr);
  ASSERT_EQ(push_number(*lane, 1), Pushed::accepted);
  lane->slots.claims[0].store(Lane::kReplacing);
  Drainer drainer;
  drainer.glances.most = 7;
  EXPECT_EQ(drain(drainer, *channel, 256), 0u);
  EXPECT_EQ(drainer.glances.made, 7u);
  lane->slots.claims[0].store(Lane::kQueued);
  EXPECT_EQ(drain(drainer, *channel, 256), 1u);
}

}  // namespace
}  // namespace ringmain::engine
