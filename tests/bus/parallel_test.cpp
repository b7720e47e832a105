// What does a channel give up that delivers in parallel, and what does it keep?
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/accounts.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

Channel<Tick>& parallel_ticks(Bus& bus) {
  ChannelOptions o;
  o.delivery = Delivery::parallel;
  return *bus.configure<Tick>(o).value();
}

/// Publishes until `met()`: a run that is taken at once must leave something for the next worker.
template <class Met>
bool publish_until(Channel<Tick>& ticks, std::uint64_t& n, Met met) {
  return eventually([&] {
    if (met()) return true;
    ticks.post({++n});
    return false;
  });
}

TEST(ParallelTest, SeveralWorkersHandOutEventsOfOneChannelAtOnce) {
  Bus bus(with_workers(3));
  auto& ticks = parallel_ticks(bus);
  Door door;
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) {
    door.pass();
    ++heard;
  });
  std::uint64_t n = 0;
  EXPECT_TRUE(publish_until(ticks, n, [&] { return door.arrived() == 3; }));
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, n);
  EXPECT_TRUE(bus.verify_accounting());
  expect_i3(sub.stats());
}

/// Each of its counts is counted by several workers at once.
class ParallelAccountTest : public ::testing::Test {
 protected:
  enum : std::uint64_t { kEvents = 30'000 };
  void publish() {
    std::vector<std::thread> publishers;
    for (int p = 0; p < 2; ++p) {
      publishers.emplace_back([this] {
        for (std::uint64_t n = 0; n < kEvents / 2; ++n) {
          while (ticks_.publish({n}) != PublishCode::accepted) std::this_thread::yield();
        }
      });
    }
    for (auto& p : publishers) p.join();
    EXPECT_TRUE(bus_.flush(kLong));
  }
  Bus bus_{with_workers(3)};
  Channel<Tick>& ticks_ = parallel_ticks(bus_);
};

TEST_F(ParallelAccountTest, EveryThrowIsCounted) {
  const Subscription sub = ticks_.subscribe([](const Tick&) { throw 1; });
  publish();
  EXPECT_EQ(sub.stats().threw, kEvents);
  expect_i3(sub.stats());
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_F(ParallelAccountTest, SoIsEveryBatchThatThrowsAndEveryKeyThatDoes) {
  const Subscription batches = ticks_.subscribe_batch([](Batch<Tick>) { throw 1; });
  const Subscription latest = ticks_.subscribe_latest(
      [](const Tick& t) -> std::uint64_t { return t.n < kEvents ? throw 1 : t.n; },
      [](const Tick&) {});
  publish();
  EXPECT_EQ(batches.stats().threw, kEvents);
  EXPECT_EQ(latest.stats().threw, kEvents);
  expect_i3(batches.stats());
  expect_i3(latest.stats());
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_F(ParallelAccountTest, AndEveryEventThatIsFilteredDeliveredOrSkipped) {
  const Subscription some =
      ticks_.subscribe_if([](const Tick& t) { return t.n % 2 == 0; }, [](const Tick&) {});
  publish();
  EXPECT_EQ(some.stats().filtered, kEvents / 2);
  EXPECT_EQ(some.stats().delivered, kEvents / 2);
  expect_i3(some.stats());
}

TEST(ParallelTest, OneWorkerAloneDoesIt) {
  Bus bus(with_workers(1));
  auto& ticks = parallel_ticks(bus);
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
  for (std::uint64_t n = 0; n < 1000; ++n) ticks.post({n});
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 1000u);
}

TEST(ParallelTest, FlushWaitsForARunThatYoungerOnesHaveOvertaken) {
  Bus bus(with_workers(2));
  auto& ticks = parallel_ticks(bus);
  Door door;
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick& t) {
    if (t.n == 1) door.pass();
    ++heard;
  });
  ticks.post({1});
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t n = 2; n <= 50; ++n) {
    ticks.post({n});
    ASSERT_TRUE(eventually([&] { return heard == n - 1; }));
  }
  ticks.post({51});
  ASSERT_TRUE(eventually([&] { return heard == 50; }));
  EXPECT_FALSE(bus.flush(milliseconds(1)));  // 50 are over, and the first is not among them
  door.open();
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 51u);
}

TEST(ParallelTest, TheBoundIsExact) {
  Bus bus(with_workers(2));
  auto& ticks = parallel_ticks(bus);
  Door door;
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick& t) {
    if (t.n == 1) door.pass();
    ++heard;
  });
  PublisherOptions o;
  o.capacity_events = 3;
  auto publisher = ticks.publisher(o).value();
  ASSERT_EQ(publisher.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t n = 2; n <= 20; ++n) {  // one is in flight: there is room for two
    ASSERT_TRUE(eventually([&] { return publisher.ledger().in_flight == 1; }));
    ASSERT_EQ(publisher.publish({n}), PublishCode::accepted);
  }
  ASSERT_TRUE(eventually([&] { return publisher.ledger().in_flight == 1; }));
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(publisher.ledger().delivered, 20u);
}

