// How does an inline subscriber leave, while threads that are not ours may be calling it?
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/waiting_reset.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// Says which thread destroyed it.
struct Grave {
  explicit Grave(std::atomic<std::thread::id>& by) : destroyed_by(&by) {}
  Grave(Grave&& other) noexcept : destroyed_by(std::exchange(other.destroyed_by, nullptr)) {}
  ~Grave() {
    if (destroyed_by != nullptr) *destroyed_by = std::this_thread::get_id();
  }
  std::atomic<std::thread::id>* destroyed_by;
};

class InlineDetachTest : public ::testing::Test {
 protected:
  void TearDown() override {
    const auto verified = bus_.verify_accounting();
    EXPECT_TRUE(verified) << verified.error().message;
  }
  Bus bus_{with_workers(2)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
};

TEST_F(InlineDetachTest, NoCallRunsAfterResetReturnsAndTheCapturesAreGone) {
  std::atomic<int> living{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> publishers;
  for (int t = 0; t < 2; ++t) {
    publishers.emplace_back([&] {
      while (!over) ticks_.post({1});
    });
  }
  for (int i = 0; i < 200; ++i) {
    // Freed below: late calls would touch it.
    auto counter = std::make_unique<std::atomic<std::uint64_t>>(0);
    Subscription sub =
        ticks_.subscribe_inline([p = counter.get(), c = Counted(living)](const Tick&) { ++*p; });
    if (i % 2 == 0) {
      EXPECT_TRUE(eventually([&] { return sub.stats().delivered > 0; }));
    }
    EXPECT_EQ(sub.reset(), Detached::done);
    EXPECT_EQ(living, 0);
    counter.reset();
  }
  over = true;
  for (auto& t : publishers) t.join();
}

TEST_F(InlineDetachTest, ResetWaitsForACallInAnyPublishingThread) {
  for (const bool realtime : {false, true}) {  // such a publisher wakes nobody when it leaves
    Door door;
    std::atomic<int> living{0};
    PublisherOptions o;
    o.realtime = realtime;
    auto p = std::move(ticks_.publisher(o)).value();
    Subscription sub =
        ticks_.subscribe_inline([&door, c = Counted(living)](const Tick&) { door.pass(); });
    std::thread publishing([&] { EXPECT_EQ(p.publish({1}), PublishCode::accepted); });
    expect_reset_waits(sub, door, living);
    publishing.join();
  }
}

TEST_F(InlineDetachTest, ResetInItsOwnCallIsDeferredAndThePublishingThreadDestroysNothing) {
  std::atomic<std::thread::id> destroyed_by{};
  Subscription sub;
  Detached outcome{};
  int calls = 0;
  sub = ticks_.subscribe_inline([&, g = Grave(destroyed_by)](const Tick&) {
    ++calls;
    outcome = sub.reset();
  });
  EXPECT_EQ(ticks_.publish({1}), PublishCode::accepted);
  EXPECT_EQ(outcome, Detached::deferred);
  EXPECT_EQ(ticks_.publish({2}), PublishCode::unheard);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(eventually([&] { return destroyed_by.load() != std::thread::id(); }))
      << "a worker reclaims though nothing was ever queued";
  EXPECT_NE(destroyed_by.load(), std::this_thread::get_id());
  EXPECT_EQ(sub.wait_quiescent(kLong), Detached::done);
}

TEST_F(InlineDetachTest, AHandleDestroyedInItsOwnCallLeavesTheCapturesToOthers) {
  std::atomic<std::thread::id> destroyed_by{};
  auto sub = std::make_unique<Subscription>();
  *sub = ticks_.subscribe_inline([&sub, g = Grave(destroyed_by)](const Tick&) { sub.reset(); });
  EXPECT_EQ(ticks_.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return destroyed_by.load() != std::thread::id(); }));
  EXPECT_NE(destroyed_by.load(), std::this_thread::get_id());
}

TEST_F(InlineDetachTest, WaitingLaterNeedsNobodyToReclaim) {
  // The only worker is busy: the waiter destroys the captures, unless the housekeeper came first.
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  Door door;
  const Subscription holds = tocks.subscribe([&](const Tock&) { door.pass(); });
  ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  std::atomic<std::thread::id> destroyed_by{};
  Subscription sub;
  sub = ticks.subscribe_inline([&sub, g = Grave(destroyed_by)](const Tick&) { (void)sub.reset(); });
  EXPECT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_EQ(sub.wait_quiescent(kLong), Detached::done);
  EXPECT_NE(destroyed_by.load(), std::thread::id());
  door.open();
}

TEST_F(InlineDetachTest, StopReclaimsWhatNoWorkerCould) {
  std::atomic<std::thread::id> destroyed_by{};
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto& ticks = bus->channel<Tick>();
  auto sub = std::make_unique<Subscription>();
  *sub = ticks.subscribe_inline([&sub, g = Grave(destroyed_by)](const Tick&) { sub.reset(); });
  EXPECT_EQ(ticks.publish({1}), PublishCode::accepted);
  (void)bus->stop(StopMode::drain, kLong);
  EXPECT_NE(destroyed_by.load(), std::thread::id());
}

