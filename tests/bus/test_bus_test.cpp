// Does a bus without threads deliver as it promises, when and in what order, and end as a bus does?
#include "bus/test_bus.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

std::vector<std::uint64_t> numbers(const Heard<Tick>& heard) {
  std::vector<std::uint64_t> all;
  for (const Tick& t : heard) all.push_back(t.n);
  return all;
}

TEST(TestBusTest, NothingIsHeardBeforeDeliver) {
  TestBus bus;
  auto heard = bus.heard<Tick>();
  for (std::uint64_t n = 1; n <= 3; ++n)
    ASSERT_EQ(bus.channel<Tick>().publish({n}), PublishCode::accepted);
  EXPECT_TRUE(heard.empty());
  EXPECT_EQ(bus.queued(), 3u);
  EXPECT_EQ(bus.deliver(), 3u);
  EXPECT_EQ(numbers(heard), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(bus.queued(), 0u);
  EXPECT_EQ(bus.deliver(), 0u);
  EXPECT_EQ(bus.workers(), 0u);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(TestBusTest, CallbacksRunInTheDeliveringThread) {
  TestBus bus;
  std::thread::id in;
  const Subscription sub =
      bus.channel<Tick>().subscribe([&](const Tick&) { in = std::this_thread::get_id(); });
  bus.channel<Tick>().post({1});
  bus.deliver();
  EXPECT_EQ(in, std::this_thread::get_id());
}

TEST(TestBusTest, ALimitStopsAtExactlySoManyEvents) {
  TestBus bus;
  auto heard = bus.heard<Tick>();
  for (std::uint64_t n = 1; n <= 1000; ++n) bus.channel<Tick>().post({n});
  EXPECT_EQ(bus.deliver(1), 1u);
  EXPECT_EQ(heard.size(), 1u);
  EXPECT_EQ(bus.deliver(300), 300u);
  EXPECT_EQ(heard.size(), 301u);
  EXPECT_EQ(heard.back().n, 301u);
  EXPECT_EQ(bus.queued(), 699u);
  EXPECT_EQ(bus.deliver(), 699u);
}

TEST(TestBusTest, ChannelsComeInTheOrderTheyWereMadeAndLanesInTheirs) {
  TestBus bus;
  std::vector<std::string> order;
  auto& one = bus.channel<Plain>("z.first");
  auto& two = bus.channel<Plain>("a.second");
  const auto keep = [&order](std::string name) {
    return [&order, name](const Plain& p) { order.push_back(name + std::to_string(p.n)); };
  };
  const Subscription b = two.subscribe(keep("two "));
  const Subscription a = one.subscribe(keep("one "));
  auto p = one.publisher();
  auto q = one.publisher();
  ASSERT_EQ(two.publish({1}), PublishCode::accepted);
  ASSERT_EQ(q.publish({2}), PublishCode::accepted);
  ASSERT_EQ(p.publish({3}), PublishCode::accepted);
  ASSERT_EQ(q.publish({4}), PublishCode::accepted);
  EXPECT_EQ(bus.deliver(), 4u);
  EXPECT_EQ(order, (std::vector<std::string>{"one 3", "one 2", "one 4", "two 1"}));
}

TEST(TestBusTest, WhatCallbacksPublishIsDeliveredTooAndALimitEndsAnEndlessTalk) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  const Subscription a = ticks.subscribe([&](const Tick& t) {
    if (t.n < 10 || t.n >= 100) tocks.post({0, 0, t.n});
  });
  const Subscription b = tocks.subscribe([&](const Tock& t) { ticks.post({t.n + 1}); });
  ticks.post({1});
  EXPECT_EQ(bus.deliver(), 10u + 9u);
  ticks.post({100});
  EXPECT_EQ(bus.deliver(500), 500u);
  EXPECT_EQ(bus.queued(), 1u);
  EXPECT_EQ(bus.stop(StopMode::abort).left, 0u);
}

TEST(TestBusTest, DeliverFlushAndStopAreRefusedInACallback) {
  TestBus bus;
  bool asked = false;
  const Subscription sub = bus.channel<Tick>().subscribe([&](const Tick&) {
    asked = true;
    EXPECT_EQ(bus.deliver(), 0u);
    EXPECT_FALSE(bus.flush(kLong));
    EXPECT_TRUE(bus.stop().refused);
  });
  bus.channel<Tick>().post({1});
  bus.channel<Tick>().post({2});
  EXPECT_EQ(bus.deliver(), 2u);
  EXPECT_TRUE(asked);
}

TEST(TestBusTest, FlushAndStopDeliverInTheirCaller) {
  TestBus bus;
  auto heard = bus.heard<Tick>();
  bus.channel<Tick>().post({1});
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard.size(), 1u);
  bus.channel<Tick>().post({2});
  const Stopped stopped = bus.stop(StopMode::drain, kLong);
  EXPECT_EQ(stopped.left, 0u);
  EXPECT_TRUE(stopped.stuck.empty());
  EXPECT_EQ(heard.size(), 2u);
  EXPECT_EQ(bus.channel<Tick>().publish({3}), PublishCode::closed);
  EXPECT_EQ(bus.deliver(), 0u);
}

