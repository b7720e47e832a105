// Does every published event reach its callback, whichever workers and subscribers sleep, are
// stuck, come or go?
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/half_full.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::Door;
using tests::eventually;
using tests::push_number;
using tests::Running;

/// A channel, a lane of its own and a count of what was heard.
struct Heard {
  explicit Heard(const Running& running, LaneOptions options = {})
      : channel(running.channel()),
        attached(*channel, [this](const engine::Run& run) { count += run.count; }),
        lane(*channel->take_lane(options, *channel)) {}
  Ref<ChannelCore> channel;
  std::atomic<std::uint64_t> count{0};
  AttachedSubscriber attached;
  Lane& lane;
};

class WorkersTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(WorkersTest, EveryEventOfManyChannelsIsHeard) {
  const Running running(GetParam());
  std::vector<std::unique_ptr<Heard>> all;
  for (int i = 0; i < 100; ++i) all.push_back(std::make_unique<Heard>(running));
  for (int k = 0; k < 50; ++k) {
    for (auto& h : all) ASSERT_EQ(push_number(h->lane, 1), Pushed::accepted);
  }
  for (auto& h : all) EXPECT_TRUE(eventually([&] { return h->count == 50; }));
}

// A wait would last for an hour.
TEST_P(WorkersTest, WhereASmallLaneIsHalfFullNoneIsWaitedAfter) {
  const Running running(GetParam(), tests::lingering_for_an_hour());
  const auto channel = running.channel();
  tests::expect_no_wait_at_a_half_full_lane(*channel);
}

TEST_P(WorkersTest, AParkedWorkerIsWokenByTheNextEvent) {
  WaitOptions wait;
  wait.spin_ns = 0;
  const Running running(GetParam(), wait);
  Heard h(running);
  const auto sum = [&running](auto member) {
    std::uint64_t all = 0;
    for (const auto& w : running->counts()) all += w.*member;
    return all;
  };
  for (std::uint64_t i = 1; i <= 50; ++i) {
    // Parked: as many parks as wakes and one more for every worker.
    ASSERT_TRUE(eventually([&] {
      const std::uint64_t wakes = sum(&WorkerCounts::wakes);
      return sum(&WorkerCounts::parks) == wakes + GetParam();
    }));
    ASSERT_EQ(push_number(h.lane, i), Pushed::accepted);
    ASSERT_TRUE(eventually([&] { return h.count == i; }));
  }
  EXPECT_GE(sum(&WorkerCounts::wakes), 50u);
  EXPECT_EQ(sum(&WorkerCounts::events), 50u);
}

TEST_P(WorkersTest, CallbacksOfOneChannelNeverOverlap) {
  const Running running(GetParam());
  const auto channel = running.channel();
  std::atomic<int> inside{0};
  std::atomic<std::uint64_t> heard{0};
  std::atomic<bool> overlapped{false};
  const AttachedSubscriber attached(*channel, [&](const engine::Run& run) {
    if (++inside != 1) overlapped = true;
    heard += run.count;
    --inside;
  });
  std::vector<std::thread> publishers;
  for (int t = 0; t < 3; ++t) {
    publishers.emplace_back([&] {
      LaneOptions o;
      o.overflow = Overflow::block;
      o.block_ns_max = -1;
      o.capacity = 64;
      Lane& lane = *channel->take_lane(o, *channel);
      for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(push_number(lane, i), Pushed::accepted);
      ChannelCore::give_lane(lane);
    });
  }
  for (auto& p : publishers) p.join();
  EXPECT_TRUE(eventually([&] { return heard == 9000; }));
  EXPECT_FALSE(overlapped);
}

TEST_P(WorkersTest, ARealtimePublisherIsHeardWithoutWakingAnybody) {
  WaitOptions wait;
  wait.spin_ns = 0;
  wait.realtime_ns_max = 1'000'000;
  const Running running(GetParam(), wait);
  LaneOptions o;
  o.kind = LaneKind::ring;
  o.realtime = true;
  o.capacity = 64;
  Heard h(running, o);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    ASSERT_EQ(push_number(h.lane, i), Pushed::accepted);
    ASSERT_TRUE(eventually([&] { return h.count == i; })) << i;
  }
}

TEST_P(WorkersTest, FlushReturnsOnceAllAcceptedEventsAreHeard) {
  const Running running(GetParam());
  Heard a(running);
  Heard b(running);
  for (std::uint64_t i = 1; i <= 200; ++i) {
    ASSERT_EQ(push_number(a.lane, i), Pushed::accepted);
    ASSERT_EQ(push_number(b.lane, i), Pushed::accepted);
    ASSERT_TRUE(running->flush(-1));
    ASSERT_EQ(a.count, i);
    ASSERT_EQ(b.count, i);
  }
}

