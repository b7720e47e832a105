// Lanes of segments: how many are there, when do they come back, who goes on in them?
#include "engine/publish/segments.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "engine/publish/segment_size.hpp"
#include "engine/system/clock.hpp"

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::keep_numbers;
using tests::make_channel;
using tests::push_number;

class SegmentsTest : public ::testing::Test {
 protected:
  Lane& take(std::uint32_t capacity = 65536) {
    LaneOptions o;
    o.capacity = capacity;
    Lane* lane = channel_->take_lane(o, *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    return *lane;
  }
  void publish(Lane& lane, std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i)
      ASSERT_EQ(push_number(lane, next_++), Pushed::accepted);
  }
  void drain_all() {
    while (drain(drainer_, *channel_, 1u << 20) != 0) {
    }
  }
  void expect_all_in_order() {
    ASSERT_EQ(got_.size(), next_);
    for (std::uint64_t i = 0; i < next_; ++i) ASSERT_EQ(got_[i], i);
  }
  /// All that the lane owns, each once.
  static std::set<const Segment*> segments_of(const Lane& lane) {
    const auto& all = *static_cast<const Segments*>(lane.slots.queue);
    std::set<const Segment*> found;
    for (const Segment* s = all.oldest; s != nullptr; s = s->next.load())
      EXPECT_TRUE(found.insert(s).second) << "a segment is in two places";
    return found;
  }

  static std::uint64_t slots_of(const Lane& lane) {
    std::uint64_t slots = 0;
    for (const Segment* s : segments_of(lane)) slots += s->mask + 1;
    return slots;
  }
  /// Publishes one event after the other as if each segment were filled in no time, or in a second;
  /// the worker stays behind by `waiting`.
  void go_round(Lane& lane, bool quickly, std::uint64_t waiting, int events) {
    auto& all = *static_cast<Segments*>(lane.slots.queue);
    for (int i = 0; i < events; ++i) {
      all.extended_ns = quickly ? INT64_MAX / 2 : now_ns() - 1'000'000'000;
      publish(lane, 1);
      if (got_.size() + waiting < next_) {
        ASSERT_EQ(drain(drainer_, *channel_, 1), 1u);
      }
    }
  }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = make_channel(workers_);
  Drainer drainer_;
  std::vector<std::uint64_t> got_;
  std::uint64_t next_ = 0;
};

TEST_F(SegmentsTest, ASteadyStreamGoesRoundInFewOfThem) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  for (int i = 0; i < 20'000; ++i) {
    publish(lane, 1 + static_cast<std::uint64_t>(i) % 7);
    drain_all();
  }
  expect_all_in_order();
  EXPECT_LE(segments_of(lane).size(), 3u);
}

