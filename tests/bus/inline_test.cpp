// Which subscribers see an event in the publishing thread, may they refuse it, and what is returned
// and counted then?
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

// Before other tests fill the table of names.
const Name kOver{"over budget"};
const Name kThrew{"the budget threw"};
const Name kSecond{"the second one"};

class InlineTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  void TearDown() override {
    ASSERT_TRUE(bus_.flush(kLong));
    const auto verified = bus_.verify_accounting();
    EXPECT_TRUE(verified) << verified.error().message;
  }
  [[nodiscard]] static PublisherOptions options(std::uint32_t capacity = 65536) {
    PublisherOptions o;
    o.capacity_events = capacity;
    o.lane = GetParam();
    return o;
  }
  Publisher<Tick> publisher(const PublisherOptions& o = options()) {
    return std::move(ticks_.publisher(o)).value();
  }
  [[nodiscard]] static SubscribeOptions with_priority(int priority) {
    SubscribeOptions o;
    o.priority = priority;
    return o;
  }
  [[nodiscard]] static SubscribeOptions on_throw(OnThrow what, std::string name = {}) {
    SubscribeOptions o;
    o.on_throw = what;
    o.name = std::move(name);
    return o;
  }
  /// Vetoes odd numbers.
  [[nodiscard]] static auto no_odd_ones() {
    return [](const Tick& t) { return t.n % 2 != 0 ? Verdict::veto(kOver) : Verdict::allow(); };
  }

  Bus bus_{with_workers(1)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
};

TEST_P(InlineTest, ItSeesEachEventInThePublishingThreadBeforePublishReturns) {
  std::thread::id seen_by;
  std::uint64_t seen = 0;
  const Subscription sub = ticks_.subscribe_inline([&](const Tick& t) {
    seen_by = std::this_thread::get_id();
    seen = t.n;
  });
  auto p = publisher();
  EXPECT_TRUE(p.wanted());
  EXPECT_EQ(p.publish({7}), PublishCode::accepted);
  EXPECT_EQ(seen, 7u);
  EXPECT_EQ(seen_by, std::this_thread::get_id());
  EXPECT_EQ(ticks_.publish({8}), PublishCode::accepted);
  EXPECT_EQ(seen, 8u);
}

TEST_P(InlineTest, AVetoSaysWhyAndNobodyElseHearsOfIt) {
  std::vector<std::uint64_t> heard;
  const Subscription hears = ticks_.subscribe([&](const Tick& t) { heard.push_back(t.n); });
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  auto p = publisher();
  EXPECT_EQ(p.publish({2}), (PublishResult{PublishCode::accepted, {}}));
  const PublishResult vetoed = p.publish({3});
  EXPECT_EQ(vetoed.code, PublishCode::vetoed);
  EXPECT_EQ(vetoed.why.view(), "over budget");
  EXPECT_FALSE(vetoed);
  EXPECT_EQ(ticks_.publish({5}).why, kOver);
  EXPECT_EQ(p.publish({4}).why, Name{});
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{2, 4}));
  const ChannelStats s = ticks_.stats();
  EXPECT_EQ(s.offered, 4u);
  EXPECT_EQ(s.vetoed, 2u);
  EXPECT_EQ(s.accepted, 2u);
  const Ledger l = p.ledger();
  EXPECT_EQ(l.offered, 3u);
  EXPECT_EQ(l.dropped, 1u);
  EXPECT_EQ(l.delivered, 2u);
}

