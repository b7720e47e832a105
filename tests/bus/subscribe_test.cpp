// Who is called, with what, in which order, and what do the counts of a subscriber say?
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ringmain/bus/bus.hpp"

#include "ringmain/tests/bus/events.hpp"
#include "ringmain/tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

void expect_i3(const SubscriberStats& s) {
  EXPECT_EQ(s.offered, s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.pending);
}

class SubscribeTest : public ::testing::TestWithParam<Served> {
 protected:
  [[nodiscard]] static SubscribeOptions options() {
    SubscribeOptions o;
    o.served = GetParam();
    return o;
  }
  void publish(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(ticks_.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  Bus bus_{with_workers(2)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
};

TEST_P(SubscribeTest, EverySubscriberGetsEveryEventInOrder) {
  std::vector<std::vector<std::uint64_t>> got(5);
  std::vector<Subscription> subs;
  for (auto& g : got)
    subs.push_back(ticks_.subscribe([&g](const Tick& t) { g.push_back(t.n); }, options()));
  publish(2000);
  for (const auto& g : got) {
    ASSERT_EQ(g.size(), 2000u);
    for (std::uint64_t i = 0; i < g.size(); ++i) EXPECT_EQ(g[i], i);
  }
  for (const auto& s : subs) {
    EXPECT_EQ(s.stats().delivered, 2000u);
    expect_i3(s.stats());
  }
}

TEST_P(SubscribeTest, AFilterDecidesAndIsCounted) {
  std::vector<std::uint64_t> got;
  const Subscription sub =
      ticks_.subscribe_if([](const Tick& t) { return t.n % 3 == 0; },
                          [&](const Tick& t) { got.push_back(t.n); }, options());
  publish(9);
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 3, 6}));
  EXPECT_EQ(sub.stats().delivered, 3u);
  EXPECT_EQ(sub.stats().filtered, 6u);
  expect_i3(sub.stats());
}

TEST_P(SubscribeTest, ABatchHoldsEveryEventOnce) {
  std::vector<std::uint64_t> by_iterator;
  std::vector<std::uint64_t> by_index;
  const Subscription sub = ticks_.subscribe_batch(
      [&](Batch<Tick> batch) {
        for (const Tick& t : batch) by_iterator.push_back(t.n);
        for (std::size_t i = 0; i < batch.size(); ++i) by_index.push_back(batch[i].n);
      },
      options());
  publish(1000);
  ASSERT_EQ(by_iterator.size(), 1000u);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(by_iterator[i], i);
  EXPECT_EQ(by_iterator, by_index);
  EXPECT_EQ(sub.stats().delivered, 1000u);
}

