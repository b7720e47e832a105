// Does a source learn whether anybody listens: the present state at once, every change, the last
// one last?
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// What a source was told, for the test's own thread to read.
class Source {
 public:
  auto hears() {
    return [this](Interest i) {
      const std::lock_guard lock(mutex_);
      told_.push_back(i);
    };
  }
  [[nodiscard]] std::vector<Interest> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Interest> told_;
};

TEST(InterestTest, ThePresentStateIsToldFirstAndThenEveryChange) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Source source;
  const Subscription asked = bus.on_interest(ticks, source.hears());
  ASSERT_TRUE(bus.wait_told(kLong));
  ASSERT_EQ(source.told().size(), 1u);
  EXPECT_FALSE(source.told()[0]);
  EXPECT_FALSE(source.told()[0].workers);
  Subscription plain = ticks.subscribe([](const Tick&) {});
  ASSERT_TRUE(bus.wait_told(kLong));
  Subscription stamped = ticks.subscribe([](const Tick&, const Stamp&) {});
  ASSERT_TRUE(bus.wait_told(kLong));
  auto box = ticks.mailbox();
  ASSERT_TRUE(bus.wait_told(kLong));
  (void)stamped.reset();
  box.reset();
  ASSERT_TRUE(bus.wait_told(kLong));
  (void)plain.reset();
  ASSERT_TRUE(bus.wait_told(kLong));
  const auto told = source.told();
  ASSERT_GE(told.size(), 6u);
  EXPECT_EQ(told[1], (Interest{.subscribers = 1, .workers = true}));
  EXPECT_EQ(told[2], (Interest{.subscribers = 2, .workers = true, .stamps = true}));
  EXPECT_EQ(told[3], (Interest{.subscribers = 3, .workers = true, .stamps = true}));
  EXPECT_EQ(told[told.size() - 2], (Interest{.subscribers = 1, .workers = true}));
  EXPECT_EQ(told.back(), Interest{});
  for (std::size_t i = 1; i < told.size(); ++i) EXPECT_NE(told[i], told[i - 1]) << "no change";
}

TEST(InterestTest, InlineSubscribersAreToldApart) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Source source;
  const Subscription asked = bus.on_interest(ticks, source.hears());
  const Subscription sees = ticks.subscribe_inline([](const Tick&) {});
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(source.told().back(), (Interest{.subscribers = 1, .inline_phase = true}));
  const Subscription hears = ticks.subscribe([](const Tick&) {});
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(source.told().back(),
            (Interest{.subscribers = 2, .inline_phase = true, .workers = true}));
}

TEST(InterestTest, TheLastCallIsTheFinalStateHoweverManyChangeIt) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Source source;
  const Subscription asked = bus.on_interest(ticks, source.hears());
  std::vector<std::thread> threads;
  std::vector<Subscription> stay(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&ticks, &kept = stay[static_cast<std::size_t>(t)]] {
      for (int i = 0; i < 500; ++i) kept = ticks.subscribe([](const Tick&) {});
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(
      eventually([&] { return !source.told().empty() && source.told().back().subscribers == 3; }));
  stay.clear();
  EXPECT_TRUE(eventually([&] { return source.told().back() == Interest{}; }));
}

TEST(InterestTest, OneCallbackServesAPatternOfPresentAndFutureChannels) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::mutex mutex;
  std::map<std::string, std::uint32_t, std::less<>> told;
  const Subscription asked = bus.on_interest("test.*", [&](std::string_view name, Interest i) {
    const std::lock_guard lock(mutex);
    told[std::string(name)] = i.subscribers;
  });
  const auto now = [&](std::string_view name) -> int {
    const std::lock_guard lock(mutex);
    const auto found = told.find(name);
    return found == told.end() ? -1 : static_cast<int>(found->second);
  };
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(now("test.tick"), 0);
  EXPECT_EQ(now("test.tock"), -1);
  const Subscription a = bus.channel<Tock>().subscribe([](const Tock&) {});
  const Subscription b = bus.channel<Plain>("other.thing").subscribe([](const Plain&) {});
  SubscribeOptions o;
  o.served = Served::isolated;
  o.name = "test.mailbox";  // not a channel, whatever its name is
  const Subscription c = ticks.subscribe([](const Tick&) {}, o);
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(now("test.tick"), 1);
  EXPECT_EQ(now("test.tock"), 1);
  EXPECT_EQ(now("other.thing"), -1);
  EXPECT_EQ(now("test.mailbox"), -1);
}

