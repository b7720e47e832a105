// The table of keys, and a queued event that is replaced while its lane is drained by hand.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"
#include "engine/publish/key_table.hpp"

#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::keep_numbers;
using tests::make_channel;
using tests::Numbered;
using tests::push_number;

std::uint64_t* at(KeyTable& table, std::uint64_t key, std::uint64_t oldest) {
  std::byte bytes[8];
  std::memcpy(bytes, &key, sizeof bytes);
  return table.at(bytes, oldest);
}

TEST(KeyTableTest, ItFindsWhatWasWrittenUnderEachKey) {
  KeyTable table(8);
  std::unordered_map<std::uint64_t, std::uint64_t> wanted;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t key = i * 0x9e3779b97f4a7c15ull >> 50;  // some of them again
    std::uint64_t* const is = at(table, key, 0);
    ASSERT_NE(is, nullptr);
    const auto was = wanted.find(key);
    ASSERT_EQ(*is, was == wanted.end() ? KeyTable::kNowhere : was->second) << i;
    *is = wanted[key] = i;
  }
}

TEST(KeyTableTest, ItFollowsTheKeysThatAreQueuedNotAllThatEverWere) {
  KeyTable table(8);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    std::uint64_t* const is = at(table, i, i < 10 ? 0 : i - 10);  // ten are queued at any time
    ASSERT_NE(is, nullptr);
    *is = i;
  }
  EXPECT_LE(table.room(), 64u);
  for (std::uint64_t i = 99'990; i < 100'000; ++i) EXPECT_EQ(*at(table, i, 99'990), i);
}

TEST(KeyTableTest, LongKeysAreComparedToTheirLastByte) {
  KeyTable table(61);
  alignas(8) std::byte a[64] = {};
  alignas(8) std::byte b[64] = {};
  b[60] = std::byte{1};
  *table.at(a, 0) = 1;
  EXPECT_EQ(*table.at(b, 0), std::uint64_t{KeyTable::kNowhere});
  *table.at(b, 0) = 2;
  EXPECT_EQ(*table.at(a, 0), 1u);
  EXPECT_EQ(*table.at(b, 0), 2u);
}

class ReplaceTest : public ::testing::Test {
 protected:
  Lane& take(std::uint32_t capacity, Overflow overflow = Overflow::drop_newest) {
    LaneOptions o;
    o.capacity = capacity;
    o.kind = LaneKind::ring;
    o.coalesce = true;
    o.overflow = overflow;
    Lane* lane = channel_->take_lane(o, *channel_);
    if (lane == nullptr) throw std::bad_alloc();
    return *lane;
  }
  static Pushed push(Lane& lane, std::uint64_t n) { return push_slowly(lane, &build, &n, 0); }
  static bool put(Lane& lane, std::uint64_t index, std::uint64_t n) {
    return replace(lane, index, &build, &n, 0);
  }
  static void build(void* to, void* from) noexcept {
    ::new (to) Numbered{*static_cast<std::uint64_t*>(from)};
  }
  std::size_t drain_all() {
    std::size_t all = 0;
    while (const std::size_t n = drain(drainer_, *channel_, 1u << 20)) all += n;
    return all;
  }

  Ref<Engine> workers_ = tests::resting_workers();
  Ref<ChannelCore> channel_ = make_channel(workers_);
  Drainer drainer_;
  std::vector<std::uint64_t> got_;
};

TEST_F(ReplaceTest, AQueuedEventIsReplacedInItsPlace) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(lane, i), Pushed::accepted);
  EXPECT_TRUE(put(lane, 1, 100));
  EXPECT_TRUE(put(lane, 1, 101));
  EXPECT_TRUE(put(lane, 3, 103));
  EXPECT_EQ(push(lane, 4), Pushed::full);
  EXPECT_EQ(drain_all(), 4u);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{0, 101, 2, 103}));
  const ChannelCounts c = counts_of(*channel_);
  EXPECT_EQ(c.coalesced, 3u);
  EXPECT_EQ(c.accepted, 4u);
  EXPECT_EQ(c.delivered, 4u);
}

TEST_F(ReplaceTest, WhatIsTakenOrGoneIsNotTouched) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(lane, i), Pushed::accepted);
  const engine::Run run = take_run(lane, drainer_.room, 2);
  ASSERT_EQ(run.count, 2u);
  EXPECT_FALSE(put(lane, 0, 100)) << "somebody is reading it";
  EXPECT_FALSE(put(lane, 1, 100));
  EXPECT_TRUE(put(lane, 2, 102));
  finish_run(*channel_, lane, run);
  EXPECT_FALSE(put(lane, 0, 100)) << "it was read";
  ASSERT_EQ(push(lane, 4), Pushed::accepted);  // lies where 0 lay
  EXPECT_FALSE(put(lane, 0, 100)) << "another one lies there";
  EXPECT_TRUE(put(lane, 4, 104));
  drain_all();
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{102, 3, 104}));
  EXPECT_EQ(counts_of(*channel_).coalesced, 2u);
}