TEST(TestBusTest, AnAbortDiscardsAndCountsWhatIsQueued) {
  TestBus bus;
  auto heard = bus.heard<Tick>();
  auto publisher = bus.channel<Tick>().publisher();
  for (std::uint64_t n = 0; n < 5; ++n) ASSERT_EQ(publisher.publish({n}), PublishCode::accepted);
  (void)bus.stop(StopMode::abort, kLong);
  EXPECT_TRUE(heard.empty());
  EXPECT_EQ(bus.channel<Tick>().stats().discarded, 5u);
  EXPECT_EQ(publisher.ledger().dropped, 5u);
}

TEST(TestBusTest, TheDestructorDeliversWhatIsLeft) {
  auto heard = std::make_shared<int>(0);
  {
    TestBus bus;
    bus.channel<Tick>().subscribe([heard](const Tick&) { ++*heard; }).release();
    bus.channel<Tick>().post({1});
  }
  EXPECT_EQ(*heard, 1);
  EXPECT_EQ(heard.use_count(), 1);
}

TEST(TestBusTest, IsolatedPatternAndPullSubscribersWork) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions isolated;
  isolated.served = Served::isolated;
  isolated.queue_events = 2;
  std::vector<std::uint64_t> heard;
  Subscription sub = ticks.subscribe([&](const Tick& t) { heard.push_back(t.n); }, isolated);
  std::vector<std::string> views;
  const Subscription pattern = bus.subscribe(
      "test.>", [&](const EventView& v) { views.push_back(std::string(v.channel())); });
  Mailbox<Tick> box = ticks.mailbox();
  for (std::uint64_t n = 1; n <= 3; ++n) ticks.post({n});
  EXPECT_EQ(bus.deliver(), 3u + 2u + 3u);
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(sub.stats().dropped, 1u);
  EXPECT_EQ(views.size(), 3u);
  std::uint64_t sum = 0;
  EXPECT_EQ(box.drain([&](const Tick& t) { sum += t.n; }), 3u);
  EXPECT_EQ(sum, 6u);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(TestBusTest, AMailboxThatIsWaitedForDeliversAndNeverSleeps) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  Mailbox<Tick> box = ticks.mailbox();
  EXPECT_FALSE(box.wait_for(kForEver));  // no other thread could publish, so it does not wait
  ticks.post({7});
  std::uint64_t read = 0;
  ASSERT_TRUE(box.wait_for(kForEver));
  box.drain([&](const Tick& t) { read = t.n; });
  EXPECT_EQ(read, 7u);
}

TEST(TestBusTest, MailboxesThatComeAndGoLeaveTheirPlaceToOthers) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions small;
  small.queue_events = 1;
  SubscribeOptions isolated = small;
  isolated.served = Served::isolated;
  for (int i = 0; i < 5000; ++i) {
    const Subscription sub = ticks.subscribe([](const Tick&) {}, isolated);
    const Mailbox<Tick> box = ticks.mailbox(small);
    if (i % 3 == 0) ticks.post({1});
    if (i % 5 == 0) bus.deliver();
  }
  EXPECT_LE(bus.stats().channels.size(), 3u);
}

TEST(TestBusTest, AMailboxThatIsLeftWithEventsGoesWhenTheyAreDelivered) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions isolated;
  isolated.served = Served::isolated;
  Subscription sub = ticks.subscribe([](const Tick&) {}, isolated);
  ticks.post({1});
  EXPECT_EQ(bus.deliver(1), 1u);  // to the mailbox, and no further
  const std::size_t with_mailbox = bus.stats().channels.size();
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(bus.deliver(), 1u);
  EXPECT_EQ(bus.stats().channels.size(), with_mailbox - 1);
}