TEST_P(WorkersTest, StopDeliversWhatWasAccepted) {
  for (int round = 0; round < 30; ++round) {
    Running running(GetParam());
    Heard h(running);
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(push_number(h.lane, i), Pushed::accepted);
    const auto stopped = running->stop(false, -1);
    EXPECT_EQ(h.count, 100u);
    EXPECT_EQ(stopped.left, 0u);
    EXPECT_EQ(push_number(h.lane, 1), Pushed::closed);
  }
}

TEST_P(WorkersTest, AbortedEventsAreDiscardedAndCounted) {
  Running running(GetParam());
  const auto channel = running.channel();
  Door door;
  const AttachedSubscriber attached(*channel, [&](const engine::Run&) { door.pass(); });
  Lane& lane = *channel->take_lane({}, *channel);
  ASSERT_EQ(push_number(lane, 0), Pushed::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(push_number(lane, i), Pushed::accepted);
  std::thread stopper([&] { EXPECT_EQ(running->stop(true, -1).left, 0u); });
  ASSERT_TRUE(eventually([&] { return running->aborting(); }));
  door.open();
  stopper.join();
  const ChannelCounts c = counts_of(*channel);
  EXPECT_EQ(c.accepted, 1001u);
  EXPECT_EQ(c.delivered, 1u);
  EXPECT_EQ(c.discarded, 1000u);
  EXPECT_EQ(c.pending, 0u);
}

TEST_P(WorkersTest, AnIdleBusStopsWithinNoTimeAndKeepsNothing) {
  for (int round = 0; round < 20; ++round) {
    Running running(GetParam());
    Heard h(running);
    const auto stopped = running->stop(round % 2 == 0, 0);
    EXPECT_TRUE(stopped.stuck.empty());
    EXPECT_EQ(stopped.left, 0u);
    EXPECT_TRUE(running->channels().empty()) << "the workers were given up though none was stuck";
  }
}

INSTANTIATE_TEST_SUITE_P(WorkerCounts, WorkersTest, ::testing::Values(1u, 2u, 3u, 8u));

TEST(WorkersAloneTest, AnIdleBusStopsAlsoOnABusyMachine) {
  std::atomic<bool> over{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 16; ++i) {
    busy.emplace_back([&over] {
      while (!over.load(std::memory_order_relaxed)) continue;
    });
  }
  for (int round = 0; round < 10; ++round) {
    Running running(8);
    Heard h(running);
    EXPECT_TRUE(running->stop(false, 0).stuck.empty());
    EXPECT_TRUE(running->channels().empty()) << "the workers were given up though none was stuck";
  }
  over = true;
  for (auto& b : busy) b.join();
}

TEST(WorkersAloneTest, AStuckCallbackHoldsUpItsOwnChannelOnly) {
  const Running running(2);
  const auto stuck = running.channel();
  Door door;
  std::vector<std::unique_ptr<Heard>> others;
  for (int i = 0; i < 20; ++i) others.push_back(std::make_unique<Heard>(running));
  for (auto& h : others) ASSERT_EQ(push_number(h->lane, 1), Pushed::accepted);
  const AttachedSubscriber attached(*stuck, [&](const engine::Run&) { door.pass(); });
  Lane& lane = *stuck->take_lane({}, *stuck);
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t k = 2; k <= 100; ++k) {
    for (auto& h : others) ASSERT_EQ(push_number(h->lane, k), Pushed::accepted);
    for (auto& h : others) ASSERT_TRUE(eventually([&] { return h->count == k; }));
  }
  door.open();
}

class FairnessTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(FairnessTest, EveryChannelIsServedWhileAllAreBusy) {
  // All lanes are filled while the workers are held up; then nobody may be left out in favour of
  // others that still have more.
  constexpr std::size_t kChannels = 8;
  constexpr std::uint64_t kEvents = 100 * 256;
  const Running running(GetParam());
  Door door;
  std::vector<std::unique_ptr<AttachedSubscriber>> holding;
  std::vector<Ref<ChannelCore>> held;
  for (unsigned w = 0; w < GetParam(); ++w) {
    held.push_back(running.channel());
    holding.push_back(std::make_unique<AttachedSubscriber>(
        *held.back(), [&](const engine::Run&) { door.pass(); }));
    ASSERT_EQ(push_number(*held.back()->take_lane({}, *held.back()), 1), Pushed::accepted);
  }
  ASSERT_TRUE(door.await_arrival(static_cast<int>(GetParam())));
  std::array<std::atomic<std::uint64_t>, kChannels> served{};
  std::atomic<std::uint64_t> runs{0};
  std::array<std::atomic<std::uint64_t>, kChannels> first_run{};
  std::vector<Ref<ChannelCore>> channels;
  std::vector<std::unique_ptr<AttachedSubscriber>> attacheds;
  for (std::size_t i = 0; i < kChannels; ++i) {
    channels.push_back(running.channel());
    attacheds.push_back(
        std::make_unique<AttachedSubscriber>(*channels[i], [&, i](const engine::Run& run) {
          const std::uint64_t at = ++runs;
          if (served[i].fetch_add(run.count) == 0) first_run[i] = at;
        }));
    Lane& lane = *channels[i]->take_lane({}, *channels[i]);
    for (std::uint64_t n = 0; n < kEvents; ++n) ASSERT_EQ(push_number(lane, n), Pushed::accepted);
  }
  door.open();
  for (auto& s : served) ASSERT_TRUE(eventually([&] { return s == kEvents; }));
  // A worker that the machine stops holds up the one channel that it has taken up; some worker
  // runs.
  const auto late =
      std::count_if(first_run.begin(), first_run.end(), [](const auto& f) { return f > 100u; });
  EXPECT_LE(late, static_cast<int>(GetParam()) - 1) << "of " << runs << " runs";
  attacheds.clear();
  holding.clear();
}

