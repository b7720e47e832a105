// What may an inline callback do to the bus that is calling it?
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class InlineNestedTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  void TearDown() override {
    ASSERT_TRUE(bus_.flush(kLong));
    const auto verified = bus_.verify_accounting();
    EXPECT_TRUE(verified) << verified.error().message;
  }
  [[nodiscard]] static PublisherOptions options() {
    PublisherOptions o;
    o.lane = GetParam();
    return o;
  }
  Publisher<Tick> publisher(const PublisherOptions& o = options()) {
    return std::move(ticks_.publisher(o)).value();
  }
  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
};

TEST_P(InlineNestedTest, EightMayNestAndTheNinthIsTooDeep) {
  int calls = 0;
  PublishResult innermost;
  auto p = publisher();
  const Subscription hears = ticks_.subscribe([](const Tick&) {});
  const Subscription sub = ticks_.subscribe_inline([&](const Tick& t) {
    ++calls;
    const PublishResult r = p.publish({t.n + 1});
    if (r != PublishCode::accepted) innermost = r;
  });
  EXPECT_EQ(p.publish({1}), PublishCode::accepted);
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(innermost, PublishCode::too_deep);
  EXPECT_EQ(ticks_.stats().too_deep, 1u);
  EXPECT_EQ(ticks_.stats().accepted, 8u);
  EXPECT_EQ(p.publish({1}), PublishCode::accepted) << "and it is over with";
  EXPECT_EQ(calls, 16);
}

TEST_P(InlineNestedTest, TheDepthIsTheThreadsOverAllChannels) {
  auto& tocks = bus_.channel<Tock>();
  int calls = 0;
  std::vector<PublishCode> refused;
  const auto note = [&](PublishResult r) {
    if (r != PublishCode::accepted) refused.push_back(r.code);
  };
  const Subscription a = ticks_.subscribe_inline([&](const Tick&) {
    ++calls;
    note(tocks.publish({}));
  });
  const Subscription b = tocks.subscribe_inline([&](const Tock&) {
    ++calls;
    note(ticks_.publish({}));
  });
  EXPECT_EQ(ticks_.publish({}), PublishCode::accepted);
  EXPECT_EQ(calls, 8);
  EXPECT_EQ(refused, std::vector<PublishCode>{PublishCode::too_deep});
}

TEST_P(InlineNestedTest, WhatItPublishesOnTheSameLaneComesBeforeTheEventItSaw) {
  std::vector<std::uint64_t> heard;
  std::vector<std::uint64_t> sequences;
  const Subscription hears = ticks_.subscribe([&](const Tick& t, const Stamp& stamp) {
    heard.push_back(t.n);
    sequences.push_back(stamp.sequence);
  });
  auto p = publisher();
  const Subscription sees = ticks_.subscribe_inline([&](const Tick& t) {
    if (t.n < 100) {
      EXPECT_EQ(p.publish({t.n + 100}), PublishCode::accepted);
    }
  });
  for (std::uint64_t n = 1; n <= 3; ++n) EXPECT_EQ(p.publish({n}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{101, 1, 102, 2, 103, 3}));
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_P(InlineNestedTest, PublishingOnTheSameLaneWhileBuildingIsTooDeepHereToo) {
  const Subscription sub = ticks_.subscribe_inline([](const Tick&) {});
  auto p = publisher();
  PublishResult inner;
  EXPECT_EQ(p.publish_with([&]() noexcept {
    inner = p.publish({2});
    return Tick{1};
  }),
            PublishCode::accepted);
  EXPECT_EQ(inner, PublishCode::too_deep);
}

TEST_P(InlineNestedTest, ABlockingPublisherWaitsAfterThePhaseAndNotInIt) {
  Door door;
  const Subscription hears = ticks_.subscribe([&](const Tick&) { door.pass(); });
  PublisherOptions o = options();
  o.capacity_events = 1;
  o.overflow = Overflow::block;
  o.block_us_max = std::chrono::minutes(1);
  auto p = publisher(o);
  PublishResult inner;
  std::atomic<int> seen{0};
  const Subscription sees = ticks_.subscribe_inline([&](const Tick& t) {
    ++seen;
    if (t.n == 2) inner = p.publish({100});
  });
  EXPECT_EQ(p.publish({1}), PublishCode::accepted);
  std::thread opens([&] {
    EXPECT_TRUE(eventually([&] { return seen == 3; }));
    door.open();
  });
  EXPECT_EQ(p.publish({2}), PublishCode::accepted);
  opens.join();
  EXPECT_EQ(inner, PublishCode::would_deadlock);
}

TEST_P(InlineNestedTest, FlushAndStopAreRefusedInIt) {
  bool flushed = true;
  bool refused = false;
  const Subscription sub = ticks_.subscribe_inline([&](const Tick&) {
    flushed = bus_.flush(kLong);
    refused = bus_.stop().refused;
  });
  EXPECT_EQ(ticks_.publish({1}), PublishCode::accepted);
  EXPECT_FALSE(flushed);
  EXPECT_TRUE(refused);
}

INSTANTIATE_TEST_SUITE_P(Lanes, InlineNestedTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) {
                           return p.param == LaneKind::ring         ? "ring"
                                  : p.param == LaneKind::moodycamel ? "moodycamel"
                                                                    : "segments";
                         });

}  // namespace
}  // namespace ringmain::tests
