// What does a subscriber with a mailbox of its own cost the others, and what does it see itself?
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/accounts.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

TEST(IsolatedTest, ASlowOneHoldsUpNobodyElse) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  Door door;
  SubscribeOptions o;
  o.served = Served::isolated;
  const Subscription slow = ticks.subscribe([&](const Tick&) { door.pass(); }, o);
  std::atomic<std::uint64_t> heard{0};
  const Subscription quick = ticks.subscribe([&](const Tick&) { ++heard; });
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 2; i < 200; ++i) {
    ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(eventually([&] { return heard == i; }));
  }
  door.open();
}

TEST(IsolatedTest, AFullMailboxDropsAndCountsItsOwnLossOnly) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  Door door;
  SubscribeOptions o;
  o.served = Served::isolated;
  o.queue_events = 4;
  std::vector<std::uint64_t> sequences;
  const Subscription slow = ticks.subscribe(
      [&](const Tick&, const Stamp& s) {
        door.pass();
        sequences.push_back(s.sequence);
      },
      o);
  std::atomic<std::uint64_t> heard{0};
  const Subscription quick = ticks.subscribe([&](const Tick&) { ++heard; });
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return heard == 10; }));
  ASSERT_TRUE(eventually([&] { return slow.stats().offered == 10; }));
  EXPECT_EQ(slow.stats().dropped, 6u);
  EXPECT_EQ(slow.stats().pending, 4u);
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  expect_i3(slow.stats());
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  ASSERT_EQ(ticks.publish({10}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sequences.back(), 11u);  // the gap is the loss, in the publisher's own numbers
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(IsolatedTest, StampsComeThroughTheMailboxUnchanged) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::vector<Stamp> shared;
  std::vector<Stamp> isolated;
  SubscribeOptions o;
  o.served = Served::isolated;
  const Subscription a = ticks.subscribe([&](const Tick&, const Stamp& s) { shared.push_back(s); });
  const Subscription b =
      ticks.subscribe([&](const Tick&, const Stamp& s) { isolated.push_back(s); }, o);
  PublisherOptions po;
  po.source_time = true;
  auto source = std::move(ticks.publisher(po)).value();
  auto plain = ticks.publisher();
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(source.publish_at({1}, 1000 + i), PublishCode::accepted);
    ASSERT_EQ(plain.publish({1}), PublishCode::accepted);
  }
  ASSERT_TRUE(bus.flush(kLong));
  ASSERT_EQ(shared.size(), 100u);
  ASSERT_EQ(isolated.size(), 100u);
  const auto by_publisher = [](const Stamp& x, const Stamp& y) {
    return std::pair(x.publisher, x.sequence) < std::pair(y.publisher, y.sequence);
  };
  std::sort(shared.begin(), shared.end(), by_publisher);
  std::sort(isolated.begin(), isolated.end(), by_publisher);
  for (std::size_t i = 0; i < shared.size(); ++i) {
    EXPECT_EQ(shared[i].sequence, isolated[i].sequence);
    EXPECT_EQ(shared[i].publisher, isolated[i].publisher);
    EXPECT_EQ(shared[i].time_ns, isolated[i].time_ns);
    EXPECT_EQ(shared[i].time_from, isolated[i].time_from);
  }
}

TEST(IsolatedTest, WhatAnAbortDiscardsIsInItsAccount) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  Door door;
  SubscribeOptions o;
  o.served = Served::isolated;
  const Subscription slow = ticks.subscribe([&](const Tick&) { door.pass(); }, o);
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return slow.stats().pending == 101; }));
  auto& tocks = bus.channel<Tock>();  // one made during a stop() is closed before the rest
  std::thread stopper([&] { bus.stop(StopMode::abort, kLong); });
  ASSERT_TRUE(eventually([&] { return tocks.publish({}) == PublishCode::closed; }));
  door.open();
  stopper.join();
  expect_i3(slow.stats());
}

TEST(IsolatedTest, CapturesAreNotLeakedWhenThereIsNoRoomForAMailbox) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::vector<Mailbox<Tick>> boxes;
  SubscribeOptions small;
  small.queue_events = 1;
  while (boxes.size() < 4095) boxes.push_back(ticks.mailbox(small));
  std::atomic<int> living{0};
  SubscribeOptions o;
  o.served = Served::isolated;
  EXPECT_THROW((void)ticks.subscribe([c = Counted(living)](const Tick&) {}, o), std::bad_alloc);
  EXPECT_EQ(living, 0);
  EXPECT_THROW((void)bus.subscribe(">", [c = Counted(living)](const EventView&) {}),
               std::bad_alloc);
  EXPECT_EQ(living, 0);
  boxes.pop_back();
  const Subscription sub = ticks.subscribe([c = Counted(living)](const Tick&) {}, o);
  EXPECT_EQ(living, 1);
}

}  // namespace
}  // namespace ringmain::tests
