// Does a thread know that it is inside a subscriber, in every way in which one is called?
#include "bus/in_subscriber.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// Counts the calls of a callback, and in how many of them the thread knew it.
struct Asked {
  std::atomic<int> calls{0};
  std::atomic<int> inside{0};
  void ask() {
    inside += in_subscriber() ? 1 : 0;
    ++calls;
  }
  /// It was called `n` times, and knew it each time.
  [[nodiscard]] bool each_of(int n) const { return calls == n && inside == n; }
};

SubscribeOptions served(Served how) {
  SubscribeOptions o;
  o.served = how;
  return o;
}

class InASubscriberTest : public ::testing::TestWithParam<Served> {};

TEST_P(InASubscriberTest, ItIsTrueInACallbackAlsoAfterOneThatThrew) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  const Subscription throws = ticks.subscribe(
      [&](const Tick&) {
        asked.ask();
        throw std::runtime_error("as it says");
      },
      served(GetParam()));
  const Subscription batches =
      ticks.subscribe_batch([&](Batch<Tick>) { asked.ask(); }, served(GetParam()));
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(ticks.publish({}));
    ASSERT_TRUE(bus.flush(kLong));
    EXPECT_TRUE(asked.each_of(2 * i));
  }
  EXPECT_FALSE(in_subscriber());
}

const char* name_of(const ::testing::TestParamInfo<Served>& p) {
  switch (p.param) {
    case Served::shared:
      return "shared";
    case Served::isolated:
      return "isolated";
    default:
      return "own_thread";
  }
}

INSTANTIATE_TEST_SUITE_P(HoweverServed, InASubscriberTest,
                         ::testing::Values(Served::shared, Served::isolated, Served::own_thread),
                         name_of);

TEST(InSubscriberTest, ItIsFalseInAThreadThatPublishesOrDoesNothing) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  bool inside_make = true;
  const Subscription sub = ticks.subscribe([](const Tick&) {});
  EXPECT_FALSE(in_subscriber());
  ASSERT_TRUE(ticks.publish_with([&]() noexcept {
    inside_make = in_subscriber();
    return Tick{};
  }));
  EXPECT_FALSE(inside_make);
  EXPECT_FALSE(in_subscriber());
}

TEST(InSubscriberTest, ItIsTrueInTheInlinePhaseOnlyAlsoAfterOneThatThrew) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  const Subscription sees = ticks.subscribe_inline([&](const Tick&) { asked.ask(); });
  const Subscription throws = ticks.subscribe_inline([&](const Tick&) {
    asked.ask();
    throw std::runtime_error("as it says");
  });
  ASSERT_TRUE(ticks.publish({}));
  EXPECT_FALSE(in_subscriber());
  ASSERT_TRUE(ticks.publish({}));
  EXPECT_TRUE(asked.each_of(4));
  EXPECT_FALSE(in_subscriber());
}

/// A call within a call: the inner one's end does not end the outer one.
TEST(InSubscriberTest, ItStaysTrueUntilTheOutermostCallReturns) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  auto& tocks = bus.channel<Tock>();
  Asked outer;
  Asked inner;
  const Subscription sees_tock = tocks.subscribe_inline([&](const Tock&) { inner.ask(); });
  const Subscription sees_tick = ticks.subscribe_inline([&](const Tick&) {
    (void)tocks.publish({});
    outer.ask();
  });
  ASSERT_TRUE(ticks.publish({}));
  EXPECT_TRUE(inner.each_of(1));
  EXPECT_TRUE(outer.each_of(1));
  EXPECT_FALSE(in_subscriber());
}

TEST(InSubscriberTest, ItIsTrueWhereTheTestsOwnThreadDelivers) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  const Subscription sub = ticks.subscribe([&](const Tick&) { asked.ask(); });
  const Subscription all = bus.subscribe(">", [&](const EventView&) { asked.ask(); });
  ASSERT_TRUE(ticks.publish({}));
  bus.deliver();
  EXPECT_TRUE(asked.each_of(2));
  EXPECT_FALSE(in_subscriber());
}

TEST(InSubscriberTest, ItIsTrueInFiltersKeysAndOrderedSubscribers) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  const auto key = [&](const Tick& t) {
    asked.ask();
    return t.n;
  };
  const auto hear = [&](const Tick&) { asked.ask(); };
  const Subscription filtered = ticks.subscribe_if(
      [&](const Tick&) {
        asked.ask();
        return true;
      },
      hear);
  const Subscription latest = ticks.subscribe_latest(key, hear);
  const auto parts = ticks.partition_by(key, 2, hear);
  ASSERT_TRUE(parts);
  const Subscription ordered = bus.subscribe_ordered<Tick>(hear);
  ASSERT_TRUE(ticks.publish({}));
  bus.deliver();
  EXPECT_GE(asked.calls, 7);
  EXPECT_EQ(asked.calls, asked.inside);
  EXPECT_FALSE(in_subscriber());
}

TEST(InSubscriberTest, ItIsTrueWhileAMailboxIsDrainedAlsoAfterAReaderThatThrew) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  auto box = ticks.mailbox();
  auto any = bus.mailbox("test.>");
  Asked asked;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(ticks.publish({}));
  bus.deliver();
  EXPECT_THROW(box.drain([&](const Tick&) {
    asked.ask();
    throw std::runtime_error("as it says");
  }),
               std::runtime_error);
  EXPECT_FALSE(in_subscriber());
  EXPECT_EQ(box.drain([&](const Tick&) { asked.ask(); }), 1u);
  EXPECT_EQ(any.drain([&](const EventView&) { asked.ask(); }), 2u);
  EXPECT_TRUE(asked.each_of(4));
  EXPECT_FALSE(in_subscriber());
}

TEST(InSubscriberTest, ItIsTrueForASourceThatIsToldOfInterest) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  const Subscription told = bus.on_interest(ticks, [&](Interest) { asked.ask(); });
  const Subscription all =
      bus.on_interest("test.>", [&](std::string_view, Interest) { asked.ask(); });
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_GE(asked.calls, 2);
  EXPECT_EQ(asked.calls, asked.inside);
  EXPECT_FALSE(in_subscriber());
}

/// Its destructor calls what it was given.
class AtItsEnd {
 public:
  explicit AtItsEnd(std::function<void()> call) : call_(std::move(call)) {}
  AtItsEnd(const AtItsEnd&) = delete;
  AtItsEnd& operator=(const AtItsEnd&) = delete;
  ~AtItsEnd() { call_(); }

 private:
  std::function<void()> call_;
};

TEST(InSubscriberTest, ItIsTrueInADestructorOfCapturesThatAWorkerRuns) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Asked asked;
  Subscription sub;
  sub = ticks.subscribe([&sub, end = std::make_shared<AtItsEnd>([&] { asked.ask(); })](
                            const Tick&) { EXPECT_EQ(sub.reset(), Detached::deferred); });
  ASSERT_TRUE(ticks.publish({}));
  ASSERT_TRUE(eventually([&] { return asked.calls == 1; }));
  EXPECT_TRUE(asked.each_of(1));
}

}  // namespace
}  // namespace ringmain::tests
