// Channels by name, flush, stop, figures, environment: what the bus as a whole promises.
#include "ringmain/bus/bus.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ringmain/tests/bus/events.hpp"
#include "ringmain/tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

TEST(ChannelTest, ItIsFoundByItsTypeAndByItsName) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  EXPECT_EQ(ticks.name(), "test.tick");
  EXPECT_EQ(&ticks, &bus.channel<Tick>());
  EXPECT_EQ(&ticks, &bus.channel<Tick>("test.tick"));
  EXPECT_NE(&ticks, &bus.channel<Tick>("other"));
  EXPECT_EQ(bus.channel<Plain>("plain").schema().bytes, sizeof(Plain));
  EXPECT_EQ(bus.channel_names(), (std::vector<std::string>{"other", "plain", "test.tick"}));
}

TEST(ChannelTest, ItIsConfiguredBeforeItsFirstUseOrNotAtAll) {
  Bus bus(with_workers(1));
  ChannelOptions o;
  o.lanes_max = 7;
  auto made = bus.configure<Tick>(o);
  ASSERT_TRUE(made);
  EXPECT_EQ(made.value(), &bus.channel<Tick>());
  auto again = bus.configure<Tick>(o);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Error::Code::conflict);
  auto other = bus.configure<Tock>("test.tick", o);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Error::Code::conflict);
  EXPECT_NE(other.error().message.find("Tick"), std::string::npos) << other.error().message;
  EXPECT_NE(other.error().message.find("Tock"), std::string::npos) << other.error().message;
  o.lanes_max = 0;
  auto none = bus.configure<Tock>(o);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Error::Code::refused);
}

TEST(ChannelDeathTest, ASecondTypeUnderOneNameStopsWithBothNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Bus bus(with_workers(1));
        (void)bus.channel<Tick>("x");
        (void)bus.channel<Tock>("x");
      },
      "channel 'x' holds .*Tick.* not .*Tock");
}

TEST(ChannelTest, ThreadsThatAskAtOnceGetTheSameOne) {
  Bus bus(with_workers(1));
  std::array<Channel<Tick>*, 4> found{};
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread> threads;
    for (auto& f : found)
      threads.emplace_back([&] { f = &bus.channel<Tick>("round." + std::to_string(round)); });
    for (auto& t : threads) t.join();
    for (const auto* f : found) EXPECT_EQ(f, found[0]);
  }
}

TEST(FlushTest, ItIsFalseInACallback) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> outcome{-1};
  const Subscription sub = ticks.subscribe([&](const Tick&) { outcome = bus.flush(kForEver); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(eventually([&] { return outcome == 0; }));
}

TEST(FlushTest, ItRunsOutOfTimeBehindAStuckCallback) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_FALSE(bus.flush(milliseconds(1)));
  door.open();
  EXPECT_TRUE(bus.flush(kForEver));
}

TEST(FlushTest, ItWaitsForWhatWentThroughMailboxes) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.served = Served::isolated;
  std::atomic<std::uint64_t> isolated{0};
  std::atomic<std::uint64_t> pattern{0};
  const Subscription a = ticks.subscribe([&](const Tick&) { ++isolated; }, o);
  const Subscription b = bus.subscribe(">", [&](const EventView&) { ++pattern; });
  for (std::uint64_t i = 1; i <= 300; ++i) {
    ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(bus.flush(kForEver));
    ASSERT_EQ(isolated, i);
    ASSERT_EQ(pattern, i);
  }
}

TEST(FlushTest, MailboxesMayEndWhileItWaits) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<bool> over{false};
  std::thread comes_and_goes([&] {
    SubscribeOptions o;
    o.served = Served::isolated;
    while (!over) {
      std::uint64_t heard = 0;
      Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; }, o);
      auto box = ticks.mailbox();
    }
  });
  for (int i = 0; i < 300; ++i) {
    (void)ticks.publish({1});
    ASSERT_TRUE(bus.flush(kLong)) << i;
  }
  over = true;
  comes_and_goes.join();
}

TEST(FlushTest, AStoppedBusHasNothingToFlush) {
  Bus bus(with_workers(1));
  bus.stop();
  EXPECT_TRUE(bus.flush(kForEver));
}

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
  std::thread patient([&] { EXPECT_EQ(bus.stop(StopMode::drain, kLong).left, 0u); });
  ASSERT_TRUE(eventually([&] { return bus.channel<Tock>().publish({}) == PublishCode::closed; }));
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

