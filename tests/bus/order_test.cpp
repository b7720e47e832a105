// Is what was published earlier heard earlier, whichever threads and channels it came through?
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers up_to(std::uint64_t n) {
  Numbers all;
  for (std::uint64_t i = 1; i <= n; ++i) all.push_back(i);
  return all;
}

/// A chain of events: each is published after the one before, by the thread whose turn it is.
class Chain {
 public:
  explicit Chain(std::uint64_t end) : end_(end) {}
  /// Calls `say(n)` for every n of this thread's turns.
  template <class Say>
  void take_turns(std::uint64_t thread, std::uint64_t threads, Say say) {
    for (std::uint64_t n = thread + 1; n <= end_; n += threads) {
      while (said_.load() != n - 1) std::this_thread::yield();
      say(n);
      said_.store(n);
    }
  }

 private:
  const std::uint64_t end_;
  std::atomic<std::uint64_t> said_{0};
};

class OrderTest : public ::testing::TestWithParam<std::pair<unsigned, LaneKind>> {
 protected:
  static constexpr microseconds kPatient = std::chrono::minutes(1);  // a slow machine makes no gap

  Bus bus_{with_workers(GetParam().first)};
  static OrderOptions patient() {
    OrderOptions o;
    o.gap_us_max = kPatient;
    return o;
  }
  ChannelOptions total() const {
    ChannelOptions o;
    o.order = Order::total;
    o.order_gap_us_max = kPatient;
    o.lanes = GetParam().second;
    return o;
  }
};

TEST_P(OrderTest, AChainThroughManyThreadsIsHeardInOrderOnATotalOrderChannel) {
  constexpr std::uint64_t kEnd = 3000;
  Channel<Tick>& ticks = *bus_.configure<Tick>(total()).value();
  Numbers heard;
  const Subscription sub = ticks.subscribe([&](const Tick& t) { heard.push_back(t.n); });
  Chain chain(kEnd);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back(
        [&, t] { chain.take_turns(t, 3, [&](std::uint64_t n) { ticks.post({n}); }); });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard, up_to(kEnd));
  EXPECT_EQ(ticks.stats().order_late, 0u);
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_P(OrderTest, AChainThroughTwoChannelsIsHeardInOrderByEveryOrderedSubscriber) {
  constexpr std::uint64_t kEnd = 3000;
  auto& ticks = bus_.channel<Tick>();
  auto& tocks = bus_.channel<Tock>();
  std::atomic<std::uint64_t> others{0};
  const Subscription plain = ticks.subscribe([&](const Tick&) { ++others; });
  Numbers first;
  Numbers second;
  const Subscription one = bus_.subscribe_ordered<Tick, Tock>(
      overloaded{[&](const Tick& t) { first.push_back(t.n); },
                 [&](const Tock& t, const Stamp&) { first.push_back(t.n); }},
      patient());
  const Subscription two = bus_.subscribe_ordered<Tock, Tick>(
      [&](const auto& t, const Stamp&) { second.push_back(t.n); }, patient());
  Chain chain(kEnd);
  PublisherOptions o;
  o.lane = GetParam().second;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      Publisher<Tick> tick = ticks.publisher(o).value();
      Publisher<Tock> tock = tocks.publisher(o).value();
      chain.take_turns(t, 3, [&](std::uint64_t n) {
        if (n % 5 < 2)
          (void)tick.publish({n});
        else
          (void)tock.publish({0, 0, n});
      });
    });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(first, up_to(kEnd));
  EXPECT_EQ(second, up_to(kEnd));
  EXPECT_EQ(one.stats().order_late, 0u);
  EXPECT_EQ(one.stats().delivered, kEnd);
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_P(OrderTest, TwoSubscribersHearUnrelatedEventsInTheSameOrder) {
  auto& ticks = bus_.channel<Tick>();
  auto& tocks = bus_.channel<Tock>();
  Numbers first;
  Numbers second;
  const Subscription one =
      bus_.subscribe_ordered<Tick, Tock>([&](const auto& t) { first.push_back(t.n); }, patient());
  const Subscription two =
      bus_.subscribe_ordered<Tick, Tock>([&](const auto& t) { second.push_back(t.n); }, patient());
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 0; n < 3000; ++n) {
        if (n % 2 == 0)
          ticks.post({t << 32 | n});
        else
          tocks.post({0, 0, t << 32 | n});
      }
    });
  }
  for (auto& t : threads) t.join();
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(first.size(), 9000u);
  EXPECT_EQ(first, second);
}

INSTANTIATE_TEST_SUITE_P(Workers, OrderTest,
                         ::testing::Values(std::pair{1u, LaneKind::moodycamel},
                                           std::pair{2u, LaneKind::ring},
                                           std::pair{3u, LaneKind::segments}));

TEST(OrderedSubscriptionTest, TicketsAreTakenWhileItLivesOnly) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  const Subscription plain = ticks.subscribe([&](const Tick&) { ++heard; });
  const auto gaps_of_mailboxes = [&] {
    std::size_t n = 0;
    for (const auto& c : bus.stats().channels) n += c.mailbox;
    return n;
  };
  {
    const Subscription ordered = bus.subscribe_ordered<Tick>([](const Tick&) {});
    ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
    EXPECT_EQ(gaps_of_mailboxes(), 1u);
  }
  ASSERT_TRUE(eventually([&] { return gaps_of_mailboxes() == 0; }));
  ASSERT_EQ(ticks.publish({2}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, 2u);
}

