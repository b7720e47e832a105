// Of events that make older ones pointless, is the newest of each key always heard, and the rest
// counted?
#include <array>
#include <atomic>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/accounts.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

struct DeviceAndCount {
  std::uint32_t device;
  std::uint32_t parity;
};
static_assert(Key<std::uint32_t> && Key<Name> && Key<DeviceAndCount>);
static_assert(!Key<float> && !Key<const char*> && !Key<std::string> && !Key<std::string_view>);
struct Padded {
  std::uint64_t a;
  std::uint32_t b;
};
static_assert(!Key<Padded> && !Key<std::array<std::uint64_t, 9>>);

class CoalesceTest : public ::testing::Test {
 protected:
  void publish(std::uint32_t device, std::uint64_t n) {
    ASSERT_EQ(tocks_.publish({device, 0, n}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  auto keep() {
    return [this](const Tock& t) { got_.emplace_back(t.device, t.n); };
  }
  using Got = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

  Bus bus_{with_workers(1)};
  Channel<Tock>& tocks_ = bus_.channel<Tock>();
  Got got_;
};

TEST_F(CoalesceTest, TheNewestOfAKeyTakesTheQueuedOnesPlace) {
  auto box = tocks_.mailbox_latest(&Tock::device);
  for (std::uint64_t n = 1; n <= 30; ++n) publish(static_cast<std::uint32_t>(n % 3), n);
  SubscriberStats s = box.stats();
  EXPECT_EQ(s.pending, 3u);
  EXPECT_EQ(s.coalesced, 27u);
  expect_i3_coalesced(s);
  EXPECT_EQ(box.drain(keep()), 3u);
  EXPECT_EQ(got_, (Got{{1, 28}, {2, 29}, {0, 30}}));
  publish(2, 31);
  EXPECT_EQ(box.drain(keep()), 1u);
  EXPECT_EQ(got_.back(), (Got::value_type{2, 31}));
  s = box.stats();
  EXPECT_EQ(s.delivered, 4u);
  EXPECT_EQ(s.offered, 31u);
  expect_i3_coalesced(s);
  EXPECT_TRUE(bus_.verify_accounting());
}

TEST_F(CoalesceTest, StampsAreThoseOfTheEventThatIsHeard) {
  auto box = tocks_.mailbox_latest(&Tock::device);
  auto p = tocks_.publisher();
  for (std::uint64_t n = 1; n <= 5; ++n) {
    ASSERT_EQ(p.publish({7, 0, n}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  Stamp stamp;
  EXPECT_EQ(box.drain([&](const Tock&, const Stamp& s) { stamp = s; }), 1u);
  EXPECT_EQ(stamp.sequence, 5u);
  EXPECT_NE(stamp.time_ns, 0);
}

TEST_F(CoalesceTest, SoManyKeysAreQueuedThenTheNewestAreDroppedAndCounted) {
  SubscribeOptions o;
  o.queue_events = 5;
  auto box = tocks_.mailbox_latest(&Tock::device, o);
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t k = 0; k < 8; ++k) publish(k, round * 8 + k);
  }
  const SubscriberStats s = box.stats();
  EXPECT_EQ(s.pending, 5u);
  EXPECT_EQ(s.dropped, 9u);
  EXPECT_EQ(s.coalesced, 10u);
  expect_i3_coalesced(s);
  box.drain(keep());
  EXPECT_EQ(got_, (Got{{0, 16}, {1, 17}, {2, 18}, {3, 19}, {4, 20}}));
}

TEST_F(CoalesceTest, WhatIsBeingReadIsLeftAloneAndItsKeyQueuedAgain) {
  auto box = tocks_.mailbox_latest(&Tock::device);
  publish(1, 1);
  publish(2, 2);
  std::size_t reads = 0;
  box.drain(
      [&](const Tock& t) {
        if (reads++ == 0) {
          ASSERT_EQ(tocks_.publish({1, 0, 10}), PublishCode::accepted);
          ASSERT_EQ(tocks_.publish({2, 0, 20}), PublishCode::accepted);
          ASSERT_TRUE(eventually([&] { return box.stats().offered == 4; }));
        }
        got_.emplace_back(t.device, t.n);
      },
      2);
  EXPECT_EQ(got_, (Got{{1, 1}, {2, 2}})) << "they were taken together";
  box.drain(keep());
  EXPECT_EQ(got_, (Got{{1, 1}, {2, 2}, {1, 10}, {2, 20}}));
  EXPECT_EQ(box.stats().coalesced, 0u);
}

TEST_F(CoalesceTest, AKeyMayBeAnyFunctionOfTheEvent) {
  auto box = tocks_.mailbox_latest([](const Tock& t) {
    return DeviceAndCount{t.device, static_cast<std::uint32_t>(t.n % 2)};
  });
  for (std::uint64_t n = 0; n < 20; ++n) publish(static_cast<std::uint32_t>(n / 10), n);
  box.drain(keep());
  EXPECT_EQ(got_, (Got{{0, 8}, {0, 9}, {1, 18}, {1, 19}}));
}

TEST_F(CoalesceTest, AnEventWhoseKeyThrowsIsCountedAndHarmsNoOther) {
  auto box = tocks_.mailbox_latest([](const Tock& t) {
    if (t.n == 2) throw std::runtime_error("two");
    return t.device;
  });
  for (std::uint64_t n = 1; n <= 3; ++n) publish(static_cast<std::uint32_t>(n), n);
  EXPECT_EQ(box.stats().threw, 1u);
  expect_i3_coalesced(box.stats());
  box.drain(keep());
  EXPECT_EQ(got_, (Got{{1, 1}, {3, 3}}));
}

TEST_F(CoalesceTest, ASlowSubscriberHearsTheNewestOfEachKey) {
  for (const Served served : {Served::shared, Served::isolated, Served::own_thread}) {
    Bus bus(with_workers(2));
    auto& tocks = bus.channel<Tock>();
    Door door;
    std::map<std::uint32_t, std::uint64_t> newest;
    SubscribeOptions o;
    o.served = served;  // a shared one is isolated
    const Subscription sub = tocks.subscribe_latest(
        &Tock::device,
        [&](const Tock& t) {
          door.pass();
          EXPECT_GE(t.n, newest[t.device]);
          newest[t.device] = t.n;
        },
        o);
    ASSERT_EQ(tocks.publish({0, 0, 0}), PublishCode::accepted);
    ASSERT_TRUE(door.await_arrival());
    for (std::uint64_t n = 1; n <= 1000; ++n)
      ASSERT_EQ(tocks.publish({static_cast<std::uint32_t>(n % 10), 0, n}), PublishCode::accepted);
    ASSERT_TRUE(eventually([&] { return sub.stats().offered == 1001; }));
    EXPECT_EQ(sub.stats().pending, 11u);
    door.open();
    ASSERT_TRUE(bus.flush(kLong));
    for (std::uint32_t k = 0; k < 10; ++k) EXPECT_EQ(newest[k], k == 0 ? 1000u : 990u + k);
    EXPECT_EQ(sub.stats().delivered, 11u);
    EXPECT_EQ(sub.stats().coalesced, 990u);
    expect_i3_coalesced(sub.stats());
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST_F(CoalesceTest, TheKeysCapturesDieWithTheSubscription) {
  std::atomic<int> living{0};
  Subscription sub =
      tocks_.subscribe_latest([c = Counted(living)](const Tock& t) { return t.device; },
                              [c = Counted(living)](const Tock&) {});
  EXPECT_EQ(living, 2);
  publish(1, 1);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(CoalesceTest, ATestBusCoalescesToo) {
  TestBus bus;
  Got got;
  const Subscription sub = bus.channel<Tock>().subscribe_latest(
      &Tock::device, [&](const Tock& t) { got.emplace_back(t.device, t.n); });
  for (std::uint64_t n = 0; n < 10; ++n) bus.channel<Tock>().post({n % 2 == 0, 0, n});
  bus.deliver();
  EXPECT_EQ(got, (Got{{1, 8}, {0, 9}}));
}

}  // namespace
}  // namespace ringmain::tests