INSTANTIATE_TEST_SUITE_P(WorkerCounts, FairnessTest, ::testing::Values(1u, 2u, 3u));

TEST(WorkersAloneTest, AllSignalsAreBlockedInWorkers) {
  const Running running(1);
  const auto channel = running.channel();
  std::atomic<int> unblocked{-1};
  const AttachedSubscriber attached(*channel, [&](const engine::Run&) {
    sigset_t set;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
    int open = 0;
    for (const int s : {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGUSR1, SIGCHLD})
      open += ::sigismember(&set, s) == 0;
    unblocked = open;
  });
  Lane& lane = *channel->take_lane({}, *channel);
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  ASSERT_TRUE(eventually([&] { return unblocked != -1; }));
  EXPECT_EQ(unblocked, 0);
}

TEST(WorkersAloneTest, ARetiredMailboxFreesItsPlace) {
  // Places are few (kChannelsMax): one that is never given back would be missed in the end.
  const Running running(2);
  Heard busy(running);
  for (int i = 0; i < 3 * static_cast<int>(ChannelTable::kChannelsMax); ++i) {
    const auto box = running.channel();
    {
      const AttachedSubscriber attached(*box, [](const engine::Run&) {});
      ASSERT_EQ(push_number(*box->take_lane({}, *box), 1), Pushed::accepted);
    }
    (void)push_number(busy.lane, 1);
    for (int k = i % 64; k > 0; --k) pause();  // another moment of the worker's round each time
    running->retire(*box);
    if (i % 256 == 255) {
      ASSERT_TRUE(eventually([&] { return running->channels().size() <= 4; })) << i;
    }
  }
  EXPECT_TRUE(eventually([&] { return running->channels().size() == 1; }));
}

TEST(WorkersAloneTest, ASignalLeftFromAnIndexsLastChannelDoesNotLeaseAPulledOne) {
  const Running running(1);
  Heard other(running);
  ChannelCoreOptions options;
  options.pulled = true;
  const auto pulled = running.channel(options);  // unleased, as while its reader waits
  std::uint64_t woke = 0;
  running->signal(*pulled, woke);  // as the last channel of this index may have left it
  // The same round of the worker takes up both signals, or an earlier one did.
  ASSERT_EQ(push_number(other.lane, 1), Pushed::accepted);
  ASSERT_TRUE(eventually([&] { return other.count == 1; }));
  EXPECT_EQ(pulled->line.leased.load(), 0u);
  running->retire(*pulled);
}

TEST(WorkersAloneTest, NoMoreChannelsThanThereIsRoomFor) {
  const Running running(1);
  std::vector<Ref<ChannelCore>> all;
  for (std::uint32_t i = 0; i < ChannelTable::kChannelsMax; ++i) all.push_back(running.channel());
  EXPECT_THROW((void)running.channel(), std::bad_alloc);
  const AttachedSubscriber last(*all.back(), [](const engine::Run&) {});
  Lane& lane = *all.back()->take_lane({}, *all.back());
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  EXPECT_TRUE(eventually([&] { return lane.consumed.load() == 1; }));
}

TEST(WorkersAloneTest, AFlushOfAStuckChannelRunsOutOfTime) {
  const Running running(1);
  const auto channel = running.channel();
  Door door;
  const AttachedSubscriber attached(*channel, [&](const engine::Run&) { door.pass(); });
  Lane& lane = *channel->take_lane({}, *channel);
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_FALSE(running->flush(1'000'000));
  door.open();
  EXPECT_TRUE(running->flush(-1));
}

}  // namespace
}  // namespace ringmain::engine
