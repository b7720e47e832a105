// When is a subscriber's last call over, and when do its captures die, from whichever thread and
// place it is ended?
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class DetachTest : public ::testing::TestWithParam<Served> {
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

TEST_P(DetachTest, NoCallbackRunsAfterResetReturnsAndTheCapturesAreGone) {
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

TEST_P(DetachTest, ResetInTheOwnCallbackIsDeferredAndTheRestIsSkipped) {
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

TEST_P(DetachTest, AHandleDestroyedInItsOwnCallbackTakesTheCapturesWithIt) {
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

TEST_P(DetachTest, CapturesMayOwnTheirSubscription) {
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
  for (std::uint64_t i = 0; i < 3; ++i) (void)ticks_.publish({i});  // the last may find nobody
  EXPECT_TRUE(eventually([&] { return living == 0; }));
}

TEST_P(DetachTest, AnotherSubscriptionResetInACallbackTakesCapturesThatOwnIt) {
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

TEST_P(DetachTest, ResetGivesUpWhileACallRunsAndMayWaitAgain) {
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

TEST_P(DetachTest, TwoCallbacksThatResetEachOtherBothEnd) {
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

TEST_P(DetachTest, AReleasedSubscriptionStaysUntilTheBusEnds) {
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

TEST_P(DetachTest, AHandleReleasedAfterTheBusLeavesNothingBehind) {
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

TEST_P(DetachTest, AHandleOutlivesItsBus) {
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

TEST_P(DetachTest, CapturesDestroyedByAWorkerCannotMakeItWaitForItself) {
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

TEST_P(DetachTest, CapturesThatResetAnotherSubscriptionOutsideCallbacksWaitForIt) {
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

TEST_P(DetachTest, OneThatTheEndOfItsBusLeavesInACallKeepsItsCapturesUntilThatIsOver) {
  enum : int { kOften = 1100 };  // workers no longer count its calls
  std::atomic<int> living{0};
  Door door;
  Subscription sub = ticks_.subscribe(
      [&, c = Counted(living)](const Tick& t) {
        if (t.n != 0) door.pass();
      },
      options());
  for (int i = 0; i < kOften; ++i) publish(1);
  ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(bus_.stop(StopMode::abort, milliseconds(1)).stuck.size(), 1u);
  EXPECT_EQ(sub.reset_for(milliseconds(1)), Detached::timeout);
  EXPECT_EQ(living, 1);
  door.open();
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

INSTANTIATE_TEST_SUITE_P(Served, DetachTest,
                         ::testing::Values(Served::shared, Served::isolated, Served::own_thread),
                         [](const auto& p) {
                           return p.param == Served::shared     ? "shared"
                                  : p.param == Served::isolated ? "isolated"
                                                                : "own_thread";
                         });

}  // namespace
}  // namespace ringmain::tests