TEST(InterestTest, NothingIsToldAfterResetReturned) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  for (int round = 0; round < 200; ++round) {
    auto told = std::make_unique<std::atomic<int>>(0);  // freed below: a late call would be found
    Subscription asked =
        bus.on_interest(ticks, [t = told.get(), c = Counted(living)](Interest) { ++*t; });
    const Subscription sub = ticks.subscribe([](const Tick&) {});
    EXPECT_EQ(asked.reset(), Detached::done);
    EXPECT_EQ(living, 0);
    told.reset();
  }
}

TEST(InterestTest, ItMayDetachItselfAndSubscribeWhileItIsTold) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> calls{0};
  std::atomic<int> refused{0};
  Subscription asked;
  std::optional<Subscription> made;
  std::mutex mutex;
  {
    const std::lock_guard lock(mutex);
    asked = bus.on_interest(ticks, [&](Interest) {
      const std::lock_guard inner(mutex);
      ++calls;
      refused += !bus.flush(kLong) && bus.stop().refused && !bus.wait_told(kLong);
      made = ticks.subscribe([](const Tick&) {});
      EXPECT_EQ(asked.reset(), Detached::deferred);
    });
  }
  ASSERT_TRUE(bus.wait_told(kLong));
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(refused, 1) << "nothing may wait for the bus in there";
  EXPECT_EQ(asked.reset(), Detached::done);
}

TEST(InterestTest, AThrowHarmsNobodyElse) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Source source;
  const Subscription bad = bus.on_interest(ticks, [](Interest) { throw 1; });
  const Subscription good = bus.on_interest(ticks, source.hears());
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(source.told().size(), 1u);
  EXPECT_EQ(bad.stats().threw, 1u);
}

TEST(InterestTest, AStuckOneIsNamedByStop) {
  Door door;
  Subscription asked;
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.name = "the stuck source";
  asked = bus.on_interest(
      ticks, [&](Interest) { door.pass(); }, o);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_FALSE(bus.wait_told(milliseconds(1)));
  EXPECT_EQ(bus.stop(StopMode::drain, milliseconds(5)).stuck,
            std::vector<std::string>{"the stuck source"});
  door.open();
  EXPECT_EQ(asked.reset(), Detached::done);
  EXPECT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
}

TEST(InterestTest, WhoLooksAfterSomethingIsToldThoughNothingChanged) {
  TestBus bus;
  engine::ChannelCore& ticks = *detail::Erased::channel(bus, schema<Tick>()).value();
  int told = 0;
  int told_again = 0;
  const auto count = [&](int& calls) { return [&calls](Interest) { ++calls; }; };
  detail::BusCore& core = detail::Erased::core(bus);
  const Subscription once = detail::Erased::on_interest(core, ticks, count(told));
  const Subscription again = detail::Erased::on_interest(core, ticks, count(told_again), true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(told, 1);
  EXPECT_EQ(told_again, 3);
}

TEST(InterestTest, OnABusWithoutThreadsWaitingTells) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  Source source;
  const Subscription asked = bus.on_interest(ticks, source.hears());
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  EXPECT_TRUE(source.told().empty());
  ASSERT_TRUE(bus.wait_told(kLong));
  ASSERT_EQ(source.told().size(), 1u);
  EXPECT_EQ(source.told()[0].subscribers, 1u);
}

}  // namespace
}  // namespace ringmain::tests
