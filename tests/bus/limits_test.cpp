// What does a limit mean that is longer than the clock can count? For ever, in every call that
// takes one; UndefinedBehaviorSanitizer checks the sums.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class LimitsTest : public ::testing::TestWithParam<nanoseconds> {};

TEST_P(LimitsTest, EveryWaitTakesIt) {
  const nanoseconds limit = GetParam();
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  auto box = ticks.mailbox();  // fed before the subscriber that follows is called
  Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(box.wait_for(limit));
  EXPECT_TRUE(bus.wait_told(limit));
  ASSERT_TRUE(door.await_arrival());
  std::thread opener([&] { door.open(); });
  EXPECT_TRUE(bus.flush(limit));
  EXPECT_EQ(sub.reset_for(limit), Detached::done);
  Subscription own = ticks.subscribe([](const Tick&) {}, {.served = Served::own_thread});
  EXPECT_EQ(own.wait_quiescent(limit), Detached::done);
  EXPECT_EQ(bus.stop(StopMode::drain, limit).left, 0u);
  opener.join();
}

TEST_P(LimitsTest, ARemovalThatMustWaitTakesItToo) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  std::atomic<bool> waited{false};
  std::thread remover([&] {
    EXPECT_EQ(sub.reset_for(GetParam()), Detached::done);
    waited = true;
  });
  EXPECT_FALSE(waited);
  door.open();
  remover.join();
}

TEST_P(LimitsTest, ABusByHandTakesIt) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  auto box = ticks.mailbox();
  ticks.post({1});
  EXPECT_TRUE(box.wait_for(GetParam()));
  EXPECT_TRUE(bus.flush(GetParam()));
  bus.advance(GetParam());
  bus.advance(GetParam());
  EXPECT_GT(bus.time_ns(), 1'000'000'000);
  EXPECT_EQ(bus.stop(StopMode::drain, GetParam()).left, 0u);
}

INSTANTIATE_TEST_SUITE_P(Long, LimitsTest,
                         ::testing::Values(nanoseconds::max(), nanoseconds::max() - nanoseconds(1),
                                           nanoseconds::max() / 2),
                         [](const auto& p) { return "n" + std::to_string(p.index); });

/// Options in microseconds, which the engine counts as nanoseconds.
class LongOptionsTest : public ::testing::TestWithParam<microseconds> {};

TEST_P(LongOptionsTest, OfABusAndItsChannels) {
  BusOptions options = with_workers(2);
  options.spin_us = microseconds(0);
  options.realtime_us_max = GetParam();
  options.linger_ns = nanoseconds(0);
  Bus bus(options);
  ChannelOptions total;
  total.order = Order::total;
  total.order_gap_us_max = GetParam();
  auto& ticks = *bus.configure<Tick>(total).value();
  auto& tocks = bus.channel<Tock>();
  std::atomic<int> heard{0};
  SubscribeOptions patient;
  patient.budget_us = GetParam();
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; }, patient);
  OrderOptions order;
  order.gap_us_max = GetParam();
  const Subscription ordered = bus.subscribe_ordered<Tock>([&](const Tock&) { ++heard; }, order);
  PublisherOptions waits;
  waits.overflow = Overflow::block;
  waits.capacity_events = 1;
  waits.block_us_max = GetParam();
  auto publisher = std::move(ticks.publisher(waits)).value();
  PublisherOptions realtime;
  realtime.realtime = true;
  auto hurried = std::move(tocks.publisher(realtime)).value();
  for (std::uint64_t n = 0; n < 100; ++n) {
    ASSERT_EQ(publisher.publish({n}), PublishCode::accepted);
    ASSERT_EQ(hurried.publish({}), PublishCode::accepted);
  }
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(bus.wait_told(kLong));  // the housekeeper has looked with that budget
  EXPECT_EQ(heard, 200);
}

INSTANTIATE_TEST_SUITE_P(Long, LongOptionsTest,
                         ::testing::Values(microseconds::max(), microseconds::max() / 1000,
                                           microseconds::max() / 2000),
                         [](const auto& p) { return "n" + std::to_string(p.index); });

TEST(LongOptionsOfTheEnvironmentTest, AreTakenAsFarAsTheClockCounts) {
  ::setenv("RINGMAIN_SPIN_US", "9223372036854775807", 1);
  ::setenv("RINGMAIN_LINGER_NS", "9223372036854775807", 1);
  {
    Bus idle(with_workers(1));  // its worker never parks, and waits for no second event
    EXPECT_TRUE(idle.wait_told(kLong));
  }
  ::unsetenv("RINGMAIN_SPIN_US");
  ::unsetenv("RINGMAIN_LINGER_NS");
}

TEST(NegativeOptionsTest, AreNoTimeAtAll) {
  BusOptions options = with_workers(1);
  options.spin_us = microseconds::min();
  options.realtime_us_max = microseconds::min();
  options.linger_ns = nanoseconds::min();
  Bus bus(options);
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions never;
  never.budget_us = microseconds::min();
  const Subscription sub = ticks.subscribe([](const Tick&) {}, never);
  PublisherOptions at_once;
  at_once.overflow = Overflow::block;
  at_once.capacity_events = 1;
  at_once.block_us_max = microseconds(-1);
  auto publisher = std::move(ticks.publisher(at_once)).value();
  for (std::uint64_t n = 0; n < 100; ++n) (void)publisher.publish({n});
  EXPECT_TRUE(bus.flush(nanoseconds::min()));  // negative: for ever
}

}  // namespace
}  // namespace ringmain::tests
