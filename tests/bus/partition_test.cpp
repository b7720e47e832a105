// Does each key keep its order while different keys are heard at once?
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
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

constexpr std::uint64_t kKeys = 16;
std::uint64_t key_of(const Tick& t) {
  return t.n % kKeys;
}

class PartitionTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(PartitionTest, EventsOfOneKeyComeInOrderAndDoNotOverlap) {
  Bus bus(with_workers(GetParam()));
  auto& ticks = bus.channel<Tick>();
  std::array<std::atomic<std::uint64_t>, kKeys> last{};
  std::array<std::atomic<int>, kKeys> inside{};
  std::atomic<int> faults{0};
  const Subscription sub = ticks
                               .partition_by(&key_of, 4,
                                             [&](const Tick& t) {
                                               const std::uint64_t key = key_of(t);
                                               if (inside[key]++ != 0) ++faults;
                                               if (t.n <= last[key]) ++faults;
                                               last[key] = t.n;
                                               --inside[key];
                                             })
                               .value();
  auto publisher = ticks.publisher();
  for (std::uint64_t n = 1; n <= 20'000; ++n)
    ASSERT_EQ(publisher.publish({n}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(faults, 0);
  EXPECT_EQ(sub.stats().delivered + sub.stats().dropped, 20'000u);
  expect_i3(sub.stats());
  EXPECT_TRUE(bus.verify_accounting());
}

INSTANTIATE_TEST_SUITE_P(Workers, PartitionTest, ::testing::Values(1u, 2u, 3u));

TEST(PartitionsTest, AKeyThatIsStuckHoldsUpItsOwnPartitionOnly) {
  Bus bus(with_workers(3));
  auto& ticks = bus.channel<Tick>();
  Door door;
  std::atomic<std::uint64_t> others{0};
  const Subscription sub = ticks
                               .partition_by([](const Tick& t) { return t.n; }, 64,
                                             [&](const Tick& t, const Stamp&) {
                                               if (t.n == 0)
                                                 door.pass();
                                               else
                                                 ++others;
                                             })
                               .value();
  ticks.post({0});
  ASSERT_TRUE(door.await_arrival());
  // 64 keys can hardly all share the partition of key 0.
  for (std::uint64_t n = 1; n <= 64; ++n) ticks.post({n});
  EXPECT_TRUE(eventually([&] { return others > 32; }));
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(others, 64u);
}

TEST(PartitionsTest, KeysSpreadOverAllPartitionsAlsoWhereTheyStep) {
  for (const std::uint64_t step : {1u, 8u, 64u, 1024u}) {
    std::array<int, 8> hits{};
    for (std::uint64_t i = 0; i < 800; ++i) ++hits[detail::spread(i * step, 8)];
    EXPECT_GT(*std::min_element(hits.begin(), hits.end()), 50) << "step " << step;
  }
}

TEST(PartitionsTest, EachPartitionHasItsOwnCopyAndAllOfThemDieWithTheHandle) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  std::atomic<std::uint64_t> calls{0};
  Subscription sub = ticks
                         .partition_by(&key_of, 5,
                                       [&, kept = Counted(living), mine = 0u](const Tick&) mutable {
                                         ++mine;  // calls of one partition do not overlap
                                         ++calls;
                                       })
                         .value();
  EXPECT_EQ(living, 5);
  for (std::uint64_t n = 0; n < 100; ++n) ticks.post({n});
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
  const std::uint64_t then = calls;
  ticks.post({0});
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(calls, then);
  ASSERT_TRUE(eventually([&] {
    const Stats all = bus.stats();
    return std::none_of(all.channels.begin(), all.channels.end(),
                        [](const ChannelStats& c) { return c.mailbox; });
  }));
}

TEST(PartitionsTest, ItIsResetInItsOwnCallbackAndWhatAKeyThrowsIsCounted) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  Subscription sub;
  std::atomic<bool> done{false};
  sub = ticks
            .partition_by(
                [](const Tick& t) {
                  if (t.n == 7) throw std::runtime_error("no key");
                  return std::to_string(t.n);
                },
                3,
                [&, kept = Counted(living)](const Tick& t) {
                  if (t.n != 9) return;
                  EXPECT_EQ(sub.reset(), Detached::deferred);
                  done = true;
                })
            .value();
  ticks.post({7});
  ticks.post({8});
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sub.stats().threw, 1u);
  EXPECT_EQ(sub.stats().delivered, 1u);
  expect_i3(sub.stats());
  ticks.post({9});
  ASSERT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_EQ(sub.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST(PartitionsTest, OneThatThrowsTooOftenIsShutOutAloneAndLetInAgain) {
  Bus bus(with_workers(2));
  auto& ticks = bus.channel<Tick>();
  SubscribeOptions options;
  options.name = "sorted";
  options.on_throw = OnThrow::quarantine;
  options.throws_max = 3;
  std::atomic<bool> mended{false};
  Subscription sub = ticks
                         .partition_by([](const Tick& t) { return t.n; }, 8,
                                       [&](const Tick& t) {
                                         if (t.n == 0 && !mended) throw std::runtime_error("zero");
                                       },
                                       options)
                         .value();
  const auto of_zero = detail::spread(std::hash<std::uint64_t>{}(0), 8);
  std::uint64_t other = 1;
  while (detail::spread(std::hash<std::uint64_t>{}(other), 8) == of_zero) ++other;
  for (int i = 0; i < 10; ++i) ticks.post({0});
  for (int i = 0; i < 10; ++i) ticks.post({other});
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sub.stats().threw, 3u);
  EXPECT_EQ(sub.stats().skipped, 7u);
  EXPECT_EQ(sub.stats().delivered, 10u);
  expect_i3(sub.stats());
  EXPECT_TRUE(bus.verify_accounting());
  mended = true;
  EXPECT_TRUE(sub.readmit());
  EXPECT_FALSE(sub.readmit());
  ticks.post({0});
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(sub.stats().delivered, 11u);
  expect_i3(sub.stats());
}

TEST(PartitionsTest, FiguresMayBeAskedForWhilePartitionsComeAndGo) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> looks{0};
  std::atomic<bool> over{false};
  std::thread looker([&] {
    while (!over) {
      (void)bus.stats();
      (void)bus.verify_accounting();
      ++looks;
    }
  });
  // So many that all their mailboxes have room, should no worker come by to free one.
  bool goes_on = true;
  for (int round = 0; round < 200 && goes_on; ++round) {
    goes_on = static_cast<bool>(ticks.partition_by(&key_of, 2, [](const Tick&) {}));
    if (round % 10 == 0) goes_on = goes_on && eventually([&] { return looks > round / 10; });
  }
  over = true;
  looker.join();
  EXPECT_TRUE(goes_on);
}

TEST(PartitionsTest, WhatMakesNoSenseIsRefused) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  for (const std::size_t n : {std::size_t{0}, std::size_t{1025}}) {
    const auto made = ticks.partition_by(&key_of, n, [](const Tick&) {});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find("1024"), std::string::npos);
  }
  ChannelOptions o;
  o.delivery = Delivery::parallel;
  Channel<Tock>& tocks = *bus.configure<Tock>(o).value();
  EXPECT_FALSE(tocks.partition_by(&Tock::device, 2, [](const Tock&) {}));  // it has no order
}

}  // namespace
}  // namespace ringmain::tests