TEST_P(InlineTest, HigherPrioritiesComeFirstAndTheFirstVetoStops) {
  std::vector<int> order;
  const Subscription low = ticks_.subscribe_inline([&](const Tick&) { order.push_back(0); });
  const Subscription middle = ticks_.subscribe_inline(
      [&](const Tick& t) {
        order.push_back(5);
        return t.n == 0 ? Verdict::allow() : Verdict::veto(kSecond);
      },
      with_priority(5));
  const Subscription high = ticks_.subscribe_inline(
      [&](const Tick&) {
        order.push_back(9);
        return Verdict::allow();
      },
      with_priority(9));
  auto p = publisher();
  EXPECT_EQ(p.publish({0}), PublishCode::accepted);
  EXPECT_EQ(order, (std::vector<int>{9, 5, 0}));
  order.clear();
  EXPECT_EQ(p.publish({1}).why, kSecond);
  EXPECT_EQ(order, (std::vector<int>{9, 5}));
  EXPECT_EQ(middle.stats().delivered, 2u) << "a veto is an answer";
  EXPECT_EQ(low.stats().offered, 1u) << "what was vetoed before it was not offered to it";
}

TEST_P(InlineTest, OneThatThrowsAllowsUnlessItsThrowIsAVeto) {
  const auto throws = [](const Tick&) -> Verdict { throw std::runtime_error("no"); };
  auto p = publisher();
  {
    const Subscription sub = ticks_.subscribe_inline(throws);
    int after = 0;
    const Subscription next = ticks_.subscribe_inline([&](const Tick&) { ++after; });
    EXPECT_EQ(p.publish({1}), PublishCode::accepted);
    EXPECT_EQ(after, 1);
    EXPECT_EQ(sub.stats().threw, 1u);
    EXPECT_EQ(sub.stats().delivered, 0u);
    EXPECT_EQ(sub.stats().offered, 1u);
  }
  {
    const Subscription sub = ticks_.subscribe_inline(throws, on_throw(OnThrow::veto, "the budget"));
    const PublishResult r = p.publish({2});
    EXPECT_EQ(r, PublishCode::vetoed);
    EXPECT_EQ(r.why, kThrew);
    EXPECT_EQ(sub.stats().threw, 1u);
  }
  const Subscription sub = ticks_.subscribe_inline(throws, on_throw(OnThrow::detach));
  EXPECT_EQ(p.publish({3}), PublishCode::accepted);
  EXPECT_EQ(p.publish({4}), PublishCode::accepted);
  EXPECT_EQ(sub.stats().threw, 1u);
  EXPECT_EQ(sub.stats().skipped, 1u);
}

TEST_P(InlineTest, OptionsThatContradictTheirUseAreRefused) {
  SubscribeOptions isolated;
  isolated.served = Served::isolated;
  std::atomic<int> living{0};
  EXPECT_THROW((void)ticks_.subscribe_inline([c = Counted(living)](const Tick&) {}, isolated),
               std::invalid_argument);
  EXPECT_THROW(
      (void)ticks_.subscribe([c = Counted(living)](const Tick&) {}, on_throw(OnThrow::veto)),
      std::invalid_argument);
  EXPECT_THROW((void)bus_.subscribe(
                   ">", [c = Counted(living)](const EventView&) {}, on_throw(OnThrow::veto)),
               std::invalid_argument);
  EXPECT_EQ(living, 0);
  EXPECT_FALSE(ticks_.wanted());
}

TEST_P(InlineTest, WhereAllAreInlineNothingIsQueuedAndEverythingBalances) {
  int seen = 0;
  const Subscription sub = ticks_.subscribe_inline([&](const Tick&) { ++seen; });
  auto p = publisher(options(2));
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(p.publish({i}), PublishCode::accepted);
  EXPECT_EQ(seen, 10) << "and no capacity was used up";
  const ChannelStats s = ticks_.stats();
  EXPECT_EQ(s.offered, 10u);
  EXPECT_EQ(s.accepted, 10u);
  EXPECT_EQ(s.observed, 10u);
  EXPECT_EQ(s.delivered, 10u);
  EXPECT_EQ(s.pending, 0u);
  const Ledger l = p.ledger();
  EXPECT_EQ(l.offered, 10u);
  EXPECT_EQ(l.delivered, 10u);
  EXPECT_EQ(l.dropped, 0u);
}

