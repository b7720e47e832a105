// One lane, drained by hand: bound, order, sequence numbers, ledger, recycling, for both kinds.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"
#include "engine/publish/thread_lanes.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::keep_numbers;
using tests::make_channel;
using tests::Numbered;
using tests::push_number;

class LaneTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  [[nodiscard]] static LaneOptions options(std::uint32_t capacity) {
    LaneOptions o;
    o.capacity = capacity;
    o.kind = GetParam();
    return o;
  }
  Lane& take(std::uint32_t capacity) {
    Lane* lane = channel_->take_lane(options(capacity), *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    return *lane;
  }
  std::size_t drain_all() {
    std::size_t all = 0;
    while (const std::size_t n = drain(drainer_, *channel_, 1u << 20)) all += n;
    return all;
  }
  /// Every word of the ledger, at this moment.
  void expect_ledger(const Lane& lane, std::uint64_t published, std::uint64_t consumed,
                     std::uint64_t refused) {
    EXPECT_EQ(lane.published(), published);
    EXPECT_EQ(lane.consumed.load(), consumed);
    EXPECT_EQ(lane.refused.load(), refused);
    const ChannelCounts c = counts_of(*channel_);
    EXPECT_EQ(c.accepted, published);
    EXPECT_EQ(c.delivered, consumed);
    EXPECT_EQ(c.pending, published - consumed);
    EXPECT_EQ(offered_on(*channel_), published + refused);
    EXPECT_EQ(offered_on(*channel_), c.accepted + c.full + c.closed + c.no_memory + c.too_deep);
  }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = make_channel(workers_);
  Drainer drainer_;
  std::vector<std::uint64_t> got_;
};

TEST_P(LaneTest, ItHoldsExactlyItsCapacity) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  for (const std::uint32_t capacity : {1u, 2u, 3u, 7u, 8u, 31u, 32u, 33u, 100u}) {
    Lane& lane = take(capacity);
    for (int again = 0; again < 3; ++again) {
      for (std::uint32_t i = 0; i < capacity; ++i)
        ASSERT_EQ(push_number(lane, i), Pushed::accepted) << capacity << ", " << i;
      EXPECT_EQ(push_number(lane, 0), Pushed::full) << capacity;
      EXPECT_EQ(drain_all(), capacity);
    }
    ChannelCore::give_lane(lane);
  }
}

TEST_P(LaneTest, OneFinishedEventMakesRoomForExactlyOne) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(5);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(push_number(lane, i), Pushed::accepted);
  for (std::uint64_t i = 5; i < 50; ++i) {
    EXPECT_EQ(push_number(lane, i), Pushed::full);
    ASSERT_EQ(drain(drainer_, *channel_, 1), 1u);
    EXPECT_EQ(push_number(lane, i), Pushed::accepted);
  }
  drain_all();
  ASSERT_EQ(got_.size(), 50u);
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(got_[i], i);
}

TEST_P(LaneTest, EventsStayInOrderOverManyLaps) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(6);
  std::uint64_t next = 0;
  for (int lap = 0; lap < 500; ++lap) {
    const int n = lap % 6 + 1;
    for (int i = 0; i < n; ++i) ASSERT_EQ(push_number(lane, next++), Pushed::accepted);
    ASSERT_EQ(drain_all(), static_cast<std::size_t>(n));
  }
  ASSERT_EQ(got_.size(), next);
  for (std::uint64_t i = 0; i < next; ++i) ASSERT_EQ(got_[i], i);
}

TEST_P(LaneTest, ItsLedgerBalancesAtEveryMoment) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(3);
  expect_ledger(lane, 0, 0, 0);
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  expect_ledger(lane, 1, 0, 0);
  ASSERT_EQ(push_number(lane, 2), Pushed::accepted);
  ASSERT_EQ(push_number(lane, 3), Pushed::accepted);
  ASSERT_EQ(push_number(lane, 4), Pushed::full);
  expect_ledger(lane, 3, 0, 1);
  ASSERT_EQ(drain(drainer_, *channel_, 2), 2u);
  expect_ledger(lane, 3, 2, 1);
  channel_->close_line();
  ASSERT_EQ(push_number(lane, 5), Pushed::closed);
  expect_ledger(lane, 3, 2, 2);
  drain_all();
  expect_ledger(lane, 3, 3, 2);
}

