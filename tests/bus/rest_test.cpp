// While a worker rests: which events wait, what ends the rest, and is anything lost?
#include <atomic>

#include <gtest/gtest.h>

#include "engine/engine.hpp"

#include "bus/bus.hpp"
#include "bus/core/erased.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

SubscribeOptions patient() {
  SubscribeOptions options;
  options.patient = true;
  return options;
}

/// A rest ends by no time that a test would see: whatever ends it was asked to.
class RestTest : public ::testing::TestWithParam<unsigned> {
 protected:
  RestTest() { workers().set_rest(3'600'000'000'000); }
  engine::Engine& workers() { return detail::Erased::core(bus_).engine(); }
  /// An event is heard, and the worker that served it rests.
  void rest() {
    ASSERT_EQ(ticks_.publish({0}), PublishCode::accepted);
    ASSERT_TRUE(eventually([this] { return lying() == 1 && workers().resting() == 1; }));
    take();
  }
  std::uint64_t lying() { return box_.stats().pending; }
  std::size_t take() {
    return box_.drain([](const Tick&) {});
  }
  Bus bus_{with_workers(GetParam())};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
  Mailbox<Tick> box_ = ticks_.mailbox(patient());
};

TEST_P(RestTest, WhatPatientSubscribersHearLiesUntilAFlush) {
  rest();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(ticks_.publish({i}));
  EXPECT_EQ(workers().resting(), 1u);
  EXPECT_EQ(lying(), 0u);
  EXPECT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(take(), 100u);
}

TEST_P(RestTest, WhatOthersHearOnAnotherChannelIsServedAtOnce) {
  rest();
  std::atomic<int> heard{0};
  const Subscription hurried = bus_.channel<Tock>().subscribe([&heard](const Tock&) { ++heard; });
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(bus_.channel<Tock>().publish({}));
    ASSERT_TRUE(eventually([&] { return heard == i; }));
  }
}

TEST_P(RestTest, WhoComesInAHurryEndsIt) {
  rest();
  std::atomic<int> heard{0};
  const Subscription hurried = ticks_.subscribe([&heard](const Tick&) { ++heard; });
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(ticks_.publish({1}));
    ASSERT_TRUE(eventually([&] { return heard >= i; }));
  }
}

TEST_P(RestTest, ALaneThatFillsUpEndsIt) {
  rest();
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(ticks_.publish({i}));
  EXPECT_TRUE(eventually([this] { return lying() == 1000; }));
}

TEST_P(RestTest, HalfALaneEndsItWithoutALookOfItsOwn) {
  PublisherOptions options;
  options.capacity_events = 100;  // fewer than a worker that rests would look for
  auto publisher = ticks_.publisher(options).value();
  rest();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(publisher.publish({i}), PublishCode::accepted);
  EXPECT_TRUE(eventually([this] { return lying() >= 50; }));
}

TEST_P(RestTest, StopDeliversWhatLies) {
  rest();
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(ticks_.publish({i}));
  const Stopped stopped = bus_.stop(StopMode::drain, kLong);
  EXPECT_EQ(stopped.left, 0u);
  EXPECT_TRUE(stopped.stuck.empty());
  EXPECT_EQ(take(), 100u);
}

TEST_P(RestTest, WithoutAWishForItNobodyRests) {
  workers().set_rest(0);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_TRUE(ticks_.publish({1}));
    ASSERT_TRUE(eventually([&] { return lying() == static_cast<std::uint64_t>(i); }));
    EXPECT_EQ(workers().resting(), 0u);
  }
}

TEST_P(RestTest, SettingItAnewEndsIt) {
  rest();
  ASSERT_TRUE(ticks_.publish({1}));
  workers().set_rest(0);
  EXPECT_TRUE(eventually([this] { return lying() == 1; }));
}

TEST_P(RestTest, NothingIsLostWhereManyFlushWhileItBegins) {
  std::uint64_t taken = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(ticks_.publish({i}));
    if (i % 3 == 0) {
      ASSERT_TRUE(bus_.flush(kLong));
      taken += take();
      ASSERT_EQ(taken, i + 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, RestTest, ::testing::Values(1u, 2u));

}  // namespace
}  // namespace ringmain::tests