TEST_P(InlineTest, AChannelIsQueuedAgainAsSoonAsAWorkerSubscriberComes) {
  std::vector<std::uint64_t> heard;
  std::vector<std::uint64_t> sequences;
  const Subscription sub = ticks_.subscribe_inline([](const Tick&) {});
  auto p = publisher();
  EXPECT_EQ(p.publish({1}), PublishCode::accepted);
  {
    const Subscription hears = ticks_.subscribe([&](const Tick& t, const Stamp& stamp) {
      heard.push_back(t.n);
      sequences.push_back(stamp.sequence);
    });
    EXPECT_EQ(p.publish({2}), PublishCode::accepted);
    ASSERT_TRUE(bus_.flush(kLong));
  }
  EXPECT_EQ(p.publish({3}), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard, std::vector<std::uint64_t>{2});
  EXPECT_EQ(sequences, std::vector<std::uint64_t>{2}) << "it was the second one offered";
  EXPECT_EQ(ticks_.stats().observed, 2u);
  EXPECT_EQ(p.ledger().offered, 3u);
}

TEST_P(InlineTest, AVetoLeavesAGapOfItsLengthInTheSequence) {
  std::vector<std::uint64_t> sequences;
  const Subscription hears = ticks_.subscribe(
      [&](const Tick&, const Stamp& stamp) { sequences.push_back(stamp.sequence); });
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  auto p = publisher();
  for (const std::uint64_t n : {2u, 1u, 3u, 4u, 5u, 6u}) (void)p.publish({n});
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 4, 6}));
}

TEST_P(InlineTest, ItSeesWhatIsThenRefusedAsFullAndNothingAfterStop) {
  Door door;
  const Subscription hears = ticks_.subscribe([&](const Tick&) { door.pass(); });
  int seen = 0;
  const Subscription sees = ticks_.subscribe_inline([&](const Tick&) { ++seen; });
  auto p = publisher(options(2));
  EXPECT_EQ(p.publish({1}), PublishCode::accepted);
  EXPECT_EQ(p.publish({2}), PublishCode::accepted);
  EXPECT_EQ(p.publish({3}), PublishCode::full);
  EXPECT_EQ(seen, 3);
  door.open();
  EXPECT_EQ(bus_.stop(StopMode::drain, kLong).left, 0u);
  EXPECT_EQ(p.publish({4}), PublishCode::closed);
  EXPECT_EQ(seen, 3);
}