TEST(OrderedSubscriptionTest, StampsAreThoseOfThePublishers) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::vector<Stamp> ordered;
  const Subscription sub =
      bus.subscribe_ordered<Tick>([&](const Tick&, const Stamp& s) { ordered.push_back(s); });
  PublisherOptions o;
  o.source_time = true;
  auto source = ticks.publisher(o).value();
  auto plain = ticks.publisher();
  ASSERT_EQ(source.publish_at({1}, 77), PublishCode::accepted);
  ASSERT_EQ(plain.publish({2}), PublishCode::accepted);
  ASSERT_EQ(source.publish_at({3}, 78), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  ASSERT_EQ(ordered.size(), 3u);
  EXPECT_EQ(ordered[0].time_ns, 77);
  EXPECT_EQ(ordered[0].time_from, TimeFrom::source);
  EXPECT_EQ(ordered[0].sequence, 1u);
  EXPECT_EQ(ordered[1].time_from, TimeFrom::publisher);
  EXPECT_EQ(ordered[2].sequence, 2u);
  EXPECT_EQ(ordered[2].publisher, ordered[0].publisher);
  EXPECT_NE(ordered[1].publisher, ordered[0].publisher);
}

TEST(OrderedSubscriptionTest, ASlowNeighbourOfOneChannelDelaysItAndNeverReorders) {
  Bus bus(with_workers(3));
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  Door door;
  const Subscription slow = ticks.subscribe([&](const Tick&) { door.pass(); });
  Numbers heard;
  std::atomic<std::uint64_t> count{0};
  OrderOptions o;
  o.gap_us_max = microseconds(0);  // for publishers only: what is published is waited for
  const Subscription sub = bus.subscribe_ordered<Tick, Tock>(
      [&](const auto& t) {
        heard.push_back(t.n);
        ++count;
      },
      o);
  auto first = ticks.publisher();
  auto second = ticks.publisher();
  ASSERT_EQ(first.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());  // the worker is held up after the first event
  ASSERT_TRUE(eventually([&] { return count == 1; }));
  ASSERT_EQ(second.publish({2}), PublishCode::accepted);  // stays in its lane
  ASSERT_EQ(tocks.publish({0, 0, 3}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return tocks.stats().pending == 0; }));
  EXPECT_EQ(count, 1u);
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, (Numbers{1, 2, 3}));
  EXPECT_EQ(sub.stats().order_gaps, 0u);
}

TEST(OrderedSubscriptionTest, APublisherThatStopsInTheMiddleIsPassedOverAndHeardLate) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  Numbers heard;
  std::atomic<std::uint64_t> count{0};
  OrderOptions o;
  o.gap_us_max = microseconds(1000);
  o.name = "watcher";
  const Subscription sub = bus.subscribe_ordered<Tick, Tock>(
      [&](const auto& t) {
        heard.push_back(t.n);
        ++count;
      },
      o);
  Door door;
  std::thread stopped([&] {
    (void)ticks.publish_with([&]() noexcept {
      door.pass();
      return Tick{1};
    });
  });
  ASSERT_TRUE(door.await_arrival());
  ASSERT_EQ(tocks.publish({0, 0, 2}), PublishCode::accepted);
  ASSERT_EQ(tocks.publish({0, 0, 3}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return count == 2; }));
  door.open();
  stopped.join();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, (Numbers{2, 3, 1}));
  EXPECT_EQ(sub.stats().order_gaps, 1u);
  EXPECT_EQ(sub.stats().order_late, 1u);
  bool found = false;
  for (const auto& c : bus.stats().channels) {
    if (c.name != "watcher") continue;
    found = true;
    EXPECT_EQ(c.order_gaps, 1u);
    EXPECT_EQ(c.order_late, 1u);
  }
  EXPECT_TRUE(found);
}

TEST(OrderedSubscriptionTest, AFullMailboxDropsAndCountsAndKeepsTheOrder) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  Door door;
  Numbers heard;
  OrderOptions o;
  o.queue_events = 4;
  const Subscription sub = bus.subscribe_ordered<Tick>(
      [&](const Tick& t) {
        door.pass();
        heard.push_back(t.n);
      },
      o);
  for (std::uint64_t n = 1; n <= 10; ++n) ASSERT_EQ(ticks.publish({n}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return sub.stats().offered == 10; }));
  EXPECT_EQ(sub.stats().dropped, 6u);
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(heard, (Numbers{1, 2, 3, 4}));
  const SubscriberStats s = sub.stats();
  EXPECT_EQ(s.offered, s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.pending);
}

TEST(OrderedSubscriptionTest, ItIsQuiescentWhenResetAndThrowsAreCounted) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  Subscription sub = bus.subscribe_ordered<Tick>([kept = Counted(living)](const Tick& t) {
    if (t.n == 2) throw std::runtime_error("two");
  });
  for (std::uint64_t n = 1; n <= 3; ++n) ASSERT_EQ(ticks.publish({n}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sub.stats().threw, 1u);
  EXPECT_EQ(sub.stats().delivered, 2u);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST(OrderedSubscriptionTest, StopDeliversAllThatWasAcceptedInOrder) {
  Numbers heard;
  Bus bus(with_workers(2));
  const Subscription sub =
      bus.subscribe_ordered<Tick, Tock>([&](const auto& t) { heard.push_back(t.n); });
  for (std::uint64_t n = 1; n <= 500; ++n) {
    if (n % 3 == 0)
      bus.channel<Tick>().post({n});
    else
      bus.channel<Tock>().post({0, 0, n});
  }
  EXPECT_EQ(bus.stop(StopMode::drain, kLong).left, 0u);
  EXPECT_EQ(heard, up_to(500));
}

}  // namespace
}  // namespace ringmain::tests