TEST_F(SegmentsTest, AStreamGetsALongerWayRoundUpToABound) {
  for (const std::uint32_t capacity : {1u << 20, 4096u, 300u}) {
    const AttachedSubscriber attached(*channel_, keep_numbers(got_));
    Lane& lane = take(capacity);
    const auto& all = *static_cast<const Segments*>(lane.slots.queue);
    go_round(lane, true, std::min(500u, capacity / 4), 600'000);
    const std::uint64_t one = all.writing->mask + 1;
    const std::uint64_t most = std::min<std::uint64_t>(capacity, kStreamBytes / lane.slot_bytes);
    EXPECT_LE(slots_of(lane), most);
    EXPECT_GT(slots_of(lane) + one, most);
    EXPECT_EQ(slots_of(lane), all.slots);
    drain_all();
    expect_all_in_order();
  }
}

TEST_F(SegmentsTest, WhoPublishesSlowlyOrHasItsWorkerAtHandGoesTheShortestWay) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  const std::uint64_t slots = slots_of_first(lane.slot_bytes);
  for (const std::uint64_t waiting : {std::uint64_t{3}, slots / 2 - 2}) {
    go_round(lane, true, waiting, 50'000);
    EXPECT_LE(segments_of(lane).size(), 3u) << waiting;
  }
  go_round(lane, false, 500, 2'000);
  const auto needed = segments_of(lane);
  go_round(lane, false, 500, 50'000);
  EXPECT_EQ(segments_of(lane), needed);
  drain_all();
  expect_all_in_order();
}

TEST_F(SegmentsTest, WhoHasStreamedGoesNoLongerWayWhileNothingWaits) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  go_round(lane, true, 40, 300);
  const std::size_t streamed = segments_of(lane).size();
  EXPECT_GT(streamed, 3u);
  drain_all();
  go_round(lane, true, 3, 50'000);
  EXPECT_EQ(segments_of(lane).size(), streamed);
  drain_all();
  expect_all_in_order();
}

TEST_F(SegmentsTest, BurstsWithRestsBetweenThemDoNotAddUp) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  const auto& all = *static_cast<const Segments*>(lane.slots.queue);
  const auto events = static_cast<int>(all.writing->mask + 1);
  for (int i = 0; i < 100; ++i) {
    go_round(lane, true, 40, events);
    go_round(lane, false, 40, events);
  }
  EXPECT_LE(segments_of(lane).size(), 3u);
  const std::int64_t before = now_ns();
  go_round(lane, true, 40, events);
  publish(lane, static_cast<std::uint64_t>(events));
  EXPECT_GE(all.extended_ns, before);
  EXPECT_LE(all.extended_ns, now_ns()) << "it is not said when the segment was begun";
  drain_all();
  expect_all_in_order();
}

TEST_F(SegmentsTest, ABurstMakesThemLongerAndTheNextOneFindsThem) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  publish(lane, 20'000);
  const auto first = segments_of(lane);
  std::uint64_t slots = 0, longest = 0;
  for (const Segment* s : first) {
    slots += s->mask + 1;
    longest = std::max(longest, s->mask + 1);
  }
  EXPECT_EQ(longest, slots_at_most(lane.slot_bytes));
  EXPECT_LT(slots, 20'000 + longest + slots_of_first(lane.slot_bytes))
      << "no more than the last one has slots to spare, and one that has not come back";
  drain_all();
  for (int i = 0; i < 5; ++i) {
    publish(lane, 19'000);
    drain_all();
  }
  expect_all_in_order();
  EXPECT_EQ(segments_of(lane), first);
}

/// At the end of a segment that is consumed to its last event the owner still looks for the next.
TEST_F(SegmentsTest, TheOneThatTheOwnerStandsAtTheEndOfHasNotComeBack) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  const auto& all = *static_cast<const Segments*>(lane.slots.queue);
  const Segment* const first = all.writing;
  publish(lane, first->end);
  drain_all();
  publish(lane, 1);
  publish(lane, all.writing->end - next_ + 1);
  EXPECT_EQ(segments_of(lane).size(), 3u) << "the first is used again, though the owner is in it";
  EXPECT_EQ(all.oldest, first);
  drain_all();
  publish(lane, all.writing->end - next_ + 1);
  EXPECT_EQ(segments_of(lane).size(), 3u);
  EXPECT_EQ(all.writing, first) << "it has come back";
  drain_all();
  expect_all_in_order();
}

TEST_F(SegmentsTest, TheNextPublisherGoesOnWhereTheLastOneStopped) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  for (const std::uint64_t events : {1u, 63u, 64u, 65u, 1000u, 0u, 7u, 5000u, 1u}) {
    Lane& lane = take(8192);
    publish(lane, events);
    drain_all();
    ChannelCore::give_lane(lane);
    EXPECT_EQ(channel_->lane_count(), 1u);
  }
  expect_all_in_order();
}

/// A short turn would be taken for the end of what waits.
TEST_F(SegmentsTest, ATurnIsABatchHoweverShortThePiecesAre) {
  for (const std::uint32_t payload : {8u, 64u, 160u, 1000u}) {
    ChannelCoreOptions options;
    options.payload_bytes = payload;
    const auto channel = make_channel(workers_, options);
    std::uint64_t heard = 0;
    const AttachedSubscriber attached(*channel,
                                      [&](const engine::Run& run) { heard += run.count; });
    Lane* const lane = channel->take_lane(LaneOptions{}, *channel);
    ASSERT_NE(lane, nullptr);
    std::uint64_t number = 0;
    const auto build = [](void* to, void* from) noexcept { std::memcpy(to, from, 8); };
    for (int i = 0; i < 4096; ++i)
      ASSERT_EQ(push_slowly(*lane, build, &number, 0), Pushed::accepted);
    for (int turn = 1; turn <= 16; ++turn) {
      EXPECT_EQ(drain(drainer_, *channel, Drainer::kBatchMax), std::size_t{Drainer::kBatchMax})
          << payload << " bytes, turn " << turn;
    }
    EXPECT_EQ(heard, 4096u);
  }
}

TEST_F(SegmentsTest, ALaneInWhichNothingWaitsHasTheMemoryThatItNeeds) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take();
  const auto first = segments_of(lane);
  for (int i = 0; i < 1000; ++i) {
    publish(lane, 1);
    drain_all();
  }
  expect_all_in_order();
  EXPECT_EQ(segments_of(lane), first);
}

TEST_F(SegmentsTest, ABatchCrossesTheirEnds) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(4000);
  std::vector<tests::Numbered> events(5000);
  for (std::uint64_t i = 0; i < events.size(); ++i) events[i].n = i;
  const PushedAll pushed = push_all(lane, events.data(), events.size());
  EXPECT_EQ(pushed.accepted, 4000u);
  EXPECT_EQ(pushed.refused, 1000u);
  EXPECT_EQ(pushed.last, Pushed::full);
  next_ = 4000;
  drain_all();
  expect_all_in_order();
}

/// What is heard lies in the lane: its slots are not written again before the callback is over.
TEST_F(SegmentsTest, WhatIsHeardStaysWhileItsPublisherGoesOn) {
  Lane* lane = nullptr;
  std::uint64_t heard = 0;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    if (heard < 3000) publish(*lane, 100);
    for (std::size_t i = 0; i < run.count; ++i) ASSERT_EQ(tests::number_of(run, i), heard++);
  });
  lane = &take();
  publish(*lane, 10);
  drain_all();
  EXPECT_EQ(heard, next_);
  EXPECT_GE(heard, 3000u);
}

TEST(SegmentSizeTest, AnIdleLaneIsSmallAndALongSegmentIsWrittenInAMicrosecond) {
  for (unsigned c = 0; c < slot_sizes().size(); ++c) {
    const std::uint32_t bytes = slot_bytes(c);
    const std::uint64_t first = slots_of_first(bytes), most = slots_at_most(bytes);
    EXPECT_TRUE(std::has_single_bit(first) && std::has_single_bit(most)) << bytes;
    EXPECT_LE(first, most) << bytes;
    EXPECT_GE(first, 4u) << bytes;
    EXPECT_LE(first * bytes, 4u * 1056) << bytes;
    EXPECT_TRUE(most == 64 || most * bytes <= 16384u) << bytes;
  }
}

}  // namespace
}  // namespace ringmain::engine
