// Which subscribers are called, with what, in which order, and are their counts right?
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/accounts.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class SubscribeTest : public ::testing::TestWithParam<Served> {
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

TEST_P(SubscribeTest, EverySubscriberGetsEveryEventInOrder) {
  std::vector<std::vector<std::uint64_t>> got(5);
  std::vector<Subscription> subs;
  for (auto& g : got)
    subs.push_back(ticks_.subscribe([&g](const Tick& t) { g.push_back(t.n); }, options()));
  publish(2000);
  for (const auto& g : got) {
    ASSERT_EQ(g.size(), 2000u);
    for (std::uint64_t i = 0; i < g.size(); ++i) EXPECT_EQ(g[i], i);
  }
  for (const auto& s : subs) {
    EXPECT_EQ(s.stats().delivered, 2000u);
    expect_i3(s.stats());
  }
}

TEST_P(SubscribeTest, AFilterDecidesAndIsCounted) {
  std::vector<std::uint64_t> got;
  const Subscription sub =
      ticks_.subscribe_if([](const Tick& t) { return t.n % 3 == 0; },
                          [&](const Tick& t) { got.push_back(t.n); }, options());
  publish(9);
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 3, 6}));
  EXPECT_EQ(sub.stats().delivered, 3u);
  EXPECT_EQ(sub.stats().filtered, 6u);
  expect_i3(sub.stats());
}

TEST_P(SubscribeTest, ABatchHoldsEveryEventOnce) {
  std::vector<std::uint64_t> by_iterator;
  std::vector<std::uint64_t> by_index;
  const Subscription sub = ticks_.subscribe_batch(
      [&](Batch<Tick> batch) {
        for (const Tick& t : batch) by_iterator.push_back(t.n);
        for (std::size_t i = 0; i < batch.size(); ++i) by_index.push_back(batch[i].n);
      },
      options());
  publish(1000);
  ASSERT_EQ(by_iterator.size(), 1000u);
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(by_iterator[i], i);
  EXPECT_EQ(by_iterator, by_index);
  EXPECT_EQ(sub.stats().delivered, 1000u);
}

