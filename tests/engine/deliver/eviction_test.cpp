// A full lane that drops its oldest, drained by hand: which events go and stay, what is counted.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::keep_numbers;
using tests::make_channel;
using tests::Numbered;
using tests::push_number;

std::vector<std::uint64_t> from_to(std::uint64_t from, std::uint64_t to) {
  std::vector<std::uint64_t> all;
  for (; from < to; ++from) all.push_back(from);
  return all;
}

class EvictionTest : public ::testing::TestWithParam<LaneKind> {
 protected:
  [[nodiscard]] static LaneOptions options(std::uint32_t capacity,
                                           Overflow overflow = Overflow::drop_oldest) {
    LaneOptions o;
    o.capacity = capacity;
    o.kind = GetParam();
    o.overflow = overflow;
    return o;
  }
  Lane& take(const LaneOptions& wanted) {
    Lane* lane = channel_->take_lane(wanted, *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    return *lane;
  }
  /// Publishes the numbers from `from` to before `to`; returns how many were accepted.
  static std::uint64_t push_all_of(Lane& lane, std::uint64_t from, std::uint64_t to) {
    std::uint64_t accepted = 0;
    for (; from < to; ++from) {
      const Pushed how = push_number(lane, from);
      EXPECT_TRUE(how == Pushed::accepted || how == Pushed::full);
      accepted += how == Pushed::accepted;
    }
    return accepted;
  }
  std::size_t drain_all() {
    std::size_t all = 0;
    while (const std::size_t n = drain(drainer_, *channel_, 1u << 20)) all += n;
    return all;
  }
  void expect_balance(std::uint64_t offered) {
    const ChannelCounts c = counts_of(*channel_);
    EXPECT_EQ(offered_on(*channel_), offered);
    EXPECT_EQ(offered, c.accepted + c.full + c.closed + c.no_memory + c.too_deep);
    EXPECT_EQ(c.accepted, c.delivered + c.evicted + c.discarded + c.pending);
    EXPECT_EQ(c.delivered, channel_->dispatched.get());
  }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = make_channel(workers_);
  Drainer drainer_;
  std::vector<std::uint64_t> got_;
};

TEST_P(EvictionTest, OfWhatAStalledWorkerMissedExactlyTheLastOnesAreHeard) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  std::uint64_t offered = 0;
  std::uint64_t evicted = 0;
  for (const std::uint32_t capacity : {1u, 2u, 3u, 7u, 8u, 31u, 32u, 33u, 100u, 300u, 1000u}) {
    Lane& lane = take(options(capacity));
    for (const std::uint32_t n : {1u, capacity / 2, capacity, capacity + 1, 2 * capacity - 1,
                                  2 * capacity, capacity + capacity / 2}) {
      ASSERT_EQ(push_all_of(lane, 0, n), n) << capacity;
      got_.clear();
      drain_all();
      const std::uint64_t gone = n > capacity ? n - capacity : 0;
      ASSERT_EQ(got_, from_to(gone, n)) << capacity << ", " << n;
      offered += n;
      evicted += gone;
      ASSERT_EQ(counts_of(*channel_).evicted, evicted) << capacity << ", " << n;
      expect_balance(offered);
    }
    ChannelCore::give_lane(lane);
  }
}

TEST_P(EvictionTest, TwiceItsCapacityAheadItIsFull) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  for (const std::uint32_t capacity : {1u, 2u, 3u, 8u, 100u}) {
    Lane& lane = take(options(capacity));
    for (int again = 0; again < 3; ++again) {
      ASSERT_EQ(push_all_of(lane, 0, 2 * capacity), 2 * capacity);
      EXPECT_EQ(push_number(lane, 0), Pushed::full) << capacity;
      got_.clear();
      drain_all();
      EXPECT_EQ(got_, from_to(capacity, 2 * capacity)) << capacity;
    }
    ChannelCore::give_lane(lane);
  }
}

TEST_P(EvictionTest, WhatIsBeingHeardIsNotPushedOut) {
  // The worker is in a callback for 0 when the publisher goes as far as it may.
  Lane* lane = nullptr;
  std::uint64_t accepted = 0;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) got_.push_back(tests::number_of(run, i));
    if (got_.size() == 1) accepted = push_all_of(*lane, 1, 100);
  });
  lane = &take(options(4));
  ASSERT_EQ(push_number(*lane, 0), Pushed::accepted);
  drain_all();
  EXPECT_EQ(accepted, 7u) << "0 is in flight, and 8 at most are";
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{0, 4, 5, 6, 7}));
  EXPECT_EQ(counts_of(*channel_).evicted, 3u);
  expect_balance(100);
}

TEST_P(EvictionTest, AGapInTheSequenceIsAsLongAsTheLoss) {
  std::vector<std::uint64_t> sequences;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i)
      sequences.push_back(run.header(i).sequence - run.first_sequence);
  });
  Lane& lane = take(options(3));
  ASSERT_EQ(push_all_of(lane, 0, 9), 6u);  // 1 to 3 are evicted, 7 to 9 refused
  drain_all();
  ASSERT_EQ(push_all_of(lane, 0, 4), 4u);  // 10 to 13
  drain_all();
  EXPECT_EQ(sequences, (std::vector<std::uint64_t>{4, 5, 6, 11, 12, 13}));
  expect_balance(13);
}