TEST_P(InlineTest, OneThatStopIsCalledDuringIsCountedAsClosed) {
  // stop() does not wait for inline callbacks: they run before the event is in a lane.
  for (const bool queued : {false, true}) {
    Bus bus(with_workers(1));
    auto& ticks = bus.channel<Tick>();
    Door door;
    std::optional<Subscription> hears;
    if (queued) hears = ticks.subscribe([](const Tick&) {});
    const Subscription sees = ticks.subscribe_inline([&](const Tick&) { door.pass(); });
    PublishResult outcome;
    std::thread publishing([&] { outcome = ticks.publish({1}); });
    ASSERT_TRUE(door.await_arrival());
    const Stopped s = bus.stop(StopMode::drain, kLong);
    EXPECT_EQ(s.left, 0u);
    door.open();
    publishing.join();
    EXPECT_EQ(outcome, PublishCode::closed);
    EXPECT_EQ(ticks.stats().closed, 1u);
    EXPECT_EQ(ticks.stats().accepted, 0u);
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST_P(InlineTest, ABatchIsJudgedEventByEvent) {
  std::vector<std::uint64_t> heard;
  const Subscription hears = ticks_.subscribe([&](const Tick& t) { heard.push_back(t.n); });
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  auto p = publisher();
  const std::array<Tick, 6> events{{{2}, {1}, {3}, {4}, {5}, {6}}};
  for (const bool own : {true, false}) {
    const BatchResult r = own ? p.publish_all(events) : ticks_.publish_all(events);
    EXPECT_EQ(r.accepted, 3u);
    EXPECT_EQ(r.refused, 3u);
    EXPECT_EQ(r.vetoed, 3u);
    EXPECT_EQ(r.last, PublishCode::vetoed);
    ASSERT_TRUE(bus_.flush(kLong));  // between the two: there is no order across publishers
  }
  EXPECT_EQ(heard, (std::vector<std::uint64_t>{2, 4, 6, 2, 4, 6}));
}

TEST_P(InlineTest, WhatNobodyHearsAnyMoreOfABatchIsNotRefused) {
  auto p = publisher();
  for (const bool own : {true, false}) {
    Subscription last;
    last = ticks_.subscribe_inline([&last](const Tick&) {
      (void)last.reset();
      return Verdict::veto(kOver);
    });
    const std::array<Tick, 4> events{};
    const BatchResult r = own ? p.publish_all(events) : ticks_.publish_all(events);
    EXPECT_EQ(r.accepted, 0u);
    EXPECT_EQ(r.refused, 1u);
    EXPECT_EQ(r.vetoed, 1u);
    EXPECT_EQ(r.last, PublishCode::unheard);
  }
  EXPECT_EQ(ticks_.stats().offered, 2u);
}

TEST_P(InlineTest, EventsWithTheirOwnTimeAreJudgedAndKeepIt) {
  std::vector<std::int64_t> times;
  const Subscription hears =
      ticks_.subscribe([&](const Tick&, const Stamp& stamp) { times.push_back(stamp.time_ns); });
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  PublisherOptions o = options();
  o.source_time = true;
  auto p = publisher(o);
  EXPECT_EQ(p.publish_at({1}, 11), PublishCode::vetoed);
  EXPECT_EQ(p.publish_at({2}, 22), PublishCode::accepted);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(times, std::vector<std::int64_t>{22});
}

TEST_P(InlineTest, ARealtimePublisherIsJudgedToo) {
  PublisherOptions o = options();
  o.realtime = true;
  auto p = publisher(o);
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  EXPECT_EQ(p.publish({1}), PublishCode::vetoed);
  EXPECT_EQ(p.publish({2}), PublishCode::accepted);
}

TEST_P(InlineTest, AThreadThatEndsIsJudgedToTheLast) {
  struct AtThreadEnd {
    Channel<Tick>* channel = nullptr;
    PublishResult* result = nullptr;
    ~AtThreadEnd() {
      if (channel != nullptr) *result = channel->publish({9});
    }
  };
  const Subscription judges = ticks_.subscribe_inline(no_odd_ones());
  PublishResult result;
  std::thread([&] {
    thread_local AtThreadEnd at_thread_end;  // destroyed after the thread's lanes
    at_thread_end.channel = &ticks_;
    at_thread_end.result = &result;
    EXPECT_EQ(ticks_.publish({2}), PublishCode::accepted);
  }).join();
  EXPECT_EQ(result, PublishCode::vetoed);
  EXPECT_EQ(result.why, kOver);
}

TEST_P(InlineTest, APublishersErrnoIsItsOwn) {
  const Subscription sub = ticks_.subscribe_inline([](const Tick&) { errno = EIO; });
  errno = ENOENT;
  (void)ticks_.publish({1});
  EXPECT_EQ(errno, ENOENT);
}

INSTANTIATE_TEST_SUITE_P(Lanes, InlineTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) {
                           return p.param == LaneKind::ring         ? "ring"
                                  : p.param == LaneKind::moodycamel ? "moodycamel"
                                                                    : "segments";
                         });

static_assert(Observes<decltype([](const Tick&) {}), Tick>);
static_assert(!Observes<decltype([n = 0](const Tick&) mutable { ++n; }), Tick>, "const& only");
static_assert(!Observes<decltype([](const Tick&) { return true; }), Tick>, "no lost answers");
static_assert(Judges<decltype([](const Tick&) { return Verdict::allow(); }), Tick>);

}  // namespace
}  // namespace ringmain::tests