TEST(ParallelTest, NothingIsLostOrHeardTwiceByAnyKindOfSubscriber) {
  constexpr std::uint64_t kEvents = 20'000;
  Bus bus(with_workers(3));
  auto& ticks = parallel_ticks(bus);
  std::vector<std::atomic<std::uint32_t>> shared(3 * kEvents);
  std::vector<std::uint32_t> isolated(3 * kEvents);
  std::atomic<std::uint64_t> batched{0};
  std::atomic<std::uint64_t> odd{0};
  const Subscription a = ticks.subscribe([&](const Tick& t, const Stamp&) { ++shared[t.n]; });
  SubscribeOptions own;
  own.served = Served::isolated;
  own.queue_events = 4 * kEvents;
  const Subscription b = ticks.subscribe([&](const Tick& t) { ++isolated[t.n]; }, own);
  const Subscription c = ticks.subscribe_batch([&](Batch<Tick> all) { batched += all.size(); });
  const Subscription d = ticks.subscribe_if([](const Tick& t) { return t.n % 2 == 1; },
                                            [&](const Tick& t) {
                                              ++odd;
                                              if (t.n % 101 == 0) throw std::runtime_error("101");
                                            });
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      PublisherOptions o;
      o.capacity_events = 500;
      o.overflow = Overflow::block;
      o.block_us_max = std::chrono::minutes(1);
      auto publisher = ticks.publisher(o).value();
      for (std::uint64_t n = 0; n < kEvents; ++n) {
        if (publisher.publish({t * kEvents + n}) != PublishCode::accepted) std::abort();
      }
    });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(std::all_of(shared.begin(), shared.end(), [](const auto& n) { return n == 1; }));
  EXPECT_TRUE(std::all_of(isolated.begin(), isolated.end(), [](auto n) { return n == 1; }));
  EXPECT_EQ(batched, 3 * kEvents);
  EXPECT_EQ(odd, 3 * kEvents / 2);
  EXPECT_GT(d.stats().threw, 0u);
  for (const Subscription* s : {&a, &b, &c, &d}) expect_i3(s->stats());
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ParallelTest, ResetWaitsForEveryRunningCall) {
  Bus bus(with_workers(3));
  auto& ticks = parallel_ticks(bus);
  std::atomic<int> living{0};
  std::atomic<bool> over{false};
  Door door;
  Subscription sub = ticks.subscribe([&, kept = Counted(living)](const Tick&) {
    door.pass();
    EXPECT_FALSE(over);
    EXPECT_EQ(living, 1);
  });
  std::uint64_t n = 0;
  ASSERT_TRUE(publish_until(ticks, n, [&] { return door.arrived() == 3; }));
  EXPECT_EQ(sub.reset_for(milliseconds(1)), Detached::timeout);
  door.open();
  EXPECT_EQ(sub.reset(), Detached::done);
  over = true;
  EXPECT_EQ(living, 0);
}

TEST(ParallelTest, StopDrainsAndAbortCounts) {
  for (const StopMode mode : {StopMode::drain, StopMode::abort}) {
    Bus bus(with_workers(3));
    auto& ticks = parallel_ticks(bus);
    std::atomic<std::uint64_t> heard{0};
    const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
    for (std::uint64_t n = 0; n < 5000; ++n) ticks.post({n});
    EXPECT_EQ(bus.stop(mode, kLong).left, 0u);
    const ChannelStats s = ticks.stats();
    EXPECT_EQ(s.delivered, heard);
    EXPECT_EQ(s.delivered + s.discarded, 5000u);
    EXPECT_EQ(s.pending, 0u);
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST(ParallelTest, WhatItCannotDoIsRefusedInASentence) {
  Bus bus(with_workers(1));
  ChannelOptions o;
  o.delivery = Delivery::parallel;
  o.lanes = LaneKind::ring;
  EXPECT_NE(bus.configure<Tock>(o).error().message.find("moodycamel"), std::string::npos);
  o.lanes = LaneKind::moodycamel;
  o.order = Order::total;
  EXPECT_NE(bus.configure<Tock>(o).error().message.find("order"), std::string::npos);
  auto& ticks = parallel_ticks(bus);
  PublisherOptions p;
  p.realtime = true;
  EXPECT_NE(ticks.publisher(p).error().message.find("realtime"), std::string::npos);
  p = {};
  p.overflow = Overflow::drop_oldest;
  EXPECT_NE(ticks.publisher(p).error().message.find("oldest"), std::string::npos);
  EXPECT_THROW((void)bus.subscribe_ordered<Tick>([](const Tick&) {}), std::invalid_argument);
}

}  // namespace
}  // namespace ringmain::tests
