// How many events does each policy hold, on each kind of lane and in each kind of mailbox, and
// where do losses show?
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

std::vector<std::uint64_t> from_to(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> all;
  for (; from < to; ++from) all.push_back(from);
  return all;
}

class OverflowTest : public ::testing::TestWithParam<std::tuple<LaneKind, Overflow>> {
 protected:
  [[nodiscard]] static bool evicts() { return std::get<1>(GetParam()) == Overflow::drop_oldest; }
  [[nodiscard]] static PublisherOptions options(std::uint32_t capacity) {
    PublisherOptions o;
    o.capacity_events = capacity;
    o.lane = std::get<0>(GetParam());
    o.overflow = std::get<1>(GetParam());
    o.block_us_max = microseconds(0);
    return o;
  }
  Publisher<Tick> publisher(const PublisherOptions& o) {
    return std::move(ticks_.publisher(o)).value();
  }
  /// The worker waits in front of the door, with one event of another publisher in its hands.
  Subscription hold_up(Door& door) {
    Subscription sub = ticks_.subscribe([this, &door](const Tick& t, const Stamp& s) {
      if (t.n == kStopper) {
        door.pass();
        return;
      }
      got_.push_back(t.n);
      sequences_.push_back(s.sequence);
    });
    ticks_.post({kStopper});
    EXPECT_TRUE(door.await_arrival());
    return sub;
  }

  enum : std::uint64_t { kStopper = 1u << 30 };
  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
  std::vector<std::uint64_t> got_, sequences_;
};

TEST_P(OverflowTest, TheBoundIsExactAndEveryLossIsSeenThreeTimes) {
  for (const std::uint64_t capacity : {1u, 2u, 5u, 32u, 33u, 300u}) {
    got_.clear();
    sequences_.clear();
    Door door;
    const Subscription sub = hold_up(door);
    const ChannelStats before = ticks_.stats();
    auto p = publisher(options(static_cast<std::uint32_t>(capacity)));
    const std::uint64_t offered = 3 * capacity;
    const std::uint64_t room = evicts() ? 2 * capacity : capacity;
    std::uint64_t refused = 0;
    for (std::uint64_t i = 0; i < offered; ++i) {
      const PublishResult r = p.publish({i});
      ASSERT_EQ(r, i < room ? PublishCode::accepted : PublishCode::full) << capacity << ", " << i;
      refused += r ? 0u : 1u;  // 1: in the result
    }
    EXPECT_EQ(p.ledger().in_flight, room);
    door.open();
    ASSERT_TRUE(bus_.flush(kLong));
    const std::uint64_t evicted = room - capacity;
    EXPECT_EQ(got_, from_to(evicted, room)) << capacity;
    const Ledger l = p.ledger();  // 2: in the ledger
    EXPECT_EQ(l.offered, offered);
    EXPECT_EQ(l.dropped, evicted + refused);
    EXPECT_EQ(l.delivered, capacity);
    EXPECT_EQ(l.in_flight, 0u);
    const ChannelStats after = ticks_.stats();
    EXPECT_EQ(after.evicted - before.evicted, evicted);
    EXPECT_EQ(after.full - before.full, refused);
    ASSERT_EQ(p.publish({offered}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
    EXPECT_EQ(sequences_.front(), evicted + 1);  // 3: in the stream, as gaps
    EXPECT_EQ(sequences_.back(), offered + 1);
    EXPECT_TRUE(bus_.verify_accounting());
  }
}

TEST_P(OverflowTest, StopFindsWhatWasPushedOutAccountedFor) {
  for (const StopMode mode : {StopMode::drain, StopMode::abort}) {
    Bus bus(with_workers(1));
    auto& ticks = bus.channel<Tick>();
    Door door;
    Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); });
    auto p = std::move(ticks.publisher(options(5))).value();
    ASSERT_EQ(p.publish({0}), PublishCode::accepted);
    ASSERT_TRUE(door.await_arrival());
    for (std::uint64_t i = 1; i < 20; ++i) (void)p.publish({i});
    std::thread stopper([&] { EXPECT_EQ(bus.stop(mode, kLong).left, 0u); });
    ASSERT_TRUE(eventually([&] { return p.publish({99}) == PublishCode::closed; }));
    door.open();
    stopper.join();
    const ChannelStats s = ticks.stats();
    EXPECT_EQ(s.pending, 0u);
    EXPECT_EQ(s.accepted, evicts() ? 10u : 5u);
    EXPECT_EQ(s.evicted, evicts() ? 4u : 0u);
    EXPECT_EQ(s.delivered + s.discarded, evicts() ? 6u : 5u);
    EXPECT_TRUE(bus.verify_accounting());
    const Ledger l = p.ledger();
    EXPECT_EQ(l.offered, l.dropped + l.delivered);
  }
}