TEST(BusTest, HandlesMayDieInAnyOrder) {
  for (unsigned order = 0; order < 24; ++order) {
    auto bus = std::make_unique<Bus>(with_workers(2));
    auto& ticks = bus->channel<Tick>();
    std::atomic<int> living{0};
    SubscribeOptions o;
    o.served = Served::isolated;
    auto sub =
        std::make_unique<Subscription>(ticks.subscribe([c = Counted(living)](const Tick&) {}, o));
    auto box = std::make_unique<Mailbox<Tick>>(ticks.mailbox());
    auto publisher = std::make_unique<Publisher<Tick>>(ticks.publisher());
    for (int i = 0; i < 20; ++i) (void)publisher->publish({1});
    std::array<int, 4> left{0, 1, 2, 3};
    unsigned code = order;
    for (unsigned n = 4; n > 0; code /= n, --n) {
      const unsigned pick = code % n;
      switch (left[pick]) {
        case 0:
          bus.reset();
          break;
        case 1:
          sub.reset();
          break;
        case 2:
          box.reset();
          break;
        default:
          publisher.reset();
      }
      std::copy(left.begin() + pick + 1, left.begin() + n, left.begin() + pick);
    }
    EXPECT_EQ(living, 0) << order;
  }
}

TEST(BusTest, TheProcessHasOneBusThatIsNeverDestroyed) {
  Bus& bus = Bus::process();
  EXPECT_EQ(&bus, &Bus::process());
  std::atomic<int> heard{0};
  const Subscription sub =
      bus.channel<Tick>("process.tick").subscribe([&](const Tick&) { ++heard; });
  ASSERT_EQ(bus.channel<Tick>("process.tick").publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 1);
}

TEST(BusTest, ItsFiguresAddUp) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions o;
  o.served = Served::isolated;
  o.name = "beside";
  const Subscription a = ticks.subscribe([](const Tick&) {});
  const Subscription b = ticks.subscribe([](const Tick&) {}, o);
  auto p = ticks.publisher();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(p.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  const Stats s = bus.stats();
  ASSERT_EQ(s.channels.size(), 2u);
  ASSERT_EQ(s.workers.size(), 2u);
  for (const ChannelStats& c : s.channels) {
    EXPECT_EQ(c.offered, 100u) << c.name;
    EXPECT_EQ(c.delivered, 100u) << c.name;
    EXPECT_EQ(c.name, c.mailbox ? "beside" : "test.tick");
    EXPECT_EQ(c.subscribers, c.mailbox ? 1u : 2u);
    EXPECT_EQ(c.publishers, 1u);
  }
  EXPECT_TRUE(eventually([&] {  // a worker counts a batch once it is over
    std::uint64_t events = 0;
    for (const WorkerStats& w : bus.stats().workers) events += w.events;
    return events == 200;
  }));
  EXPECT_TRUE(bus.verify_accounting());
}

/// Sets a variable for one test; each test is a process of its own under ctest.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(BusTest, AnOperatorOverridesTheNumberOfWorkers) {
  {
    const Environment e("RINGMAIN_WORKERS", "3");
    EXPECT_EQ(Bus(with_workers(1)).workers(), 3u);
  }
  {
    const Environment e("RINGMAIN_WORKERS", "three");
    EXPECT_EQ(Bus(with_workers(2)).workers(), 2u);
  }
  {
    const Environment e("RINGMAIN_WORKERS", "0");
    EXPECT_GE(Bus(with_workers(2)).workers(), 1u);
  }
  EXPECT_EQ(Bus(with_workers(1000)).workers(), 32u);
}

TEST(BusTest, AnOperatorPlacesItsWorkersAndSaysHowLongTheyLook) {
  const Environment cpus("RINGMAIN_WORKER_CPUS", "0, nonsense,-5,4000,0-0");
  const Environment nice("RINGMAIN_WORKER_NICE", "1");
  const Environment spin("RINGMAIN_SPIN_US", "0");
  const Environment linger("RINGMAIN_LINGER_NS", "0");
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> cpu{-1};
  const Subscription sub = ticks.subscribe([&](const Tick&) { cpu = ::sched_getcpu(); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(cpu, 0);
}

TEST(BusTest, ItsThreadsBearItsName) {
  BusOptions o = with_workers(1);
  o.name = "a long name of a bus";
  Bus bus(o);
  auto& ticks = bus.channel<Tick>();
  std::string name;
  const Subscription sub = ticks.subscribe([&](const Tick&) {
    std::array<char, 32> text{};
    ::pthread_getname_np(::pthread_self(), text.data(), text.size());
    name = text.data();
  });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(name, "a long name /0");
}

}  // namespace
}  // namespace ringmain::tests
