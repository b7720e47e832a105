// Does a source get the lanes that it asks for in threads of others, and does taking one wait for
// nobody?
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

PublisherOptions realtime_lanes(std::uint32_t capacity) {
  PublisherOptions o;
  o.capacity_events = capacity;
  o.realtime = true;
  return o;
}

/// How many events a new thread can publish before nobody takes them.
template <class E>
std::uint64_t published_until_full(Channel<E>& channel) {
  std::uint64_t n = 0;
  std::thread([&] {
    while (channel.publish({}) == PublishCode::accepted) ++n;
  }).join();
  return n;
}

TEST(ThreadLanesTest, AThreadsLaneIsAsItsSourceSays) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  EXPECT_EQ(published_until_full(ticks), 65536u);
  bus.deliver();
  ASSERT_TRUE(ticks.set_thread_lanes(realtime_lanes(100)));
  EXPECT_EQ(published_until_full(ticks), 100u);
  bus.deliver();
  EXPECT_EQ(ticks.stats().lanes, 2u) << "the lane of other options serves no such thread";
  EXPECT_EQ(published_until_full(ticks), 100u);
  EXPECT_EQ(ticks.stats().lanes, 2u) << "one that is given back serves the next thread";
  bus.deliver();
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ThreadLanesTest, EachOfManyChannelsHearsItsOwn) {
  constexpr std::uint64_t kChannels = 100;  // more than a thread remembers lanes
  TestBus bus;
  std::vector<Channel<Tick>*> channels;
  std::vector<std::vector<std::uint64_t>> heard(kChannels);
  std::vector<Subscription> subs;
  for (std::uint64_t i = 0; i < kChannels; ++i) {
    channels.push_back(&bus.channel<Tick>("channel " + std::to_string(i)));
    subs.push_back(
        channels.back()->subscribe([&heard, i](const Tick& t) { heard[i].push_back(t.n); }));
  }
  std::vector<std::uint64_t> said;
  for (std::uint64_t round = 0; round < 3; ++round) {
    said.push_back(round);
    for (Channel<Tick>* one : channels) ASSERT_TRUE(one->publish({round}));
  }
  bus.deliver();
  for (std::uint64_t i = 0; i < kChannels; ++i) EXPECT_EQ(heard[i], said) << i;
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ThreadLanesTest, WhatIsPushedOutOrWaitedForIsAsItsSourceSays) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  std::vector<std::uint64_t> heard;
  const Subscription sub = ticks.subscribe([&](const Tick& t) { heard.push_back(t.n); });
  PublisherOptions newest;
  newest.capacity_events = 4;
  newest.overflow = Overflow::drop_oldest;
  ASSERT_TRUE(ticks.set_thread_lanes(newest));
  std::thread([&] {
    for (std::uint64_t n = 1; n <= 8; ++n) ASSERT_TRUE(ticks.publish({n}));
  }).join();
  bus.deliver();
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{5, 6, 7, 8}));
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ThreadLanesTest, ALosslessSourceLosesNothingToASlowWorker) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  PublisherOptions lossless;
  lossless.capacity_events = 2;
  lossless.overflow = Overflow::block;
  lossless.block_us_max = std::chrono::minutes(10);
  ASSERT_TRUE(ticks.set_thread_lanes(lossless));
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = ticks.subscribe([&](const Tick&) {
    std::this_thread::yield();
    ++heard;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(ticks.publish({}), PublishCode::accepted);
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 3000u);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(ThreadLanesTest, AThreadThatHasItsLaneKeepsIt) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  const Subscription other = tocks.subscribe([](const Tock&) {});
  ASSERT_TRUE(ticks.publish({}));
  ASSERT_TRUE(ticks.set_thread_lanes(realtime_lanes(2)));
  ASSERT_TRUE(tocks.publish({}));  // looked up anew after this
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ticks.publish({}));
  EXPECT_EQ(ticks.stats().lanes, 1u);
}

TEST(ThreadLanesTest, TheSameMayBeSaidAgainAndOthersAreAConflictThatNamesBoth) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  ASSERT_TRUE(ticks.set_thread_lanes(realtime_lanes(8192)));
  PublisherOptions ring = realtime_lanes(8192);
  ring.lane = LaneKind::ring;  // which realtime is anyway
  EXPECT_TRUE(ticks.set_thread_lanes(ring));
  PublisherOptions lossless;
  lossless.overflow = Overflow::block;
  const auto other = ticks.set_thread_lanes(lossless);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Error::Code::conflict);
  for (const char* named : {"'test.tick'", "8192 events, ring, realtime, drop_newest",
                            "65536 events, segments, block for 1000000 us"}) {
    EXPECT_NE(other.error().message.find(named), std::string::npos) << other.error().message;
  }
  EXPECT_FALSE(ticks.set_thread_lanes(realtime_lanes(8191)));
  EXPECT_TRUE(ticks.set_thread_lanes(realtime_lanes(8192))) << "what was said first holds";
}