TEST_P(SubscribeTest, AThrowingCallbackIsCountedAndKept) {
  std::vector<std::uint64_t> got;
  const Subscription bad = ticks_.subscribe(
      [](const Tick& t) {
        if (t.n % 2 == 0) throw std::runtime_error("even");
      },
      options());
  const Subscription good = ticks_.subscribe([&](const Tick& t) { got.push_back(t.n); }, options());
  publish(100);
  EXPECT_EQ(got.size(), 100u);
  EXPECT_EQ(bad.stats().threw, 50u);
  EXPECT_EQ(bad.stats().delivered, 50u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AThrowDetachesWhereThatIsWished) {
  std::atomic<int> calls{0};
  SubscribeOptions o = options();
  o.on_throw = OnThrow::detach;
  const Subscription bad = ticks_.subscribe(
      [&](const Tick&) {
        ++calls;
        throw 1;
      },
      o);
  publish(10);
  publish(10);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(bad.stats().threw, 1u);
  EXPECT_EQ(bad.stats().skipped, 19u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AThrowingBatchCountsAsAWhole) {
  std::uint64_t events = 0;
  const Subscription bad = ticks_.subscribe_batch(
      [&](Batch<Tick> b) {
        events += b.size();
        throw 1;
      },
      options());
  publish(100);
  EXPECT_EQ(events, 100u);
  EXPECT_EQ(bad.stats().threw, 100u);
  expect_i3(bad.stats());
}

TEST_P(SubscribeTest, AMemberIsCalledWhileItsObjectLives) {
  struct Listener {
    void hear(const Tick&) { ++heard; }
    void hear_stamped(const Tick&, const Stamp& s) { last = s.sequence; }
    int heard = 0;
    std::uint64_t last = 0;
  };
  auto listener = std::make_shared<Listener>();
  const Subscription sub =
      ticks_.subscribe(std::weak_ptr<Listener>(listener), &Listener::hear, options());
  const Subscription stamped =
      ticks_.subscribe(std::weak_ptr<Listener>(listener), &Listener::hear_stamped, options());
  publish(5);
  EXPECT_EQ(listener->heard, 5);
  EXPECT_EQ(listener->last, 5u);
  const std::weak_ptr<Listener> watched = listener;
  listener.reset();
  EXPECT_TRUE(watched.expired());
  publish(5);
  EXPECT_EQ(sub.stats().delivered, 5u);
  EXPECT_EQ(sub.stats().skipped, 5u);
  expect_i3(sub.stats());
}

TEST_P(SubscribeTest, ASubscriberMadeInACallbackHearsWhatIsPublishedAfterwards) {
  Subscription inner;
  std::atomic<std::uint64_t> heard{0};
  const Subscription outer = ticks_.subscribe(
      [&](const Tick& t) {
        if (t.n == 0 && !inner.attached())
          inner = ticks_.subscribe([&](const Tick&) { ++heard; }, options());
      },
      options());
  publish(1);
  EXPECT_EQ(heard, 0u);
  publish(5);
  EXPECT_EQ(heard, 5u);
  inner.reset();
}

TEST_P(SubscribeTest, WhoeverSubscribedBeforeAPublishHearsIt) {
  for (int i = 0; i < 500; ++i) {
    std::atomic<int> heard{0};
    const Subscription sub = ticks_.subscribe([&](const Tick&) { ++heard; }, options());
    ASSERT_EQ(ticks_.publish({1}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
    ASSERT_EQ(heard, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Served, SubscribeTest,
                         ::testing::Values(Served::shared, Served::isolated, Served::own_thread),
                         [](const auto& p) {
                           return p.param == Served::shared     ? "shared"
                                  : p.param == Served::isolated ? "isolated"
                                                                : "own_thread";
                         });

/// A callback that throws when it is moved or copied for the n-th time.
class ThrowsWhenMoved {
 public:
  ThrowsWhenMoved(std::atomic<int>& living, int& left) : counted_(living), left_(&left) {}
  ThrowsWhenMoved(const ThrowsWhenMoved& other) : counted_(other.counted_), left_(other.left_) {
    if (--*left_ == 0) throw std::bad_alloc();
  }
  ThrowsWhenMoved& operator=(const ThrowsWhenMoved&) = delete;
  ~ThrowsWhenMoved() = default;
  void operator()(const Tick&) const {}

 private:
  Counted counted_;
  int* left_;
};

/// Each of the moves on the way throws once; a leak checker sees what was not freed. Returns how
/// often it threw.
template <class Attach>
int throw_at_each_move(Attach attach) {
  std::atomic<int> living{0};
  int threw = 0;
  for (int n = 1; n < 40; ++n) {
    int left = n;
    try {
      attach(ThrowsWhenMoved(living, left));
      EXPECT_GT(left, 0);
    } catch (const std::bad_alloc&) {
      ++threw;
    }
    EXPECT_EQ(living, 0) << n;
  }
  return threw;
}

TEST(CapturesTest, ThoseThatThrowWhenTheyAreMovedLeaveNothingBehind) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  const auto any = [](const Tick&) { return true; };
  EXPECT_GT(throw_at_each_move([&](auto f) { (void)ticks.subscribe(f); }), 1);
  EXPECT_GT(throw_at_each_move([&](auto f) { (void)ticks.subscribe_if(any, f); }), 1);
  EXPECT_GT(
      throw_at_each_move([&](auto f) { (void)ticks.subscribe(f, {.served = Served::isolated}); }),
      1);
  EXPECT_GT(throw_at_each_move([&](auto f) { (void)ticks.subscribe_inline(f); }), 1);
  EXPECT_GT(throw_at_each_move([&](auto f) { (void)ticks.partition_by(&Tick::n, 3, f); }), 1);
  EXPECT_GT(throw_at_each_move([&](auto f) { (void)ticks.subscribe_latest(&Tick::n, f); }), 1);
  EXPECT_GT(
      throw_at_each_move([&](auto f) { (void)bus.subscribe("test.*", [f](const EventView&) {}); }),
      1);
  EXPECT_GT(throw_at_each_move([&](auto f) {
              (void)ticks.partition_by([f](const Tick& t) { return t.n; }, 3, [](const Tick&) {});
            }),
            1);
  EXPECT_EQ(ticks.stats().subscribers, 0u);
  EXPECT_TRUE(bus.flush(kLong));
}

TEST(PriorityTest, HigherPrioritiesAreCalledFirst) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::vector<int> order;
  std::vector<Subscription> subs;
  for (const int p : {0, 5, -3, 5, 1}) {
    SubscribeOptions o;
    o.priority = p;
    const int id = static_cast<int>(subs.size());
    subs.push_back(ticks.subscribe([&order, id](const Tick&) { order.push_back(id); }, o));
  }
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(order, (std::vector<int>{1, 3, 4, 0, 2}));
}

}  // namespace
}  // namespace ringmain::tests