TEST_P(SubscribeTest, AThrowingCallbackIsCountedAndKept) {
  std::vector<std::uint64_t> got;
  const Subscription bad = ticks_.subscribe(
      [](const Tick& t) {
        if (t.n % 2 == 0) throw std::runtime_error("even");
      },
      options());
  const Subscription good = ticks_.subscribe([&](const Tick& t) { got.push_back(t.n); }, options());
  publish(100);
  EXPECT_EQ(got.size(), 100u);
  EXPECT_EQ(bad.stats().threw, 50u);
  EXPECT_EQ(bad.stats().delivered, 50u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AThrowDetachesWhereThatIsWished) {
  std::atomic<int> calls{0};
  SubscribeOptions o = options();
  o.on_throw = OnThrow::detach;
  const Subscription bad = ticks_.subscribe(
      [&](const Tick&) {
        ++calls;
        throw 1;
      },
      o);
  publish(10);
  publish(10);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(bad.stats().threw, 1u);
  EXPECT_EQ(bad.stats().skipped, 19u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AThrowingBatchCountsAsAWhole) {
  std::uint64_t events = 0;
  const Subscription bad = ticks_.subscribe_batch(
      [&](Batch<Tick> b) {
        events += b.size();
        throw 1;
      },
      options());
  publish(100);
  EXPECT_EQ(events, 100u);
  EXPECT_EQ(bad.stats().threw, 100u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AMemberIsCalledWhileItsObjectLives) {
  struct Listener {
    void hear(const Tick&) { ++heard; }
    void hear_stamped(const Tick&, const Stamp& s) { last = s.sequence; }
    int heard = 0;
    std::uint64_t last = 0;
  };
  auto listener = std::make_shared<Listener>();
  const Subscription sub =
      ticks_.subscribe(std::weak_ptr<Listener>(listener), &Listener::hear, options());
  const Subscription stamped =
      ticks_.subscribe(std::weak_ptr<Listener>(listener), &Listener::hear_stamped, options());
  publish(5);
  EXPECT_EQ(listener->heard, 5);
  EXPECT_EQ(listener->last, 5u);
  const std::weak_ptr<Listener> watched = listener;
  listener.reset();
  EXPECT_TRUE(watched.expired());
  publish(5);
  EXPECT_EQ(sub.stats().delivered, 5u);
  EXPECT_EQ(sub.stats().skipped, 5u);
  expect_i3(sub.stats());
}

TEST_P(SubscribeTest, NoCallbackRunsAfterResetReturnsAndTheCapturesAreGone) {
  std::atomic<int> living{0};
  std::atomic<bool> over{false};
  std::thread publisher([&] {
    while (!over) ticks_.post({1});
  });
  for (int i = 0; i < 200; ++i) {
    auto counter = std::make_unique<std::uint64_t>(0);  // freed below: late calls would touch it
    Subscription sub = ticks_.subscribe(
        [p = counter.get(), c = Counted(living)](const Tick&) { ++*p; }, options());
    if (i % 2 == 0) {
      EXPECT_TRUE(eventually([&] { return sub.stats().delivered > 0; }));
    }
    EXPECT_EQ(sub.reset(), Detached::done);
    EXPECT_EQ(living, 0);
    counter.reset();
    EXPECT_FALSE(sub.attached());
    EXPECT_EQ(sub.reset(), Detached::was_not_attached);
  }
  over = true;
  publisher.join();
}

TEST_P(SubscribeTest, ResetInTheOwnCallbackIsDeferredAndTheRestIsSkipped) {
  std::atomic<int> living{0};
  std::atomic<int> calls{0};
  std::atomic<int> outcome{-1};
  Subscription sub;
  Door ready;
  sub = ticks_.subscribe(
      [&, c = Counted(living)](const Tick&) {
        ready.pass();
        if (++calls == 1) outcome = static_cast<int>(sub.reset());
      },
      options());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  ready.open();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(outcome, static_cast<int>(Detached::deferred));
  EXPECT_FALSE(sub.attached());
  EXPECT_EQ(sub.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(living, 0);
  EXPECT_EQ(sub.reset(), Detached::was_not_attached);
}

TEST_P(SubscribeTest, AHandleDestroyedInItsOwnCallbackTakesTheCapturesWithIt) {
  std::atomic<int> living{0};
  auto sub = std::make_unique<Subscription>();
  std::atomic<int> calls{0};
  Door ready;
  *sub = ticks_.subscribe(
      [&, c = Counted(living)](const Tick&) {
        ready.pass();
        ++calls;
        sub.reset();
      },
      options());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  ready.open();
  EXPECT_TRUE(eventually([&] { return living == 0; }));
  EXPECT_EQ(calls, 1);
}

TEST_P(SubscribeTest, CapturesMayOwnTheirSubscription) {
  // The usual shape of an object that listens for itself.
  struct Listener {
    explicit Listener(std::atomic<int>& n) : counted(n) {}
    Counted counted;
    Subscription sub;
  };
  std::atomic<int> living{0};
  {
    auto listener = std::make_shared<Listener>(living);
    listener->sub = ticks_.subscribe(
        [keep = listener](const Tick&) mutable {
          if (keep == nullptr) return;
          (void)keep->sub.reset();
          keep = nullptr;
        },
        options());
  }
  EXPECT_EQ(living, 1);
  publish(3);
  EXPECT_TRUE(eventually([&] { return living == 0; }));
}

TEST_P(SubscribeTest, AnotherSubscriptionResetInACallbackTakesCapturesThatOwnIt) {
  struct Listener {
    explicit Listener(std::atomic<int>& n) : counted(n) {}
    Counted counted;
    Subscription sub;
  };
  std::atomic<int> living{0};
  auto* raw = new Listener(living);
  std::shared_ptr<Listener> listener(raw);
  auto& other = bus_.channel<Tock>();
  raw->sub = other.subscribe([keep = listener](const Tock&) {}, options());
  listener = nullptr;  // the captures are the only owner now
  const Subscription closer = ticks_.subscribe([raw](const Tick& t) {
    if (t.n == 0) (void)raw->sub.reset();
  });
  publish(1);
  EXPECT_TRUE(eventually([&] { return living == 0; }));
}

TEST_P(SubscribeTest, ResetGivesUpWhileACallRunsAndMayWaitAgain) {
  std::atomic<int> living{0};
  Door door;
  Subscription sub =
      ticks_.subscribe([&, c = Counted(living)](const Tick&) { door.pass(); }, options());
  ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(sub.reset_for(milliseconds(1)), Detached::timeout);
  EXPECT_FALSE(sub.attached());
  EXPECT_EQ(living, 1);
  door.open();
  EXPECT_EQ(sub.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(living, 0);
  EXPECT_EQ(door.arrived(), 1);
}

TEST_P(SubscribeTest, TwoCallbacksThatResetEachOtherBothEnd) {
  auto& tocks = bus_.channel<Tock>();
  std::atomic<int> inside{0};
  std::atomic<int> deferred{0};
  Subscription a;
  Subscription b;
  const auto meet = [&](Subscription& other) {
    ++inside;
    EXPECT_TRUE(eventually([&] { return inside == 2; }));
    deferred += other.reset() == Detached::deferred;
  };
  a = ticks_.subscribe([&](const Tick&) { meet(b); }, options());
  b = tocks.subscribe([&](const Tock&) { meet(a); }, options());
  ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  ASSERT_EQ(tocks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(deferred, 2);
  EXPECT_EQ(a.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(b.wait_quiescent(kLong), Detached::done);
}

TEST_P(SubscribeTest, ASubscriberMadeInACallbackHearsWhatIsPublishedAfterwards) {
  Subscription inner;
  std::atomic<std::uint64_t> heard{0};
  const Subscription outer = ticks_.subscribe(
      [&](const Tick& t) {
        if (t.n == 0 && !inner.attached())
          inner = ticks_.subscribe([&](const Tick&) { ++heard; }, options());
      },
      options());
  publish(1);
  EXPECT_EQ(heard, 0u);
  publish(5);
  EXPECT_EQ(heard, 5u);
  inner.reset();
}

TEST_P(SubscribeTest, WhoeverSubscribedBeforeAPublishHearsIt) {
  for (int i = 0; i < 500; ++i) {
    std::atomic<int> heard{0};
    const Subscription sub = ticks_.subscribe([&](const Tick&) { ++heard; }, options());
    ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
    ASSERT_EQ(heard, 1);
  }
}

TEST_P(SubscribeTest, AReleasedSubscriptionStaysUntilTheBusEnds) {
  std::atomic<int> living{0};
  std::atomic<int> heard{0};
  {
    Bus bus(with_workers(1));
    auto& ticks = bus.channel<Tick>();
    {
      Subscription sub =
          ticks.subscribe([&heard, c = Counted(living)](const Tick&) { ++heard; }, options());
      sub.release();
      EXPECT_FALSE(sub.attached());
    }
    ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
    ASSERT_TRUE(bus.flush(kLong));
    EXPECT_EQ(heard, 1);
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
}

TEST_P(SubscribeTest, AHandleReleasedAfterTheBusLeavesNothingBehind) {
  std::atomic<int> living{0};
  Subscription sub;
  {
    Bus bus(with_workers(1));
    sub = bus.channel<Tick>().subscribe([c = Counted(living)](const Tick&) {}, options());
  }
  EXPECT_EQ(living, 1);
  sub.release();
  EXPECT_EQ(living, 0);
}

TEST_P(SubscribeTest, AHandleOutlivesItsBus) {
  std::atomic<int> living{0};
  Subscription sub;
  {
    Bus bus(with_workers(2));
    sub = bus.channel<Tick>().subscribe([c = Counted(living)](const Tick&) {}, options());
    ASSERT_EQ(bus.channel<Tick>().publish({1}), PublishCode::accepted);
  }
  EXPECT_TRUE(sub.attached());
  EXPECT_EQ(sub.stats().delivered, 1u);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_P(SubscribeTest, CapturesDestroyedByAWorkerCannotMakeItWaitForItself) {
  struct Flushes {
    explicit Flushes(Bus* b, std::atomic<int>* o) : bus(b), outcome(o) {}
    Flushes(Flushes&& other) noexcept
        : bus(std::exchange(other.bus, nullptr)), outcome(other.outcome) {}
    ~Flushes() {
      if (bus != nullptr) *outcome = bus->flush(kForEver);
    }
    Bus* bus;
    std::atomic<int>* outcome;
  };
  std::atomic<int> outcome{-1};
  auto sub = std::make_unique<Subscription>();
  *sub = ticks_.subscribe([&sub, f = Flushes(&bus_, &outcome)](const Tick&) { sub.reset(); },
                          options());
  ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return outcome == 0; })) << "flush() in a worker must say false";
}

TEST_P(SubscribeTest, CapturesThatResetAnotherSubscriptionOutsideCallbacksWaitForIt) {
  // A session listens for itself and is owned by another subscriber's captures: when it dies
  // outside a callback, its own callback must be over, for it uses the session's memory.
  struct Session {
    std::atomic<bool>* alive;
    Subscription inner;
    ~Session() {
      inner.reset();
      *alive = false;
    }
  };
  std::atomic<bool> alive{true};
  std::atomic<bool> outlived{false};
  auto session = std::make_shared<Session>();
  session->alive = &alive;
  auto& tocks = bus_.channel<Tock>();
  Door door;
  session->inner = tocks.subscribe(
      [&](const Tock&) {
        door.pass();
        outlived = !alive;
      },
      options());
  Subscription outer = ticks_.subscribe([keep = session](const Tick&) {}, options());
  session.reset();
  ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  std::atomic<bool> returned{false};
  std::thread resetter([&] {
    EXPECT_EQ(outer.reset(), Detached::done);
    returned = true;
  });
  ASSERT_TRUE(eventually([&] { return ticks_.stats().subscribers == 0; }));
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // room for a wrong return
  EXPECT_FALSE(returned);
  door.open();
  resetter.join();
  EXPECT_FALSE(alive);
  EXPECT_FALSE(outlived);
}

INSTANTIATE_TEST_SUITE_P(Served, SubscribeTest, ::testing::Values(Served::shared, Served::isolated),
                         [](const auto& p) {
                           return p.param == Served::shared ? "shared" : "isolated";
                         });

TEST(PriorityTest, HigherPrioritiesAreCalledFirst) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::vector<int> order;
  std::vector<Subscription> subs;
  for (const int p : {0, 5, -3, 5, 1}) {
    SubscribeOptions o;
    o.priority = p;
    const int id = static_cast<int>(subs.size());
    subs.push_back(ticks.subscribe([&order, id](const Tick&) { order.push_back(id); }, o));
  }
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(order, (std::vector<int>{1, 3, 4, 0, 2}));
}

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
  std::thread stopper([&] { bus.stop(StopMode::abort, kLong); });
  ASSERT_TRUE(eventually([&] { return bus.channel<Tock>().publish({}) == PublishCode::closed; }));
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