TEST_P(OverflowTest, ABatchIsHeldByTheSameBound) {
  Door door;
  const Subscription sub = hold_up(door);
  auto p = publisher(options(5));
  std::array<Tick, 16> events{};
  for (std::uint64_t i = 0; i < events.size(); ++i) events[i].n = i;
  const BatchResult r = p.publish_all(events);
  EXPECT_EQ(r.accepted, evicts() ? 10u : 5u);
  EXPECT_EQ(r.accepted + r.refused, events.size());
  EXPECT_EQ(r.last, PublishCode::full);
  door.open();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(got_, evicts() ? from_to(5, 10) : from_to(0, 5));
}

TEST_P(OverflowTest, ARealtimePublisherHasItToo) {
  PublisherOptions o = options(4);
  o.realtime = true;
  const auto made = ticks_.publisher(o);
  EXPECT_EQ(made.has_value(), o.overflow != Overflow::block);
  if (!made) return;
  Door door;
  const Subscription sub = hold_up(door);
  auto p = publisher(o);
  for (std::uint64_t i = 0; i < 20; ++i) (void)p.publish({i});
  door.open();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(got_, evicts() ? from_to(4, 8) : from_to(0, 4));
}

std::string name_of(const ::testing::TestParamInfo<OverflowTest::ParamType>& p) {
  const LaneKind lane = std::get<0>(p.param);
  const std::string kind = lane == LaneKind::ring         ? "ring_"
                           : lane == LaneKind::moodycamel ? "moodycamel_"
                                                          : "segments_";
  switch (std::get<1>(p.param)) {
    case Overflow::drop_newest:
      return kind + "newest";
    case Overflow::drop_oldest:
      return kind + "oldest";
    case Overflow::block:
      break;
  }
  return kind + "block";
}
INSTANTIATE_TEST_SUITE_P(
    Policies, OverflowTest,
    ::testing::Combine(::testing::Values(LaneKind::moodycamel, LaneKind::ring, LaneKind::segments),
                       ::testing::Values(Overflow::drop_newest, Overflow::drop_oldest,
                                         Overflow::block)),
    name_of);

TEST(OverflowOptionsTest, WhatCannotHoldIsRefusedWithASentence) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  for (const Served served : {Served::shared, Served::isolated, Served::own_thread}) {
    SubscribeOptions o;
    o.served = served;
    o.overflow = Overflow::block;
    EXPECT_THROW((void)ticks.subscribe([c = Counted(living)](const Tick&) {}, o),
                 std::invalid_argument);
    EXPECT_THROW((void)bus.subscribe(
                     ">", [c = Counted(living)](const EventView&) {}, o),
                 std::invalid_argument);
    EXPECT_THROW((void)ticks.mailbox(o), std::invalid_argument);
    EXPECT_THROW((void)bus.mailbox(">", o), std::invalid_argument);
  }
  SubscribeOptions shared;
  shared.overflow = Overflow::drop_oldest;
  EXPECT_THROW((void)ticks.subscribe([c = Counted(living)](const Tick&) {}, shared),
               std::invalid_argument);
  EXPECT_EQ(living, 0);
  EXPECT_EQ(ticks.stats().subscribers, 0u);
}

TEST(OverflowOptionsTest, AQueueOfNoEventsIsRefusedWhereThereIsAQueue) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  const auto hear = [&living] { return [c = Counted(living)](const Tick&) {}; };
  SubscribeOptions o;
  o.queue_events = 0;
  EXPECT_TRUE(ticks.subscribe(hear(), o).attached());  // it has none
  EXPECT_THROW((void)ticks.subscribe_latest(&Tick::n, hear(), o), std::invalid_argument);
  EXPECT_THROW((void)ticks.mailbox(o), std::invalid_argument);
  EXPECT_THROW((void)bus.mailbox(">", o), std::invalid_argument);
  OrderOptions ordered;
  ordered.queue_events = 0;
  EXPECT_THROW((void)bus.subscribe_ordered<Tick>(hear(), ordered), std::invalid_argument);
  for (const Served served : {Served::isolated, Served::own_thread}) {
    o.served = served;
    const auto refused = ticks.try_subscribe(hear(), o);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Error::Code::refused);
    EXPECT_NE(refused.error().message.find("queue_events is 0"), std::string::npos);
  }
  EXPECT_EQ(living, 0);
  EXPECT_EQ(ticks.stats().subscribers, 0u);
}

}  // namespace
}  // namespace ringmain::tests