TEST_P(LaneTest, AnEventIsInFlightUntilItsCallbackIsOver) {
  Lane& lane = take(3);
  std::uint64_t seen = ~std::uint64_t{0};
  const AttachedSubscriber attached(
      *channel_, [&](const engine::Run&) { seen = counts_of(*channel_).pending; });
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  drain_all();
  EXPECT_EQ(seen, 1u);
  EXPECT_EQ(counts_of(*channel_).pending, 0u);
}

TEST_P(LaneTest, TheFirstEventBehindAnEmptyLookOfARingIsHeardAlone) {
  Lane& lane = take(8);
  std::vector<std::uint32_t> runs;
  const AttachedSubscriber attached(*channel_,
                                    [&runs](const engine::Run& run) { runs.push_back(run.count); });
  const auto push_three = [&lane] {
    for (std::uint64_t n = 0; n < 3; ++n) ASSERT_EQ(push_number(lane, n), Pushed::accepted);
  };
  push_three();
  EXPECT_EQ(drain_all(), 3u);
  push_three();  // the last look of drain_all() was an empty one
  EXPECT_EQ(drain_all(), 3u);
  EXPECT_EQ(runs, GetParam() != LaneKind::moodycamel ? std::vector<std::uint32_t>({3, 1, 2})
                                                     : std::vector<std::uint32_t>({3, 3}));
}

TEST_P(LaneTest, AGapInTheSequenceIsAsLongAsTheLoss) {
  std::vector<std::uint64_t> sequences;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i)
      sequences.push_back(run.header(i).sequence - run.first_sequence);
  });
  Lane& lane = take(2);
  for (std::uint64_t i = 0; i < 5; ++i) (void)push_number(lane, i);  // 1, 2; 3, 4, 5 are lost
  drain_all();
  for (std::uint64_t i = 0; i < 2; ++i) (void)push_number(lane, i);  // 6, 7
  drain_all();
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 2, 6, 7}));
}

TEST_P(LaneTest, SequencesStartAtOneForEachPublisherOfARecycledLane) {
  std::vector<std::uint64_t> sequences;
  std::vector<std::uint32_t> publishers;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i)
      sequences.push_back(run.header(i).sequence - run.first_sequence);
    if (publishers.empty() || publishers.back() != run.publisher)
      publishers.push_back(run.publisher);
  });
  for (int round = 0; round < 3; ++round) {
    Lane& lane = take(2);
    for (std::uint64_t i = 0; i < 4; ++i) (void)push_number(lane, i);
    drain_all();
    ChannelCore::give_lane(lane);
  }
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(publishers.size(), 3u);
  EXPECT_EQ(channel_->lane_count(), 1u);
}

TEST_P(LaneTest, ALaneIsRecycledOnlyOnceItIsDrained) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& first = take(4);
  ASSERT_EQ(push_number(first, 1), Pushed::accepted);
  ChannelCore::give_lane(first);
  Lane& second = take(4);
  EXPECT_NE(&first, &second);
  drain_all();
  EXPECT_EQ(got_, std::vector<std::uint64_t>{1});
  Lane& third = take(4);
  EXPECT_EQ(&first, &third);
}

TEST_P(LaneTest, NoMoreThanLanesMaxAreLive) {
  ChannelCoreOptions few;
  few.lanes_max = 3;
  const auto channel = make_channel(workers_, few);
  std::array<Lane*, 3> lanes{};
  for (Lane*& l : lanes) {
    l = channel->take_lane(options(4), *channel);
    ASSERT_NE(l, nullptr);
  }
  EXPECT_EQ(channel->take_lane(options(4), *channel), nullptr);
  ChannelCore::give_lane(*lanes[1]);
  EXPECT_EQ(channel->take_lane(options(4), *channel), lanes[1]);
  EXPECT_EQ(counts_of(*channel).live_lanes, 3u);
}