TEST_P(EvictionTest, EvictionMakesRoomBeforeTheRestIsHeard) {
  Lane* lane = nullptr;
  std::uint64_t accepted = 0;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    if (accepted == 0) accepted = push_all_of(*lane, 20, 40);
    for (std::size_t i = 0; i < run.count; ++i) got_.push_back(tests::number_of(run, i));
  });
  lane = &take(options(10));
  ASSERT_EQ(push_all_of(*lane, 0, 20), 20u);
  ASSERT_EQ(drain(drainer_, *channel_, 10), 1u) << "runs are short while it is overrun";
  EXPECT_EQ(accepted, 10u);
  EXPECT_EQ(got_, from_to(10, 11));
  got_.clear();
  drain_all();
  EXPECT_EQ(got_, from_to(20, 30)) << "those that came in the callback pushed out the others";
  expect_balance(40);
}

TEST_P(EvictionTest, APublisherThatIsNotFarAheadLosesNothing) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(options(10));
  std::uint64_t next = 0;
  ASSERT_EQ(push_all_of(lane, 0, next += 15), 15u);  // overruns it once, then keeps within
  drain_all();
  got_.clear();
  const std::uint64_t first = next;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t n = 1 + static_cast<std::uint64_t>(round) % 10;
    ASSERT_EQ(push_all_of(lane, next, next + n), n);
    next += n;
    ASSERT_EQ(drain_all(), n);
  }
  EXPECT_EQ(got_, from_to(first, next));
  EXPECT_EQ(counts_of(*channel_).evicted, 5u);
}

TEST_P(EvictionTest, APlainPublisherOnARecycledLaneLosesNothing) {
  // Lanes are recycled whatever the bound, rings where their size is the same.
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& first = take(options(4));
  ASSERT_EQ(push_all_of(first, 0, 8), 8u);
  drain_all();
  ASSERT_EQ(push_all_of(first, 0, 7), 7u);
  drain_all();
  ChannelCore::give_lane(first);
  Lane& second = take(options(8, Overflow::drop_newest));
  ASSERT_EQ(&first, &second);
  got_.clear();
  ASSERT_EQ(push_all_of(second, 0, 20), 8u);
  drain_all();
  EXPECT_EQ(got_, from_to(0, 8));
  EXPECT_EQ(counts_of(*channel_).evicted, 7u);
  expect_balance(35);
}

TEST_P(EvictionTest, ItIsNeverOutOfStepWithASimpleModelOfItself) {
  // Every length of push and take in turn, against a model: a list, its front dropped at each take.
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  for (const std::uint32_t capacity : {1u, 2u, 3u, 5u, 8u}) {
    Lane& lane = take(options(capacity));
    std::vector<std::uint64_t> waiting;
    std::vector<std::uint64_t> expected;
    got_.clear();
    std::uint64_t next = 0;
    std::uint64_t evicted = counts_of(*channel_).evicted;
    for (std::uint32_t step = 0; step < 5000; ++step) {
      const std::uint32_t pushes = step * 7919u % (2 * capacity + 3);
      for (std::uint32_t i = 0; i < pushes; ++i, ++next) {
        const Pushed how = push_number(lane, next);
        ASSERT_EQ(how,
                  waiting.size() < 2 * std::size_t{capacity} ? Pushed::accepted : Pushed::full);
        if (how == Pushed::accepted) waiting.push_back(next);
      }
      const std::size_t had = got_.size();
      (void)drain(drainer_, *channel_, 1 + step * 104729u % capacity);
      if (waiting.size() > capacity) {
        const std::size_t gone = waiting.size() - capacity;
        waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(gone));
        evicted += gone;
      }
      const std::size_t heard = got_.size() - had;
      ASSERT_LE(heard, waiting.size());
      ASSERT_TRUE(waiting.empty() || heard != 0);
      ASSERT_TRUE(std::equal(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(heard),
                             got_.begin() + static_cast<std::ptrdiff_t>(had)))
          << capacity << ", step " << step;
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(heard));
      ASSERT_EQ(counts_of(*channel_).evicted, evicted);
      ASSERT_EQ(counts_of(*channel_).pending, waiting.size());
    }
    drain_all();
    ChannelCore::give_lane(lane);
  }
}

TEST_P(EvictionTest, ABatchMayPushOutWhatCameBeforeIt) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(options(5));
  std::array<Numbered, 12> events{};
  for (std::uint64_t i = 0; i < events.size(); ++i) events[i].n = i;
  const PushedAll all = engine::push_all(lane, events.data(), events.size());
  EXPECT_EQ(all.accepted, 10u);
  EXPECT_EQ(all.last, Pushed::full);
  drain_all();
  EXPECT_EQ(got_, from_to(5, 10));
  expect_balance(12);
}

TEST_P(EvictionTest, ARealtimePublisherMayPushOutToo) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  LaneOptions o = options(4);
  o.kind = LaneKind::ring;
  o.realtime = true;
  Lane& lane = take(o);
  ASSERT_EQ(push_all_of(lane, 0, 100), 8u);
  drain_all();
  EXPECT_EQ(got_, from_to(4, 8));
}