TEST_F(InlineDetachTest, ALastCallThatOutlivesStopDestroysTheCapturesItself) {
  std::atomic<std::thread::id> destroyed_by{};
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto& ticks = bus->channel<Tick>();
  Door door;
  auto sub = std::make_unique<Subscription>();
  *sub = ticks.subscribe_inline([&, g = Grave(destroyed_by)](const Tick&) {
    sub.reset();
    door.pass();
  });
  std::thread publishing([&] { EXPECT_EQ(ticks.publish({1}), PublishCode::closed); });
  const std::thread::id publisher = publishing.get_id();
  ASSERT_TRUE(door.await_arrival());
  (void)bus->stop(StopMode::drain, kLong);
  EXPECT_EQ(destroyed_by.load(), std::thread::id());
  door.open();
  publishing.join();
  EXPECT_EQ(destroyed_by.load(), publisher);
}

TEST_F(InlineDetachTest, TwoThatResetEachOtherInTwoThreadsBothEnd) {
  auto& tocks = bus_.channel<Tock>();
  std::atomic<int> living{0};
  std::atomic<int> inside{0};
  std::atomic<int> deferred{0};
  Subscription a;
  Subscription b;
  const auto meet = [&](Subscription& other) {
    ++inside;
    EXPECT_TRUE(eventually([&] { return inside == 2; }));
    deferred += other.reset() == Detached::deferred;
  };
  a = ticks_.subscribe_inline([&, c = Counted(living)](const Tick&) { meet(b); });
  b = tocks.subscribe_inline([&, c = Counted(living)](const Tock&) { meet(a); });
  std::thread other([&] { (void)tocks.publish({}); });
  EXPECT_EQ(ticks_.publish({1}), PublishCode::accepted);
  other.join();
  EXPECT_EQ(deferred, 2);
  EXPECT_EQ(a.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(b.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(InlineDetachTest, OneMaySubscribeAndUnsubscribeOthersInline) {
  std::atomic<int> living{0};
  int inner = 0;
  const Subscription outer = ticks_.subscribe_inline([&](const Tick& t) {
    // What comes inside a call is not called for the same event.
    Subscription other =
        ticks_.subscribe_inline([&inner, c = Counted(living)](const Tick&) { ++inner; });
    if (t.n == 0) (void)ticks_.publish({1});
    EXPECT_EQ(other.reset(), Detached::deferred);
  });
  EXPECT_EQ(ticks_.publish({0}), PublishCode::accepted);
  EXPECT_EQ(inner, 1);
  EXPECT_TRUE(eventually([&] { return living == 0; }));
}

TEST_F(InlineDetachTest, ManyThatComeAndGoInsideOneCallAreFreedBehindIt) {
  // The call's own row stays readable though the list is replaced, and cleaned, many times over.
  int calls = 0;
  const Subscription outer = ticks_.subscribe_inline([&](const Tick&) {
    for (int i = 0; i < 200; ++i) {
      Subscription other = ticks_.subscribe_inline([&calls](const Tick&) { ++calls; });
    }
  });
  const Subscription last = ticks_.subscribe_inline([&](const Tick&) { ++calls; });
  EXPECT_EQ(ticks_.publish({0}), PublishCode::accepted);
  EXPECT_EQ(calls, 1);
}

TEST_F(InlineDetachTest, TheBusMayEndInsideACall) {
  std::atomic<int> living{0};
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto& ticks = bus->channel<Tick>();
  Subscription sub =
      ticks.subscribe_inline([&bus, c = Counted(living)](const Tick&) { bus.reset(); });
  PublisherOptions o;
  auto p = std::move(ticks.publisher(o)).value();
  const PublishCode code = p.publish({1}).code;
  EXPECT_TRUE(code == PublishCode::accepted || code == PublishCode::closed);
  EXPECT_TRUE(eventually([&] { return p.publish({2}) == PublishCode::closed; }));
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(InlineDetachTest, AThreadsOtherLanesMayBeGivenUpInsideACall) {
  // A new lane makes room in the thread's table, where stopped buses' lanes are let go of: but not
  // the one that the thread is publishing on.
  Bus stopped(with_workers(1));
  auto& ticks = stopped.channel<Tick>();
  PublishResult result;
  std::thread([&] {
    const Subscription sub = ticks.subscribe_inline([&](const Tick&) {
      std::thread([&] { (void)stopped.stop(); }).join();  // it does not wait for this call
      for (int i = 0; i < 40; ++i) {
        Bus bus(with_workers(1));
        auto& others = bus.channel<Tick>();
        const Subscription hears = others.subscribe([](const Tick&) {});
        EXPECT_EQ(others.publish({1}), PublishCode::accepted);
      }
      EXPECT_EQ(ticks.stats().publishers, 1u);
    });
    result = ticks.publish({1});
  }).join();
  EXPECT_EQ(result, PublishCode::closed);
}

}  // namespace
}  // namespace ringmain::tests
