// Channels by name, flush, figures, environment: what the bus as a whole promises.
#include "bus/bus.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/bus/environment.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

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
  EXPECT_EQ(Bus(with_workers(~0u)).workers(), 32u);
}

TEST(BusTest, AnOperatorPlacesItsWorkersAndSaysHowLongTheyLook) {
  const Environment cpus("RINGMAIN_WORKER_CPUS", "0,0-0");
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
