// What does each way of publishing return, count and deliver?
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class PublishTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  [[nodiscard]] static PublisherOptions options(std::uint32_t capacity = 65536) {
    PublisherOptions o;
    o.capacity_events = capacity;
    o.lane = GetParam();
    return o;
  }
  Publisher<Tick> publisher(const PublisherOptions& o) {
    return std::move(ticks_.publisher(o)).value();
  }
  /// Holds the worker up, so that nothing is delivered until the door opens.
  Subscription hold_up(Door& door) {
    return ticks_.subscribe([&door](const Tick&) { door.pass(); });
  }

  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
};

TEST_P(PublishTest, WhatIsPublishedIsDelivered) {
  std::vector<std::uint64_t> got;
  const Subscription sub = ticks_.subscribe([&](const Tick& t) { got.push_back(t.n); });
  auto p = publisher(options());
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(p.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(got.size(), 1000u);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(got[i], i);
}

TEST_P(PublishTest, NothingIsMadeWhenNobodyListens) {
  auto p = publisher(options());
  bool made = false;
  const auto make = [&made]() noexcept {
    made = true;
    return Tick{1};
  };
  EXPECT_FALSE(p.wanted());
  EXPECT_EQ(p.publish_with(make), PublishCode::unheard);
  EXPECT_EQ(ticks_.publish_with(make), PublishCode::unheard);
  EXPECT_FALSE(made);
  EXPECT_EQ(p.ledger().offered, 0u);
  const Subscription sub = ticks_.subscribe([](const Tick&) {});
  EXPECT_TRUE(p.wanted());
  EXPECT_TRUE(ticks_.wanted());
  EXPECT_EQ(p.publish_with(make), PublishCode::accepted);
  EXPECT_TRUE(made);
}

TEST_P(PublishTest, WhateverMakesAnEventIsCalledOnceWhereItStands) {
  // Small and trivially copyable makers may be copied; one with a state, or one that can only be
  // moved, must not be. With an inline subscriber the publish takes the slow path: both are tried.
  for (const bool judged : {false, true}) {
    std::vector<std::uint64_t> got;
    const Subscription sub = ticks_.subscribe([&](const Tick& t) { got.push_back(t.n); });
    Subscription judge;
    if (judged) judge = ticks_.subscribe_inline([](const Tick&) { return Verdict::allow(); });
    auto p = publisher(options());
    auto counts = [calls = std::uint64_t{0}]() mutable noexcept { return Tick{++calls}; };
    EXPECT_EQ(p.publish_with(counts), PublishCode::accepted);
    EXPECT_EQ(p.publish_with(counts), PublishCode::accepted);
    auto owns = [three = std::make_unique<std::uint64_t>(3)]() noexcept { return Tick{*three}; };
    EXPECT_EQ(p.publish_with(owns), PublishCode::accepted);
    const std::array<std::uint64_t, 32> large{4};
    EXPECT_EQ(p.publish_with([large]() noexcept { return Tick{large[0]}; }), PublishCode::accepted);
    EXPECT_EQ(p.publish_with([&large]() noexcept { return Tick{large[0] + 1}; }),
              PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
    EXPECT_EQ(got, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(counts().n, 3u);
  }
}

TEST_P(PublishTest, AFullPublisherSaysSoAndItsLedgerBalances) {
  Door door;
  const Subscription sub = hold_up(door);
  auto p = publisher(options(4));
  for (int i = 0; i < 4; ++i) ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  bool made = false;
  EXPECT_EQ(p.publish_with([&made]() noexcept {
    made = true;
    return Tick{};
  }),
            PublishCode::full);
  EXPECT_FALSE(made);
  Ledger l = p.ledger();
  EXPECT_EQ(l.offered, 5u);
  EXPECT_EQ(l.dropped, 1u);
  EXPECT_EQ(l.in_flight, 4u);
  door.open();
  ASSERT_TRUE(bus_.flush(kLong));
  l = p.ledger();
  EXPECT_EQ(l.delivered, 4u);
  EXPECT_EQ(l.in_flight, 0u);
  EXPECT_EQ(l.offered, l.dropped + l.delivered + l.in_flight);
}

TEST_P(PublishTest, ABatchFillsTheRoomAndCountsTheRest) {
  Door door;
  const Subscription sub = hold_up(door);
  auto p = publisher(options(5));
  const std::array<Tick, 8> events{};
  const BatchResult r = p.publish_all(events);
  EXPECT_EQ(r.accepted, 5u);
  EXPECT_EQ(r.refused, 3u);
  EXPECT_EQ(r.last, PublishCode::full);
  door.open();
}

TEST_P(PublishTest, ABatchNobodyListensToIsUnheard) {
  auto p = publisher(options(5));
  const std::array<Tick, 8> events{};
  EXPECT_EQ(p.publish_all(events).last, PublishCode::unheard);
  EXPECT_EQ(p.publish_all(events).accepted, 0u);
  EXPECT_EQ(ticks_.publish_all(events).last, PublishCode::unheard);
}

TEST_P(PublishTest, ABlockingBatchWaitsForRoomAndLosesNothing) {
  std::atomic<std::uint64_t> sum{0};
  const Subscription sub = ticks_.subscribe([&](const Tick& t) { sum += t.n; });
  PublisherOptions o = options(7);
  o.overflow = Overflow::block;
  o.block_us_max = std::chrono::minutes(1);
  auto p = publisher(o);
  std::vector<Tick> events;
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    events.push_back({i});
    expected += i;
  }
  const BatchResult r = p.publish_all(events);
  EXPECT_EQ(r.accepted, 2000u);
  EXPECT_EQ(r.refused, 0u);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(sum, expected);
}

TEST_P(PublishTest, ABlockedPublisherGivesUpAfterItsTime) {
  Door door;
  const Subscription sub = hold_up(door);
  PublisherOptions o = options(1);
  o.overflow = Overflow::block;
  o.block_us_max = microseconds(2000);
  auto p = publisher(o);
  ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  EXPECT_EQ(p.publish({2}), PublishCode::full);
  EXPECT_EQ(p.ledger().dropped, 1u);
  door.open();
}

TEST_P(PublishTest, ABlockedPublisherIsLetGoByStop) {
  Door door;
  Subscription sub = hold_up(door);
  PublisherOptions o = options(1);
  o.overflow = Overflow::block;
  o.block_us_max = microseconds(-1);
  auto p = publisher(o);
  ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  std::thread stopper([&] { EXPECT_EQ(bus_.stop(StopMode::drain, kLong).left, 0u); });
  EXPECT_EQ(p.publish({2}), PublishCode::closed);
  door.open();
  stopper.join();
}

TEST_P(PublishTest, AFullBlockingPublisherInACallbackIsToldThatItWouldDeadlock) {
  PublisherOptions o = options(2);
  o.overflow = Overflow::block;
  o.block_us_max = microseconds(-1);
  auto p = publisher(o);
  std::atomic<int> outcome{-1};
  const Subscription sub = ticks_.subscribe([&](const Tick& t) {
    if (t.n != 0) return;
    PublishResult r;
    while ((r = p.publish({1})) == PublishCode::accepted) {
    }
    outcome = static_cast<int>(r.code);
  });
  auto other = publisher(options());
  ASSERT_EQ(other.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(outcome, static_cast<int>(PublishCode::would_deadlock));
  EXPECT_EQ(ticks_.stats().full, 1u);
}

TEST_P(PublishTest, PublishingWhileMakingIsTooDeep) {
  const Subscription sub = ticks_.subscribe([](const Tick&) {});
  auto p = publisher(options());
  PublishCode inner = PublishCode::accepted;
  EXPECT_EQ(p.publish_with([&]() noexcept {
    inner = p.publish({1}).code;
    return Tick{2};
  }),
            PublishCode::accepted);
  EXPECT_EQ(inner, PublishCode::too_deep);
  EXPECT_EQ(p.ledger().dropped, 1u);
}

TEST_P(PublishTest, ACallbackMayPublishOnItsOwnChannel) {
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks_.subscribe([&](const Tick& t) {
    ++heard;
    if (t.n == 0) return;
    EXPECT_EQ(ticks_.publish({t.n - 1}), PublishCode::accepted);
  });
  auto p = publisher(options());
  ASSERT_EQ(p.publish({100}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return heard == 101; }));
}

TEST_P(PublishTest, WhatAStampSaysIsTrue) {
  std::vector<Stamp> stamps;
  const auto keep = [&](const Tick&, const Stamp& s) { stamps.push_back(s); };
  Subscription sub = ticks_.subscribe(keep);
  auto p = publisher(options());
  auto q = publisher(options());
  const std::int64_t before = engine::now_ns();
  ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  ASSERT_EQ(p.publish({2}), PublishCode::accepted);
  const std::int64_t after = engine::now_ns();
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(q.publish({3}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(stamps.size(), 3u);
  EXPECT_EQ(stamps[0].sequence, 1u);
  EXPECT_EQ(stamps[1].sequence, 2u);
  EXPECT_EQ(stamps[2].sequence, 1u);
  EXPECT_EQ(stamps[0].publisher, stamps[1].publisher);
  EXPECT_NE(stamps[0].publisher, stamps[2].publisher);
  for (const Stamp& s : stamps) EXPECT_EQ(s.time_from, TimeFrom::publisher);
  EXPECT_GE(stamps[0].time_ns, before);
  EXPECT_LE(stamps[1].time_ns, after);
}

TEST_P(PublishTest, WithoutStampedSubscribersTheWorkerSaysWhen) {
  std::vector<Stamp> stamps;
  const Subscription sub = ticks_.subscribe_batch([&](Batch<Tick> batch) {
    for (std::size_t i = 0; i < batch.size(); ++i) stamps.push_back(batch.stamp(i));
  });
  auto p = publisher(options());
  const std::int64_t before = engine::now_ns();
  ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(stamps.size(), 1u);
  EXPECT_EQ(stamps[0].time_from, TimeFrom::worker);
  EXPECT_GE(stamps[0].time_ns, before);
  EXPECT_LE(stamps[0].time_ns, engine::now_ns());
}

TEST_P(PublishTest, ASourcesTimeIsKept) {
  std::vector<Stamp> stamps;
  const Subscription sub =
      ticks_.subscribe([&](const Tick&, const Stamp& s) { stamps.push_back(s); });
  PublisherOptions o = options();
  o.source_time = true;
  auto p = publisher(o);
  ASSERT_EQ(p.publish_at({1}, 12345), PublishCode::accepted);
  ASSERT_EQ(p.publish_at({2}, -7), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(stamps.size(), 2u);
  EXPECT_EQ(stamps[0].time_ns, 12345);
  EXPECT_EQ(stamps[1].time_ns, -7);
  EXPECT_EQ(stamps[0].time_from, TimeFrom::source);
}

TEST_P(PublishTest, ATimeGivenByAPublisherThatIsNoSourceIsNotTakenForItsOwn) {
  std::vector<Stamp> stamps;
  const Subscription sub = ticks_.subscribe_batch([&](Batch<Tick> b) {
    for (std::size_t i = 0; i < b.size(); ++i) stamps.push_back(b.stamp(i));
  });
  auto p = publisher(options());
  ASSERT_EQ(p.publish_at({1}, 12345), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  ASSERT_EQ(stamps.size(), 1u);
  EXPECT_NE(stamps[0].time_ns, 12345);
  EXPECT_EQ(stamps[0].time_from, TimeFrom::worker);
}

TEST_P(PublishTest, AfterStopEverythingIsClosed) {
  Subscription sub = ticks_.subscribe([](const Tick&) {});
  auto p = publisher(options());
  bus_.stop();
  EXPECT_EQ(p.publish({1}), PublishCode::closed);
  EXPECT_EQ(ticks_.publish({1}), PublishCode::closed);
  EXPECT_EQ(p.publish_at({1}, 1), PublishCode::closed);
  const std::array<Tick, 3> events{};
  EXPECT_EQ(p.publish_all(events).last, PublishCode::closed);
  EXPECT_EQ(p.publish_all(events).refused, 3u);
  sub.reset();
  EXPECT_EQ(p.publish({1}), PublishCode::closed);
  EXPECT_EQ(ticks_.publish_all(events).last, PublishCode::closed);
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_P(PublishTest, APublisherOutlivesItsBus) {
  Publisher<Tick> p;
  EXPECT_FALSE(p);
  EXPECT_EQ(p.publish({1}), PublishCode::closed);
  EXPECT_EQ(p.publish_all(std::array<Tick, 2>{}).refused, 2u);
  EXPECT_FALSE(p.wanted());
  EXPECT_EQ(p.ledger().offered, 0u);
  {
    Bus other(with_workers(1));
    const Subscription sub = other.channel<Tick>().subscribe([](const Tick&) {});
    p = std::move(other.channel<Tick>().publisher(options())).value();
    ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  }
  EXPECT_TRUE(p);
  EXPECT_EQ(p.publish({2}), PublishCode::closed);
  EXPECT_EQ(p.ledger().delivered, 1u);
}

TEST_P(PublishTest, OptionsThatCannotHoldAreRefusedWithASentence) {
  auto none = ticks_.publisher(options(0));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Error::Code::refused);
  EXPECT_NE(none.error().message.find("capacity_events"), std::string::npos);
  PublisherOptions o = options();
  o.realtime = true;
  o.overflow = Overflow::block;
  auto waits = ticks_.publisher(o);
  ASSERT_FALSE(waits);
  EXPECT_EQ(waits.error().code, Error::Code::refused);
}

TEST_P(PublishTest, ARealtimePublisherIsHeardThoughItWakesNobody) {
  BusOptions bo = with_workers(1);
  bo.realtime_us_max = microseconds(1000);
  bo.spin_us = microseconds(0);
  Bus bus(bo);
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
  PublisherOptions o = options();
  o.realtime = true;
  auto p = std::move(ticks.publisher(o)).value();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    ASSERT_EQ(p.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(eventually([&] { return heard == i; }));
  }
}

TEST_P(PublishTest, TheLatencyOfEveryNthEventIsMeasured) {
  ChannelOptions o;
  o.latency_every = 10;
  o.lanes = GetParam();
  auto& channel = *bus_.configure<Tick>("test.measured", o).value();
  const Subscription sub = channel.subscribe([](const Tick&) {});
  for (const std::uint32_t capacity : {1u, 9u, 10u, 11u, 1000u}) {
    PublisherOptions po = options(capacity);
    po.overflow = Overflow::block;
    auto p = std::move(channel.publisher(po)).value();
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(p.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  const ChannelStats s = channel.stats();
  EXPECT_EQ(s.latency_count, 500u);
  EXPECT_GT(s.latency_max_ns, 0u);
  EXPECT_LE(s.latency_p50_ns, s.latency_p90_ns);
  EXPECT_LE(s.latency_p90_ns, s.latency_p99_ns);
  EXPECT_LE(s.latency_p99_ns, s.latency_max_ns);
}

INSTANTIATE_TEST_SUITE_P(BothKinds, PublishTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) {
                           return p.param == LaneKind::ring         ? "ring"
                                  : p.param == LaneKind::moodycamel ? "moodycamel"
                                                                    : "segments";
                         });

}  // namespace
}  // namespace ringmain::tests