TEST_P(EvictionTest, WhatAnAbortDiscardsIsNotCountedAsEvicted) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(options(4));
  ASSERT_EQ(push_all_of(lane, 0, 7), 7u);
  std::size_t runs = 0;
  for (engine::Run run = take_run(lane, drainer_.room, 2); run.count != 0;
       run = take_run(lane, drainer_.room, 2), ++runs)
    discard_run(*channel_, lane, run);
  EXPECT_GT(runs, 1u);
  const ChannelCounts c = counts_of(*channel_);
  EXPECT_EQ(c.evicted, 3u);
  EXPECT_EQ(c.discarded, 4u);
  EXPECT_EQ(c.delivered, 0u);
}

TEST_P(EvictionTest, WhereItIsOverrunThereIsNoRoomForAWait) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(options(100));
  ASSERT_EQ(push_all_of(lane, 0, 50), 50u);
  drain_all();
  EXPECT_EQ(drainer_.take_least_room(), 100u);
  ASSERT_EQ(push_all_of(lane, 50, 200), 150u);
  drain_all();
  EXPECT_EQ(drainer_.take_least_room(), 0u);
  for (std::uint64_t n = 200; n < 600; n += 20) {  // it is known after a while that it keeps up
    (void)drainer_.take_least_room();
    ASSERT_EQ(push_all_of(lane, n, n + 20), 20u);
    drain_all();
  }
  EXPECT_EQ(drainer_.take_least_room(), 100u);
  EXPECT_EQ(drainer_.take_least_room(), std::uint32_t{Drainer::kAnyRoom});
}

TEST_P(EvictionTest, LatencyIsMeasuredOfThoseThatAreHeard) {
  ChannelCoreOptions measured;
  measured.latency_every = 3;
  const auto channel = make_channel(workers_, measured);
  const AttachedSubscriber attached(*channel, keep_numbers(got_));
  Lane* lane = channel->take_lane(options(6), *channel);
  ASSERT_NE(lane, nullptr);
  ASSERT_EQ(push_all_of(*lane, 0, 12), 12u);
  while (drain(drainer_, *channel, 1000) != 0) {
  }
  EXPECT_EQ(got_, from_to(6, 12));
  EXPECT_EQ(channel->latency()->count(), 2u);  // 6 and 9
}

TEST_P(EvictionTest, APublisherThatNeverStopsIsHeardInOrderAndAccountedFor) {
  std::uint64_t last = 0;
  std::uint64_t heard = 0;
  std::uint64_t gaps = 0;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      if (n <= last) ADD_FAILURE() << n << " after " << last;
      gaps += n - last - 1;
      last = n;
      ++heard;
    }
  });
  Lane& lane = take(options(50));
  std::atomic<bool> over{false};
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  std::thread publisher([&] {
    for (std::uint64_t n = 1; n <= 200'000; ++n) {
      if (push_number(lane, n) == Pushed::accepted) {
        ++accepted;
      } else {
        ++refused;
      }
    }
    over = true;
  });
  while (!over) (void)drain(drainer_, *channel_, 256);
  publisher.join();
  drain_all();
  const ChannelCounts c = counts_of(*channel_);
  gaps += 200'000 - last;
  EXPECT_EQ(c.accepted, accepted);
  EXPECT_EQ(c.full, refused);
  EXPECT_EQ(heard, accepted - c.evicted);
  EXPECT_EQ(gaps, c.evicted + refused);
  expect_balance(200'000);
}

TEST(LeastRoomTest, WhereMoreWaitThanARunMayHoldThereIsNone) {
  for (const bool parallel : {false, true}) {
    const Ref<Engine> workers = tests::resting_workers();
    ChannelCoreOptions wide;
    wide.payload_bytes = 1000;  // 62 of them are a run
    wide.parallel = parallel;
    const auto channel = make_channel(workers, wide);
    const AttachedSubscriber attached(*channel, [](const engine::Run&) {});
    LaneOptions o;
    o.capacity = 100;
    o.kind = LaneKind::moodycamel;
    Lane* const lane = channel->take_lane(o, *channel);
    ASSERT_NE(lane, nullptr);
    struct Wide {
      std::array<std::byte, 1000> bytes{};
    };
    for (int i = 0; i < 100; ++i) {
      auto make = []() noexcept { return Wide{}; };
      ASSERT_EQ(engine::push<Wide>(*lane, make), Pushed::accepted);
    }
    Drainer drainer;
    ASSERT_LT(drain(drainer, *channel, 256), 100u);
    EXPECT_EQ(drainer.take_least_room(), 0u);
    ASSERT_LT(drain(drainer, *channel, 256), 62u);
    EXPECT_EQ(drainer.take_least_room(), 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(AllKinds, EvictionTest,
                         ::testing::Values(LaneKind::moodycamel, LaneKind::ring,
                                           LaneKind::segments),
                         [](const auto& p) { return tests::name_of(p.param); });

}  // namespace
}  // namespace ringmain::engine
