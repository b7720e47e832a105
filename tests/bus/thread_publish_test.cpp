// What does a thread get that publishes without a publisher of its own, up to its very end?
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

TEST(ThreadPublishTest, ThreadsTakeAndGiveBackTheirLanes) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; });
  for (int i = 0; i < 50; ++i) {
    std::thread([&] { ticks.post({1}); }).join();
    ASSERT_TRUE(bus.flush(kLong));
  }
  EXPECT_EQ(heard, 50u);
  EXPECT_EQ(ticks.stats().lanes, 1u);
  EXPECT_EQ(ticks.stats().publishers, 0u);
}

TEST(ThreadPublishTest, OnePublisherMoreThanLanesMaxGetsNoMemoryAndIsCounted) {
  Bus bus(with_workers(1));
  ChannelOptions o;
  o.lanes_max = 2;
  auto& channel = *bus.configure<Tick>("test.few", o).value();
  const Subscription sub = channel.subscribe([](const Tick&) {});
  auto a = channel.publisher();
  auto b = channel.publisher();
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_FALSE(channel.publisher());
  auto refused = channel.publisher(PublisherOptions{});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::no_memory);
  EXPECT_NE(refused.error().message.find("raise ChannelOptions::lanes_max"), std::string::npos);
  EXPECT_EQ(channel.publish({1}), PublishCode::no_memory);
  EXPECT_EQ(channel.publish_all(std::array<Tick, 3>{}).last, PublishCode::no_memory);
  EXPECT_EQ(channel.stats().no_memory, 4u);
  EXPECT_EQ(channel.stats().offered, 4u);
  a = {};
  EXPECT_EQ(channel.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ThreadPublishTest, OneThatGetsNoLaneOfAStoppedBusIsToldThatItIsClosed) {
  Bus bus(with_workers(1));
  ChannelOptions o;
  o.lanes_max = 1;
  auto& channel = *bus.configure<Tick>("test.few", o).value();
  const Subscription sub = channel.subscribe([](const Tick&) {});
  const auto only = channel.publisher();
  ASSERT_TRUE(only);
  ASSERT_TRUE(bus.stop(StopMode::drain, kLong).stuck.empty());
  EXPECT_EQ(channel.publish({1}), PublishCode::closed);
  EXPECT_EQ(channel.publish_all(std::array<Tick, 3>{}).last, PublishCode::closed);
  EXPECT_EQ(channel.stats().no_memory, 0u);
  EXPECT_EQ(channel.stats().closed, 4u);
  EXPECT_TRUE(bus.verify_accounting());
}

/// Publishes while its thread's other thread_locals are being destroyed.
struct PublishesAtTheEnd {
  Channel<Tick>* channel = nullptr;
  ~PublishesAtTheEnd() {
    if (channel == nullptr) return;
    for (std::uint64_t i = 0; i < 5; ++i) (void)channel->publish({1000 + i});
  }
};

TEST(ThreadPublishTest, ThreadLocalDestructorsMayPublish) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> early{0};
  std::atomic<std::uint64_t> late{0};
  const Subscription sub = ticks.subscribe([&](const Tick& t) { ++(t.n >= 1000 ? late : early); });
  for (const bool before : {false, true}) {
    std::thread([&] {
      static thread_local PublishesAtTheEnd end;
      if (before) ticks.post({1});  // then the lanes' table dies after `end`
      end.channel = &ticks;
      ticks.post({2});
    }).join();
  }
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(early, 3u);
  EXPECT_EQ(late, 10u);
  EXPECT_TRUE(bus.verify_accounting());
  EXPECT_EQ(ticks.stats().publishers, 0u);
}

}  // namespace
}  // namespace ringmain::tests