TEST_P(LaneTest, APublisherWithOtherOptionsTakesALaneThatNobodyUses) {
  // Otherwise lanes_max publishers that are long gone would keep every new one out.
  ChannelCoreOptions few;
  few.lanes_max = 4;
  const auto channel = make_channel(workers_, few);
  const AttachedSubscriber attached(*channel, keep_numbers(got_));
  for (std::uint32_t capacity = 5; capacity <= 8; ++capacity) {  // one ring size
    for (const bool block : {false, true}) {
      LaneOptions o = options(capacity);
      o.overflow = block ? Overflow::block : Overflow::drop_newest;
      Lane* lane = channel->take_lane(o, *channel);
      ASSERT_NE(lane, nullptr) << "capacity " << capacity;
      got_.clear();
      for (std::uint64_t i = 0; i < capacity; ++i)
        ASSERT_EQ(push_number(*lane, i), Pushed::accepted);
      EXPECT_EQ(push_number(*lane, 0), Pushed::full) << "block_ns_max is 0: no wait";
      while (drain(drainer_, *channel, 1000) != 0) {
      }
      EXPECT_EQ(got_.size(), capacity);
      ChannelCore::give_lane(*lane);
    }
  }
}

TEST_P(LaneTest, AFreeLaneOfAnotherKindIsNotTaken) {
  LaneOptions other = options(8);
  other.kind = GetParam() == LaneKind::ring ? LaneKind::segments : LaneKind::ring;
  Lane* const first = channel_->take_lane(other, *channel_);
  ASSERT_NE(first, nullptr);
  ChannelCore::give_lane(*first);
  Lane& mine = take(8);
  EXPECT_NE(&mine, first);
  EXPECT_EQ(mine.slots.ring != nullptr, GetParam() != LaneKind::moodycamel);
}

TEST_P(LaneTest, PublishingWhileBuildingIsTooDeepAndLeavesAGap) {
  std::vector<std::uint64_t> sequences;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i)
      sequences.push_back(run.header(i).sequence - run.first_sequence);
  });
  Lane& lane = take(4);
  Pushed inner = Pushed::accepted;
  auto make = [&]() noexcept {
    inner = push_number(lane, 9);
    return Numbered{1};
  };
  EXPECT_EQ(push<Numbered>(lane, make), Pushed::accepted);
  EXPECT_EQ(inner, Pushed::too_deep);
  EXPECT_EQ(push_number(lane, 2), Pushed::accepted);
  drain_all();
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(counts_of(*channel_).too_deep, 1u);
  expect_ledger(lane, 2, 2, 1);
}

TEST_P(LaneTest, UnheardEventsAreNotOffered) {
  Lane& lane = take(4);
  EXPECT_EQ(push_number(lane, 1), Pushed::unheard);
  expect_ledger(lane, 0, 0, 0);
  {
    const AttachedSubscriber attached(*channel_, keep_numbers(got_));
    EXPECT_EQ(push_number(lane, 2), Pushed::accepted);
    drain_all();
  }
  EXPECT_EQ(push_number(lane, 3), Pushed::unheard);
  EXPECT_EQ(got_, std::vector<std::uint64_t>{2});
}

TEST_P(LaneTest, ABatchIsTakenAsFarAsThereIsRoomAndTheRestIsCounted) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(5);
  std::array<Numbered, 8> events{};
  for (std::uint64_t i = 0; i < events.size(); ++i) events[i].n = i;
  const PushedAll all = push_all(lane, events.data(), events.size());
  EXPECT_EQ(all.accepted, 5u);
  EXPECT_EQ(all.last, Pushed::full);
  expect_ledger(lane, 5, 0, 3);
  drain_all();
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  const PushedAll again = push_all(lane, events.data(), 4);
  EXPECT_EQ(again.accepted, 4u);
  EXPECT_EQ(again.last, Pushed::accepted);
}