TEST(TestBusTest, ABlockingPublisherIsToldThatItIsFullAtOnce) {
  TestBus bus;
  auto heard = bus.heard<Tick>();
  PublisherOptions o;
  o.capacity_events = 1;
  o.overflow = Overflow::block;
  o.block_us_max = microseconds(-1);
  auto publisher = std::move(bus.channel<Tick>().publisher(o)).value();
  EXPECT_EQ(publisher.publish({1}), PublishCode::accepted);
  EXPECT_EQ(publisher.publish({2}), PublishCode::full);
  bus.deliver();
  EXPECT_EQ(publisher.publish({3}), PublishCode::accepted);
  bus.deliver();
  EXPECT_EQ(numbers(heard), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(heard.stamps()[1].sequence, 3u);
}

TEST(TestBusTest, StampsCarryTheTimeThatWasSet) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  auto heard = bus.heard<Tick>();
  SubscribeOptions isolated;
  isolated.served = Served::isolated;
  std::vector<std::int64_t> through_mailbox;
  const Subscription sub = ticks.subscribe(
      [&](const Tick&, const Stamp& s) { through_mailbox.push_back(s.time_ns); }, isolated);
  EXPECT_EQ(bus.time_ns(), 1'000'000'000);
  ticks.post({1});
  bus.advance(milliseconds(5));
  ticks.post({2});
  bus.set_time_ns(-3);
  ticks.post({3});
  bus.deliver();
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard.stamps()[0].time_ns, 1'000'000'000);
  EXPECT_EQ(heard.stamps()[1].time_ns, 1'005'000'000);
  EXPECT_EQ(heard.stamps()[2].time_ns, 1);
  EXPECT_EQ(heard.stamps()[0].time_from, TimeFrom::publisher);
  EXPECT_EQ(through_mailbox, (std::vector<std::int64_t>{1'000'000'000, 1'005'000'000, 1}));
}

TEST(TestBusTest, WhereNobodyAskedThePublisherTheTimeOfDeliveryIsSet) {
  TestBus bus;
  std::vector<Stamp> stamps;
  const Subscription sub = bus.channel<Tick>().subscribe_batch([&](Batch<Tick> batch) {
    for (std::size_t i = 0; i < batch.size(); ++i) stamps.push_back(batch.stamp(i));
  });
  bus.channel<Tick>().post({1});
  bus.set_time_ns(42);
  bus.deliver();
  ASSERT_EQ(stamps.size(), 1u);
  EXPECT_EQ(stamps[0].time_ns, 42);
  EXPECT_EQ(stamps[0].time_from, TimeFrom::worker);
}

TEST(TestBusTest, ARecorderMayBeMovedAndClearedAndLeavesWhenItDies) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  {
    Heard<Tick> first = bus.heard<Tick>();
    ticks.post({1});
    bus.deliver();
    Heard<Tick> second = std::move(first);
    EXPECT_EQ(second.size(), 1u);
    second.clear();
    ticks.post({2});
    bus.deliver();
    EXPECT_EQ(numbers(second), (std::vector<std::uint64_t>{2}));
  }
  EXPECT_EQ(ticks.publish({3}), PublishCode::unheard);
}

TEST(TestBusTest, AnyCodeThatTakesABusTakesIt) {
  TestBus test_bus;
  const auto user_code = [](Bus& bus) {
    auto& ticks = bus.channel<Tick>();
    int heard = 0;
    const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
    for (std::uint64_t n = 0; n < 10; ++n) ticks.post({n});
    return bus.flush(kLong) ? heard : -1;
  };
  EXPECT_EQ(user_code(test_bus), 10);
}

TEST(TestBusTest, OtherThreadsMayPublishAndDeliver) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  std::uint64_t plain = 0;  // written by the threads that deliver, one at a time
  const Subscription sub = ticks.subscribe([&](const Tick&) {
    ++plain;
    ++heard;
  });
  constexpr std::uint64_t kEach = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < kEach; ++n) {
        ASSERT_EQ(ticks.publish({n}), PublishCode::accepted);
        if (t == 0 && n % 8 == 0) bus.deliver();
      }
    });
  }
  for (auto& t : threads) t.join();
  bus.deliver();
  EXPECT_EQ(heard, 3 * kEach);
  EXPECT_EQ(plain, 3 * kEach);
}

TEST(TestBusTest, AResetInACallbackIsDeferredAndDestroysTheCapturesWhenItReturns) {
  TestBus bus;
  std::atomic<int> living{0};
  Subscription sub;
  int calls = 0;
  Detached said = Detached::done;
  sub = bus.channel<Tick>().subscribe([&, c = Counted(living)](const Tick&) {
    ++calls;
    said = sub.reset();
    EXPECT_EQ(living, 1);
  });
  bus.channel<Tick>().post({1});
  bus.channel<Tick>().post({2});
  bus.deliver();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(said, Detached::deferred);
  EXPECT_EQ(living, 0);
}

TEST(TestBusTest, ResetWaitsForACallInTheDeliveringThreadHoweverOftenItWasCalled) {
  enum : int { kOften = 1100 };  // its calls are no longer counted
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  Door door;
  Subscription sub = ticks.subscribe([&, c = Counted(living)](const Tick& t) {
    if (t.n != 0) door.pass();
  });
  for (int i = 0; i < kOften; ++i) {
    ticks.post({0});
    ASSERT_EQ(bus.deliver(), 1u);
  }
  ticks.post({1});
  std::thread delivering([&] { EXPECT_EQ(bus.deliver(), 1u); });
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(sub.reset_for(milliseconds(1)), Detached::timeout);
  EXPECT_EQ(living, 1);
  door.open();
  delivering.join();
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

}  // namespace
}  // namespace ringmain::tests