TEST_F(ReplaceTest, WhileOneIsBeingReplacedTheReaderStopsInFrontOfIt) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(4);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(push(lane, i), Pushed::accepted);
  lane.slots.claims[2] = Lane::kReplacing;  // its feeder stands still here
  EXPECT_EQ(drain_all(), 2u);
  EXPECT_EQ(drain_all(), 0u);
  EXPECT_TRUE(channel_->anything_left());
  lane.slots.claims[2] = Lane::kQueued;
  EXPECT_EQ(drain_all(), 2u);
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{0, 1, 2, 3}));
}

TEST_F(ReplaceTest, TheOldestMayBePushedOutToo) {
  const AttachedSubscriber attached(*channel_, keep_numbers(got_));
  Lane& lane = take(4, Overflow::drop_oldest);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(push(lane, i), Pushed::accepted);
  EXPECT_TRUE(put(lane, 0, 100));
  EXPECT_TRUE(put(lane, 6, 106));
  drain_all();
  EXPECT_EQ(got_, (std::vector<std::uint64_t>{4, 5, 106, 7}));
  const ChannelCounts c = counts_of(*channel_);
  EXPECT_EQ(c.evicted, 4u);
  EXPECT_EQ(c.coalesced, 2u);
}

TEST_F(ReplaceTest, NothingIsTornOrLostBetweenAFeederAndAReader) {
  std::uint64_t last[4] = {};
  std::uint64_t heard = 0;
  const AttachedSubscriber attached(*channel_, [&](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t n = tests::number_of(run, i);
      if (n <= last[n % 4]) ADD_FAILURE() << n << " after " << last[n % 4];
      last[n % 4] = n;
      ++heard;
    }
  });
  Lane& lane = take(4);
  constexpr std::uint64_t kEvents = 200'000;
  std::atomic<bool> over{false};
  std::uint64_t merged = 0;
  std::thread feeder([&] {
    std::uint64_t index[4] = {KeyTable::kNowhere, KeyTable::kNowhere, KeyTable::kNowhere,
                              KeyTable::kNowhere};
    for (std::uint64_t n = 4; n < kEvents; ++n) {
      std::uint64_t& i = index[n % 4];
      if (i != KeyTable::kNowhere && put(lane, i, n)) {
        ++merged;
        continue;
      }
      const std::uint64_t next = lane.published();
      while (push(lane, n) != Pushed::accepted) std::this_thread::yield();
      i = next;
    }
    over = true;
  });
  while (!over) {
    if (drain(drainer_, *channel_, 3) == 0) std::this_thread::yield();
  }
  feeder.join();
  drain_all();
  for (std::uint64_t k = 0; k < 4; ++k)
    EXPECT_EQ(last[k], kEvents - 4 + k) << "the newest of a key";
  EXPECT_EQ(heard + merged, kEvents - 4);
  EXPECT_EQ(counts_of(*channel_).coalesced, merged);
}

TEST_F(ReplaceTest, ThereIsAlwaysRoomForHalfAsManyKeysAsEvents) {
  enum : std::uint64_t { kKeys = 2, kEvents = 3'000'000 };
  const AttachedSubscriber attached(*channel_, [](const engine::Run&) {});
  Lane& lane = take(2 * kKeys);
  std::atomic<bool> over{false};
  std::uint64_t refused = 0;
  std::thread feeder([&] {
    std::array<std::uint64_t, kKeys> index;
    index.fill(KeyTable::kNowhere);
    for (std::uint64_t n = 0; n < kEvents; ++n) {
      std::uint64_t& i = index[n % kKeys];
      if (i != KeyTable::kNowhere && put(lane, i, n)) continue;
      const std::uint64_t next = lane.published();
      if (push(lane, n) == Pushed::accepted) {
        i = next;
      } else {
        ++refused;
      }
    }
    over = true;
  });
  while (!over) {
    if (drain(drainer_, *channel_, 1u << 20) == 0) std::this_thread::yield();
  }
  feeder.join();
  drain_all();
  EXPECT_EQ(refused, 0u);
}

}  // namespace
}  // namespace ringmain::engine
