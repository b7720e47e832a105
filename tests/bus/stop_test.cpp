// How does a bus end: drained, aborted, out of time, in a callback, or by many at once?
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

TEST(StopTest, ItIsRefusedInACallback) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> outcome{-1};
  const Subscription sub = ticks.subscribe([&](const Tick&) { outcome = bus.stop().refused; });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return outcome == 1; }));
  EXPECT_EQ(ticks.publish({1}), PublishCode::accepted);
}

TEST(StopTest, DrainDeliversAllThatWasAcceptedAlsoToMailboxes) {
  for (int round = 0; round < 50; ++round) {
    Bus bus(with_workers(1 + static_cast<unsigned>(round) % 3));
    auto& ticks = bus.channel<Tick>();
    SubscribeOptions o;
    o.served = Served::isolated;
    std::atomic<std::uint64_t> shared{0};
    std::atomic<std::uint64_t> isolated{0};
    const Subscription a = ticks.subscribe([&](const Tick&) { ++shared; });
    const Subscription b = ticks.subscribe([&](const Tick&) { ++isolated; }, o);
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    const Stopped s = bus.stop(StopMode::drain, kLong);
    EXPECT_FALSE(s.refused);
    EXPECT_EQ(s.left, 0u);
    EXPECT_TRUE(s.stuck.empty());
    EXPECT_EQ(shared, 100u);
    EXPECT_EQ(isolated, 100u);
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST(StopTest, NothingIsSaidToBeAtFaultBesidePublishersThatGoOn) {
  for (int round = 0; round < 40; ++round) {
    Bus bus(with_workers(1 + static_cast<unsigned>(round) % 2));
    auto& ticks = bus.channel<Tick>();
    std::atomic<std::uint64_t> heard{0};
    const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
    std::atomic<bool> over{false};
    std::atomic<int> refused{0};
    std::vector<std::thread> publishers;
    for (int t = 0; t < 3; ++t) {
      publishers.emplace_back([&] {
        auto publisher = ticks.publisher();
        bool told = false;
        for (std::uint64_t i = 0; !over; ++i) {
          if (publisher.publish({i}) == PublishCode::closed && !std::exchange(told, true))
            ++refused;
        }
      });
    }
    const auto checked = bus.verify_accounting();
    EXPECT_TRUE(checked) << checked.error().message;
    const Stopped s = bus.stop(StopMode::drain, kLong);
    EXPECT_TRUE(s.unbalanced.empty()) << s.unbalanced.front();
    EXPECT_TRUE(eventually([&] { return refused == 3; }));
    for (int look = 0; look < 20; ++look) {
      const auto again = bus.verify_accounting();
      EXPECT_TRUE(again) << again.error().message;
    }
    over = true;
    for (auto& p : publishers) p.join();
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST(StopTest, AStuckCallbackIsNamedAndTheRestIsCounted) {
  std::atomic<int> living{0};
  Door door;
  Subscription sub;
  {
    Bus bus(with_workers(2));
    auto& ticks = bus.channel<Tick>();
    SubscribeOptions o;
    o.name = "the stuck one";
    sub = ticks.subscribe([&, c = Counted(living)](const Tick&) { door.pass(); }, o);
    ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
    ASSERT_TRUE(door.await_arrival());
    for (std::uint64_t i = 1; i < 50; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    const Stopped s = bus.stop(StopMode::drain, milliseconds(5));
    EXPECT_EQ(s.stuck, std::vector<std::string>{"the stuck one"});
    EXPECT_EQ(s.left, 50u) << "the one that is running counts: nobody knows how it ends";
    EXPECT_EQ(ticks.publish({1}), PublishCode::closed);
    const Stopped again = bus.stop(StopMode::drain, milliseconds(5));
    EXPECT_EQ(again.stuck.size(), 1u);
    door.open();
    EXPECT_EQ(sub.reset(), Detached::done);
    EXPECT_EQ(living, 0);
    EXPECT_EQ(door.arrived(), 1) << "what was left is not delivered after all";
    EXPECT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
    EXPECT_TRUE(bus.verify_accounting());
    EXPECT_EQ(ticks.stats().delivered + ticks.stats().discarded, 50u);
  }
}

TEST(StopTest, ADeadlineThatPassesInABacklogCountsExactlyWhatWasNotDelivered) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto& unheard = bus.channel<Tock>();
  Door door;
  std::atomic<std::uint64_t> delivered{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) {
    door.pass();
    ++delivered;
  });
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 1; i < 1000; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  std::thread opener([&] {
    // Only after the deadline, which is when the rest begins to be discarded.
    ASSERT_TRUE(eventually([&] { return unheard.publish({}) == PublishCode::closed; }));
    door.open();
  });
  const Stopped first = bus.stop(StopMode::drain, nanoseconds(0));
  opener.join();
  const Stopped last = bus.stop(StopMode::drain, kLong);
  const ChannelStats s = ticks.stats();
  EXPECT_EQ(s.pending, 0u);
  EXPECT_EQ(s.delivered, delivered);
  EXPECT_EQ(s.delivered + s.discarded, 1000u);
  EXPECT_GE(first.left, s.discarded);
  EXPECT_TRUE(last.stuck.empty());
}

TEST(StopTest, PulledEventsAreNotLeftOver) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  auto box = ticks.mailbox();
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  Door door;
  Subscription sub = tocks.subscribe([&](const Tock&) { door.pass(); });
  ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(bus.stop(StopMode::drain, milliseconds(5)).left, 1u);
  door.open();
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(box.drain([](const Tick&) {}), 10u);
}

TEST(StopTest, ManyMayStopAtOnceAndASecondOneKeepsItsDeadline) {
  for (int round = 0; round < 20; ++round) {
    Bus bus(with_workers(2));
    auto& ticks = bus.channel<Tick>();
    std::atomic<std::uint64_t> heard{0};
    const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] { EXPECT_EQ(bus.stop(StopMode::drain, kLong).left, 0u); });
    for (auto& t : threads) t.join();
    EXPECT_EQ(heard, 100u);
  }
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  auto& tocks = bus.channel<Tock>();  // one made during a stop() is closed before the rest
  std::thread patient([&] { EXPECT_EQ(bus.stop(StopMode::drain, kLong).left, 0u); });
  ASSERT_TRUE(eventually([&] { return tocks.publish({}) == PublishCode::closed; }));
  EXPECT_EQ(bus.stop(StopMode::drain, milliseconds(1)).left, 1u);  // while the patient one waits
  door.open();
  patient.join();
}