TEST_P(LaneTest, LanesAreServedInTurn) {
  constexpr std::uint64_t kLanes = 20;  // over several chunks of the table
  std::vector<std::uint64_t> turns;     // of several runs where a lane's slots lie in pieces
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    const std::uint64_t lane = tests::number_of(run, 0) % kLanes;
    if (turns.empty() || turns.back() != lane) turns.push_back(lane);
  });
  for (std::uint64_t i = 0; i < kLanes; ++i) {
    Lane& lane = take(1000);
    for (std::uint64_t k = 0; k < 600; ++k)
      ASSERT_EQ(push_number(lane, k * kLanes + i), Pushed::accepted);
  }
  EXPECT_EQ(drain_all(), 600 * kLanes);
  for (std::uint64_t i = 0; i < kLanes; ++i) {  // every lane once before any comes again
    std::vector<std::uint64_t> round(turns.begin(),
                                     turns.begin() + static_cast<std::ptrdiff_t>(kLanes));
    EXPECT_EQ(std::count(round.begin(), round.end(), i), 1) << i;
  }
}

TEST_P(LaneTest, AThreadsLaneComesBackWhenTheThreadEnds) {
  ChannelCoreOptions o;
  o.lanes = GetParam();
  const auto channel = make_channel(workers_, o);
  const AttachedSubscriber attached(*channel, keep_numbers(got_));
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      Lane* lane = thread_lane(*channel);
      ASSERT_NE(lane, nullptr);
      EXPECT_EQ(thread_lane(*channel), lane);
      EXPECT_EQ(push_number(*lane, 1), Pushed::accepted);
    }).join();
    drain(drainer_, *channel, 1000);
  }
  EXPECT_EQ(channel->lane_count(), 1u);
  EXPECT_EQ(got_.size(), 20u);
}

TEST_P(LaneTest, ABlockedPublisherIsLetGoByAClosedChannel) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  LaneOptions o = options(1);
  o.overflow = Overflow::block;
  o.block_ns_max = -1;
  Lane* lane = channel_->take_lane(o, *channel_);
  ASSERT_NE(lane, nullptr);
  ASSERT_EQ(push_number(*lane, 1), Pushed::accepted);
  std::atomic<int> outcome{-1};
  std::thread publisher([&] { outcome = static_cast<int>(push_number(*lane, 2)); });
  ASSERT_TRUE(
      tests::eventually([&] { return lane->when_full.wake_at.load() != ~std::uint64_t{0}; }));
  channel_->close_line();
  lane->when_full.room_key.fetch_add(1);
  futex_wake(lane->when_full.room_key, 1);
  publisher.join();
  EXPECT_EQ(outcome, static_cast<int>(Pushed::closed));
}

TEST_P(LaneTest, ABlockedPublisherGoesOnOnceThereIsRoom) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  LaneOptions o = options(4);
  o.overflow = Overflow::block;
  o.block_ns_max = -1;
  Lane* lane = channel_->take_lane(o, *channel_);
  ASSERT_NE(lane, nullptr);
  constexpr std::uint64_t kEvents = 5000;
  std::thread publisher([&] {
    for (std::uint64_t i = 0; i < kEvents; ++i) ASSERT_EQ(push_number(*lane, i), Pushed::accepted);
  });
  ASSERT_TRUE(tests::eventually([&] {
    drain_all();
    return got_.size() == kEvents;
  }));
  publisher.join();
  for (std::uint64_t i = 0; i < kEvents; ++i) ASSERT_EQ(got_[i], i);
}

TEST_P(LaneTest, AFullBlockingLaneRefusesInsideACallback) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  LaneOptions o = options(1);
  o.overflow = Overflow::block;
  o.block_ns_max = -1;
  Lane* lane = channel_->take_lane(o, *channel_);
  ASSERT_NE(lane, nullptr);
  const CallbackScope scope;
  ASSERT_EQ(push_number(*lane, 1), Pushed::accepted);
  EXPECT_EQ(push_number(*lane, 2), Pushed::would_deadlock);
  expect_ledger(*lane, 1, 0, 1);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, LaneTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) { return tests::name_of(p.param); });

}  // namespace
}  // namespace ringmain::engine