/// By publisher() and by set_thread_lanes(), with the same sentence.
template <class E>
void expect_refused(Channel<E>& channel, const PublisherOptions& options) {
  const auto publisher = channel.publisher(options);
  const auto lanes = channel.set_thread_lanes(options);
  ASSERT_FALSE(publisher);
  ASSERT_FALSE(lanes);
  EXPECT_EQ(lanes.error().code, Error::Code::refused);
  EXPECT_EQ(lanes.error().message, publisher.error().message);
}

TEST(ThreadLanesTest, WhatAPublisherIsRefusedIsRefusedHereToo) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  expect_refused(ticks, {.capacity_events = 0});
  expect_refused(ticks, {.overflow = Overflow::block, .realtime = true});
  ChannelOptions o;
  o.delivery = Delivery::parallel;
  auto& parallel = *bus.configure<Tick>("test.parallel", o).value();
  expect_refused(parallel, realtime_lanes(16));
  expect_refused(parallel, {.overflow = Overflow::drop_oldest});
  EXPECT_TRUE(ticks.set_thread_lanes({})) << "a refusal says nothing for the channel";
}

TEST(ThreadLanesTest, TimesOfASourceAreRefusedForNobodyCouldGiveThem) {
  TestBus bus;
  const auto refused = bus.channel<Tick>().set_thread_lanes({.source_time = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::refused);
  EXPECT_NE(refused.error().message.find("publish_at()"), std::string::npos);
}

/// 8,192 events last for 20 ms, in which a sleeping worker looks at realtime lanes
/// (realtime_us_max), at 409,600 events per second: twice what a source of 200,000 needs.
TEST(ThreadLanesTest, ARealtimeLaneOf8192SlotsOf96BytesTakesNoMoreThanAMebibyte) {
  constexpr std::size_t kSlot = engine::slot_bytes(engine::slot_class(80));
  static_assert(kSlot == 96);
  engine::LaneOptions lane;
  lane.capacity = 8192;
  lane.kind = engine::LaneKind::ring;
  lane.realtime = true;
  const std::size_t ring = std::bit_ceil(lane.room()) * kSlot;
  EXPECT_EQ(ring, std::size_t{768} * 1024);
  const std::size_t tickets = lane.room() * sizeof(std::uint64_t);  // where an order is wanted
  EXPECT_LE(sizeof(engine::Lane) + ring + tickets, std::size_t{1} << 20);
  EXPECT_GE(std::int64_t{8192} * 1'000'000 / BusOptions{}.realtime_us_max.count(), 400'000);
}

// --- taking a lane waits for nobody ---

/// A new thread publishes, and so takes a lane, while the calling one stays where it is. False: it
/// waited for this thread.
template <class E>
bool another_gets_a_lane(Channel<E>& channel) {
  std::atomic<bool> done{false};
  std::thread taker([&] {
    (void)channel.publish({});
    done = true;
  });
  const bool got = eventually([&] { return done.load(); });
  taker.join();
  return got;
}

/// Where it is destroyed, in whichever thread, another one takes a lane.
class TakesAtItsEnd {
 public:
  TakesAtItsEnd(Channel<Tick>& channel, std::atomic<int>& times)
      : channel_(&channel), times_(&times) {}
  TakesAtItsEnd(const TakesAtItsEnd&) = delete;
  TakesAtItsEnd& operator=(const TakesAtItsEnd&) = delete;
  ~TakesAtItsEnd() { *times_ += another_gets_a_lane(*channel_) ? 1 : 0; }

 private:
  Channel<Tick>* channel_;
  std::atomic<int>* times_;
};

/// What a thread is in the middle of when another takes a lane on the same channel.
struct Moment {
  const char* name;
  int times;  // that it happens at least
  std::function<void(Bus&, Channel<Tick>&, std::atomic<int>& times)> reach;
};

SubscribeOptions served_by(Served how) {
  SubscribeOptions o;
  o.served = how;
  return o;
}

auto taking(Channel<Tick>& channel, std::atomic<int>& times) {
  // Only once: what it publishes is heard, too.
  return [&channel, &times](const Tick&) {
    if (times == 0) times += another_gets_a_lane(channel) ? 1 : 0;
  };
}

template <Served kHow>
void in_a_callback(Bus& bus, Channel<Tick>& channel, std::atomic<int>& times) {
  const Subscription sub = channel.subscribe(taking(channel, times), served_by(kHow));
  ASSERT_TRUE(channel.publish({}));
  ASSERT_TRUE(bus.flush(kLong));
}

template <Served kHow>
void in_captures(Bus& bus, Channel<Tick>& channel, std::atomic<int>& times) {
  auto end = std::make_shared<TakesAtItsEnd>(channel, times);
  Subscription sub = channel.subscribe([end = std::move(end)](const Tick&) {}, served_by(kHow));
  ASSERT_TRUE(channel.publish({}));
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sub.reset(), Detached::done);
}

const std::array kMoments{
    Moment{"callback_of_a_worker", 1, in_a_callback<Served::shared>},
    Moment{"isolated_callback", 1, in_a_callback<Served::isolated>},
    Moment{"callback_of_an_own_thread", 1, in_a_callback<Served::own_thread>},
    Moment{"inline_callback", 1,
           [](Bus&, Channel<Tick>& channel, std::atomic<int>& times) {
             std::atomic<bool> first{true};
             const Subscription sub = channel.subscribe_inline([&](const Tick&) {
               if (first.exchange(false)) times += another_gets_a_lane(channel) ? 1 : 0;
             });
             ASSERT_TRUE(channel.publish({}));
           }},
    Moment{"key_of_a_coalescing_mailbox", 1,
           [](Bus& bus, Channel<Tick>& channel, std::atomic<int>& times) {
             const auto key = [&channel, &times](const Tick& t) {
               taking(channel, times)(t);
               return t.n;
             };
             const Subscription sub = channel.subscribe_latest(key, [](const Tick&) {});
             ASSERT_TRUE(channel.publish({}));
             ASSERT_TRUE(bus.flush(kLong));
           }},
    Moment{"reader_of_a_mailbox", 1,
           [](Bus& bus, Channel<Tick>& channel, std::atomic<int>& times) {
             auto box = channel.mailbox();
             ASSERT_TRUE(channel.publish({}));
             ASSERT_TRUE(bus.flush(kLong));
             EXPECT_GE(box.drain(taking(channel, times), 1), 1u);
           }},
    Moment{"source_that_is_told_of_interest", 1,
           [](Bus& bus, Channel<Tick>& channel, std::atomic<int>& times) {
             const Subscription told = bus.on_interest(
                 channel, [&](Interest) { times += another_gets_a_lane(channel) ? 1 : 0; });
             const Subscription sub = channel.subscribe([](const Tick&) {});
             ASSERT_TRUE(bus.wait_told(kLong));
           }},
    Moment{"captures_that_reset_destroys", 1, in_captures<Served::shared>},
    Moment{"captures_of_an_isolated_one", 1, in_captures<Served::isolated>},
    Moment{"captures_of_an_own_thread", 1, in_captures<Served::own_thread>},
    Moment{"captures_that_a_worker_destroys", 1,
           [](Bus&, Channel<Tick>& channel, std::atomic<int>& times) {
             Subscription sub;
             sub = channel.subscribe([&sub, end = std::make_shared<TakesAtItsEnd>(channel, times)](
                                         const Tick&) { (void)sub.reset(); });
             ASSERT_TRUE(channel.publish({}));
             ASSERT_TRUE(eventually([&] { return times >= 1; }));
           }},
    Moment{"captures_that_are_reclaimed", 1,
           [](Bus&, Channel<Tick>& channel, std::atomic<int>& times) {
             Subscription sub;
             const Subscription stays = channel.subscribe([](const Tick&) {});
             sub = channel.subscribe_inline(
                 [&sub, end = std::make_shared<TakesAtItsEnd>(channel, times)](const Tick&) {
                   (void)sub.reset();
                 });
             ASSERT_TRUE(channel.publish({}));
             ASSERT_TRUE(eventually([&] { return times >= 1; }));
           }},
    Moment{"captures_of_many_that_leave", 300,
           [](Bus&, Channel<Tick>& channel, std::atomic<int>& times) {
             for (int i = 0; i < 300; ++i) {
               Subscription sub = channel.subscribe(
                   [end = std::make_shared<TakesAtItsEnd>(channel, times)](const Tick&) {});
             }
           }},
};

class TakingALaneTest : public ::testing::TestWithParam<Moment> {};

TEST_P(TakingALaneTest, WaitsForNoCallbackAndNoDestructor) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  ASSERT_TRUE(ticks.set_thread_lanes(realtime_lanes(64)));
  std::atomic<int> times{0};
  GetParam().reach(bus, ticks, times);
  EXPECT_GE(times, GetParam().times);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(bus.verify_accounting());
}

std::string name_of_moment(const ::testing::TestParamInfo<Moment>& p) {
  return p.param.name;
}
INSTANTIATE_TEST_SUITE_P(InTheMiddleOfA, TakingALaneTest, ::testing::ValuesIn(kMoments),
                         name_of_moment);

}  // namespace
}  // namespace ringmain::tests