TEST(StopTest, ABusDestroyedInACallbackDoesNoHarm) {
  Bus outer(with_workers(1));
  auto& ticks = outer.channel<Tick>();
  std::atomic<int> destroyed{0};
  const Subscription sub = ticks.subscribe([&](const Tick& t) {
    auto inner = std::make_unique<Bus>(with_workers(1));
    Subscription heard;
    if (t.n == 1) {
      heard = inner->channel<Tick>().subscribe([](const Tick&) {});
      (void)inner->channel<Tick>().publish({1});
    }
    inner.reset();
    ++destroyed;
  });
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return destroyed == 2; }));
}

TEST(StopTest, WhatIsMadeAfterStopIsHarmless) {
  Bus bus(with_workers(1));
  bus.stop();
  auto& late = bus.channel<Tick>();
  Subscription shared = late.subscribe([](const Tick&) {});
  SubscribeOptions o;
  o.served = Served::isolated;
  Subscription isolated = late.subscribe([](const Tick&) {}, o);
  Subscription pattern = bus.subscribe(">", [](const EventView&) {});
  auto box = late.mailbox();
  EXPECT_EQ(late.publish({1}), PublishCode::closed);
  EXPECT_FALSE(box.wait_for(kForEver));
  EXPECT_EQ(shared.reset(), Detached::done);
  EXPECT_EQ(isolated.reset(), Detached::done);
  EXPECT_EQ(pattern.reset(), Detached::done);
}

}  // namespace
}  // namespace ringmain::tests
