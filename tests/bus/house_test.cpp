// What does the bus tell of itself: which subscriber is slow, what was lost? Does telling disturb
// anybody?
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/bus_events.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// What a subscriber was told, for the test's own thread to read.
template <class E>
class Told {
 public:
  explicit Told(Bus& bus)
      : subscription_(bus.channel<E>().subscribe([this](const E& e) {
          const std::lock_guard lock(mutex_);
          all_.push_back(e);
        })) {}
  [[nodiscard]] std::vector<E> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  [[nodiscard]] bool await(std::size_t n) const {
    return eventually([&] { return all().size() >= n; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<E> all_;
  Subscription subscription_;
};

SubscribeOptions named(std::string name, microseconds budget = milliseconds(100)) {
  SubscribeOptions o;
  o.name = std::move(name);
  o.budget_us = budget;
  return o;
}

TEST(WatchdogTest, ASlowCallbackIsNamedWhileItRuns) {
  Bus bus(with_workers(2));
  const Told<SlowSubscriber> told(bus);
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription slow =
      ticks.subscribe([&](const Tick&) { door.pass(); }, named("molasses", milliseconds(2)));
  const Subscription quick = ticks.subscribe([](const Tick&) {}, named("quick"));
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(told.await(1));
  EXPECT_EQ(door.arrived(), 1) << "it is still in there";
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  const auto all = told.all();
  ASSERT_EQ(all.size(), 1u) << "once for one turn";
  EXPECT_EQ(all[0].subscriber.view(), "molasses");
  EXPECT_EQ(all[0].channel.view(), "test.tick");
  EXPECT_EQ(all[0].budget_ns, 2'000'000);
  EXPECT_GE(all[0].running_ns, 2'000'000);
}

TEST(WatchdogTest, AnIsolatedOneIsNamedByItsMailbox) {
  Bus bus(with_workers(3));
  const Told<SlowSubscriber> told(bus);
  auto& ticks = bus.channel<Tick>();
  Door door;
  SubscribeOptions o = named("aside", milliseconds(2));
  o.served = Served::isolated;
  const Subscription slow = ticks.subscribe([&](const Tick&) { door.pass(); }, o);
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(told.await(1));
  door.open();
  EXPECT_EQ(told.all()[0].subscriber.view(), "aside");
  EXPECT_EQ(told.all()[0].channel.view(), "aside");
}

TEST(WatchdogTest, WithoutABudgetNobodyIsWatched) {
  Bus bus(with_workers(2));
  const Told<SlowSubscriber> told(bus);
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  Door free;
  Door watched;
  const Subscription a = ticks.subscribe([&](const Tick&) { free.pass(); }, named("free", {}));
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(free.await_arrival());
  free.open();
  ASSERT_TRUE(bus.flush(kLong));
  const Subscription b =
      tocks.subscribe([&](const Tock&) { watched.pass(); }, named("watched", milliseconds(2)));
  ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(told.await(1));
  watched.open();
  EXPECT_EQ(told.all()[0].subscriber.view(), "watched");
}

TEST(LossTest, WhatPublishersLostIsToldInASumThatIsExact) {
  Bus bus(with_workers(2));
  const Told<LossNotice> told(bus);
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); }, named("", {}));
  PublisherOptions o;
  o.capacity_events = 4;
  auto publisher = ticks.publisher(o).value();
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) refused += publisher.publish({i}) ? 0 : 1;
  const auto sum = [&] {
    std::uint64_t all = 0;
    for (const LossNotice& n : told.all()) all += n.full;
    return all;
  };
  EXPECT_TRUE(eventually([&] { return sum() == refused; })) << sum();
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  ASSERT_EQ(sum(), 996u);
  const LossNotice first = told.all()[0];
  EXPECT_EQ(first.channel.view(), "test.tick");
  EXPECT_FALSE(first.mailbox);
  EXPECT_LT(first.first_ns, first.last_ns);
  EXPECT_EQ(first.all(), first.full);
}

TEST(LossTest, AMailboxesLossIsItsOwn) {
  Bus bus(with_workers(2));
  const Told<LossNotice> told(bus);
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o = named("the small box");
  o.queue_events = 2;
  auto box = ticks.mailbox(o);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  ASSERT_TRUE(told.await(1));
  EXPECT_EQ(told.all()[0].channel.view(), "the small box");
  EXPECT_TRUE(told.all()[0].mailbox);
  EXPECT_EQ(told.all()[0].full, 8u);
}

TEST(LossTest, ALateListenerIsToldWhatNobodyHasHeardOf) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto box = ticks.mailbox([] {
    SubscribeOptions o;
    o.queue_events = 1;
    return o;
  }());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  const Told<LossNotice> told(bus);
  ASSERT_TRUE(told.await(1));
  EXPECT_EQ(told.all()[0].full, 4u);
}

TEST(LossTest, TheLastBurstIsToldBeforeTheBusStops) {
  Bus bus(with_workers(2));
  const Told<LossNotice> told(bus);
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.queue_events = 1;
  auto box = ticks.mailbox(o);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  ASSERT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
  ASSERT_EQ(told.all().size(), 1u);
  EXPECT_EQ(told.all()[0].full, 4u);
}

TEST(WaitingRemovalTest, ARemovalThatWaitsIsNamed) {
  Bus bus(with_workers(2));
  const Told<WaitingRemoval> told(bus);
  auto& ticks = bus.channel<Tick>();
  Door door;
  Subscription stuck =
      ticks.subscribe([&](const Tick&) { door.pass(); }, named("the stuck one", {}));
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(stuck.reset_for(milliseconds(1)), Detached::timeout) << "too short to be told";
  std::thread remover([&] { EXPECT_EQ(stuck.reset(), Detached::done); });
  ASSERT_TRUE(told.await(1));
  door.open();
  remover.join();
  ASSERT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
  ASSERT_EQ(told.all().size(), 1u) << "once per wait";
  EXPECT_EQ(told.all()[0].subscriber.view(), "the stuck one");
  EXPECT_EQ(told.all()[0].channel.view(), "test.tick");
  EXPECT_GE(told.all()[0].waited_ns, 1'000'000'000);
}

TEST(BusEventsTest, APatternHearsThemToo) {
  Bus bus(with_workers(2));
  std::atomic<std::uint64_t> lost{0};
  const Subscription all = bus.subscribe("bus.*", [&](const EventView& e) {
    if (const auto* notice = e.as<LossNotice>()) lost += notice->all();
  });
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.queue_events = 1;
  auto box = ticks.mailbox(o);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return lost == 4; }));
}

TEST(BusEventsTest, WithoutAListenerThereIsNotEvenAChannel) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.queue_events = 1;
  auto box = ticks.mailbox(o);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(bus.channel_names(), std::vector<std::string>{"test.tick"});
}

TEST(BusEventsTest, AnotherTypeUnderTheNameIsTheUsersOwn) {
  Bus bus(with_workers(1));
  std::atomic<int> heard{0};
  const Subscription sub = bus.channel<Plain>("bus.loss").subscribe([&](const Plain&) { ++heard; });
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.queue_events = 1;
  auto box = ticks.mailbox(o);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
  EXPECT_EQ(heard, 0);
}

}  // namespace
}  // namespace ringmain::tests
