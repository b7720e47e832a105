// What does the housekeeper see, when does it say so, and does it sleep when nobody needs it?
// Rounds are made by hand at times of the test's own, where time matters.
#include "engine/watch/housekeeper.hpp"

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/channel/channel_figures.hpp"
#include "engine/engine.hpp"
#include "engine/subscribe/threw.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::tests {
namespace {

using namespace ringmain::engine;

constexpr std::int64_t kMs = 1'000'000;

// --- rounds by hand ---

/// Keeps what it is told; `accepts` says whether anybody hears of losses.
class Recorder final : public Reporter {
 public:
  struct Lost {
    Losses counts;
    std::int64_t first_ns, last_ns;
  };
  void slow(const SlowTurn& turn) noexcept override { slow_turns.push_back(turn); }
  void threw(const Thrown& one) noexcept override { thrown.push_back(one); }
  bool lost(const ChannelCore&, const Losses& counts, std::int64_t first_ns,
            std::int64_t last_ns) noexcept override {
    if (accepts) losses.push_back({counts, first_ns, last_ns});
    return accepts;
  }
  bool round(std::uint32_t, std::int64_t) noexcept override { return ++rounds, true; }
  [[nodiscard]] bool is_calling() const noexcept override { return false; }
  [[nodiscard]] std::string calling() const override { return {}; }
  [[nodiscard]] std::int64_t due_ns() const noexcept override { return INT64_MAX; }

  bool accepts = true;
  std::vector<SlowTurn> slow_turns;
  std::vector<Lost> losses;
  std::vector<Thrown> thrown;
  std::atomic<int> rounds{0};
};

class HouseTest : public ::testing::Test {
 protected:
  HouseTest() : workers_(resting_workers()), recorder_(new Recorder) {
    workers_->house().set_reporter(recorder_.get());
    channel_ = make_channel(workers_);
    EXPECT_TRUE(workers_->add(*channel_));
    round(100);
  }
  ~HouseTest() override {
    (void)workers_->start();  // for workers that never began, stop() waits until it gives them up
    (void)workers_->stop(true, -1);
  }
  /// The next look, so many milliseconds later.
  void round(std::int64_t ms, std::uint32_t notified = 0) {
    now_ += ms * kMs;
    (void)workers_->house().round(notified, now_, ms * kMs);
  }
  /// What is queued is delivered, by the test's own thread.
  void drain_all() {
    for (const auto& c : workers_->channels()) {
      while (drain(manual_, *c, 256) != 0) {
      }
    }
  }
  void lose(Lane& lane, int events) {
    for (int i = 0; i < events; ++i) EXPECT_EQ(push_number(lane, 0), Pushed::full);
  }

  std::int64_t now_ = 1'000'000 * kMs;
  Ref<Engine> workers_;
  Ref<Recorder> recorder_;
  Ref<ChannelCore> channel_;
  Drainer manual_;
};

class LossesTest : public HouseTest {
 protected:
  LossesTest() : attached_(*channel_, [](const engine::Run&) {}) {
    LaneOptions o;
    o.capacity = 1;
    lane_ = channel_->take_lane(o, *channel_);
    EXPECT_EQ(push_number(*lane_, 1), Pushed::accepted);
  }
  AttachedSubscriber attached_;
  Lane* lane_;
};

TEST_F(LossesTest, ABurstIsOneNoticeWithItsCountsAndItsTimes) {
  round(200);
  const std::int64_t before = now_;
  lose(*lane_, 3);
  round(200);
  EXPECT_TRUE(recorder_->losses.empty()) << "it may not be over";
  lose(*lane_, 2);
  round(200);
  const std::int64_t after = now_;
  round(200);
  ASSERT_EQ(recorder_->losses.size(), 1u);
  EXPECT_EQ(recorder_->losses[0].counts.full, 5u);
  EXPECT_EQ(recorder_->losses[0].first_ns, before);
  EXPECT_EQ(recorder_->losses[0].last_ns, after);
  round(200);
  EXPECT_EQ(recorder_->losses.size(), 1u) << "told is told";
  lose(*lane_, 1);
  round(200);
  round(200);
  ASSERT_EQ(recorder_->losses.size(), 2u);
  EXPECT_EQ(recorder_->losses[1].counts.full, 1u);
}

TEST_F(LossesTest, ALastingBurstIsToldEverySecond) {
  std::uint64_t sum = 0;
  for (int i = 0; i < 25; ++i) {
    lose(*lane_, 1);
    round(200);
  }
  for (const auto& l : recorder_->losses) sum += l.counts.full;
  EXPECT_EQ(recorder_->losses.size(), 5u);
  EXPECT_EQ(sum, 25u);
}

TEST_F(LossesTest, WhatNobodyHeardIsKeptAndToldInOneSum) {
  recorder_->accepts = false;
  for (int i = 0; i < 10; ++i) {
    lose(*lane_, 1);
    round(200);
    round(200);
  }
  recorder_->accepts = true;
  round(200);
  ASSERT_EQ(recorder_->losses.size(), 1u);
  EXPECT_EQ(recorder_->losses[0].counts.full, 10u);
}

TEST_F(LossesTest, TheLastWordsBeforeStopDoNotWaitForTheEndOfABurst) {
  lose(*lane_, 4);
  round(1, EventCount::kLast);
  ASSERT_EQ(recorder_->losses.size(), 1u);
  EXPECT_EQ(recorder_->losses[0].counts.full, 4u);
}

TEST_F(LossesTest, TheBussOwnChannelsCauseNoNotices) {
  ChannelCoreOptions own;
  own.tells_no_losses = true;
  const auto loss = make_channel(workers_, own);
  ASSERT_TRUE(workers_->add(*loss));
  const AttachedSubscriber attached(*loss, [](const engine::Run&) {});
  LaneOptions o;
  o.capacity = 1;
  Lane* lane = loss->take_lane(o, *loss);
  // And a mailbox that they feed: its lane carries their events.
  ChannelCoreOptions box_options;
  box_options.mailbox = true;
  const auto box = make_channel(workers_, box_options);
  ASSERT_TRUE(workers_->add(*box));
  const AttachedSubscriber reader(*box, [](const engine::Run&) {});
  Lane* fed = box->take_lane(o, *loss);
  ASSERT_EQ(push_number(*lane, 1), Pushed::accepted);
  fed->unqueued.full.store(7);
  lose(*lane, 3);
  round(200);
  round(200);
  EXPECT_TRUE(recorder_->losses.empty());
  Lane* other = box->take_lane(o, *channel_);
  other->unqueued.full.store(2);
  round(200);
  round(200);
  ASSERT_EQ(recorder_->losses.size(), 1u);
  EXPECT_EQ(recorder_->losses[0].counts.full, 2u);
  drain_all();
}

TEST_F(LossesTest, TheDepthIsTheHighestSeen) {
  round(200);
  EXPECT_EQ(channel_->looked.depth_max.get(), 1u);
  LaneOptions o;
  o.capacity = 100;
  Lane* lane = channel_->take_lane(o, *channel_);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(push_number(*lane, 0), Pushed::accepted);
  round(200);
  EXPECT_EQ(channel_->looked.depth_max.get(), 51u);
  drain_all();
  round(200);
  EXPECT_EQ(depth_of(*channel_), 0u);
  EXPECT_EQ(channel_->looked.depth_max.get(), 51u);
}

class WatchTest : public HouseTest {
 protected:
  WatchTest() : attached_(*channel_, [](const engine::Run&) {}) {
    (*attached_).name = "the slow one";
    set_budget(100);
    workers_->drainers().watch(drainer_);
  }
  ~WatchTest() override { workers_->drainers().unwatch(drainer_); }
  void set_budget(std::int64_t ms) {
    (*attached_).budget_ns = ms * kMs;
    workers_->inbox().budget(ms * kMs);
  }
  void show_call(std::uint32_t turn) {
    drainer_.calling.store(call_word(turn, (*attached_).watch_id));
  }
  AttachedSubscriber attached_;
  Drainer drainer_;
};

TEST_F(WatchTest, ATurnOverItsBudgetIsToldOnceByName) {
  show_call(1);
  round(50);
  round(50);
  EXPECT_TRUE(recorder_->slow_turns.empty());
  for (int i = 0; i < 10; ++i) round(50);
  ASSERT_EQ(recorder_->slow_turns.size(), 1u);
  EXPECT_EQ(recorder_->slow_turns[0].subscriber, "the slow one");
  EXPECT_EQ(recorder_->slow_turns[0].channel, "test");
  EXPECT_EQ(recorder_->slow_turns[0].running_ns, 100 * kMs);
  EXPECT_EQ(recorder_->slow_turns[0].budget_ns, 100 * kMs);
  EXPECT_EQ((*attached_).slow.get(), 1u);
  EXPECT_EQ((*attached_).longest_ns.get(), static_cast<std::uint64_t>(550 * kMs));
  show_call(2);
  for (int i = 0; i < 4; ++i) round(50);
  EXPECT_EQ(recorder_->slow_turns.size(), 2u);
}

TEST_F(WatchTest, ManyShortTurnsAreNotOneLongOne) {
  for (std::uint32_t turn = 1; turn < 100; ++turn) {
    show_call(turn);
    round(50);
  }
  EXPECT_TRUE(recorder_->slow_turns.empty());
}

TEST_F(WatchTest, ItDoesNotTakeItsOwnPauseForASlowCallback) {
  for (std::uint32_t turn = 1; turn < 50;
       ++turn) {  // each 50 ms in, then SIGSTOP for 5 s, then over
    show_call(turn);
    round(50);
    round(50);
    now_ += 5'000 * kMs;
    workers_->house().round(0, now_, 50 * kMs);
  }
  EXPECT_TRUE(recorder_->slow_turns.empty());
}

TEST_F(WatchTest, ABudgetOfZeroIsNeverOver) {
  (*attached_).budget_ns = 0;
  show_call(1);
  for (int i = 0; i < 10; ++i) round(500);
  EXPECT_TRUE(recorder_->slow_turns.empty());
}

TEST_F(WatchTest, WhoIsOffTheListAndStillRunningIsNamedAllTheSame) {
  auto* leaver = make_test_subscriber([](const engine::Run&) {});
  leaver->name = "the leaver";
  leaver->budget_ns = 100 * kMs;
  leaver->holders.fetch_add(1);
  ASSERT_TRUE(channel_->attach(leaver));
  drainer_.calling.store(call_word(1, leaver->watch_id));
  // As a worker in a callback: the list it was called from is not freed.
  drainer_.reading.store(channel_->snapshot().load());
  leaver->gate.close();
  channel_->unlist(leaver);
  for (int i = 0; i < 4; ++i) round(50);
  ASSERT_EQ(recorder_->slow_turns.size(), 1u);
  EXPECT_EQ(recorder_->slow_turns[0].subscriber, "the leaver");
  destroy_captures(*leaver);
  drop_subscriber(leaver);
}

TEST_F(HouseTest, ThrowsAreToldOncePerSecondAndAQuarantineAtOnce) {
  const AttachedSubscriber attached(*channel_, [](const engine::Run&) {});
  (*attached).news = &workers_->inbox();
  (*attached).throws.set_max(100);
  const auto throw_once = [&] {
    try {
      throw std::runtime_error("no luck");
    } catch (...) {
      subscriber_threw(*attached);
    }
  };
  throw_once();
  round(10);
  ASSERT_EQ(recorder_->thrown.size(), 1u);
  EXPECT_EQ(recorder_->thrown[0].what, "no luck");
  for (int i = 0; i < 50; ++i) {
    throw_once();
    round(10);
  }
  EXPECT_EQ(recorder_->thrown.size(), 1u) << "half a second later";
  round(600);
  ASSERT_EQ(recorder_->thrown.size(), 2u);
  EXPECT_EQ(recorder_->thrown[1].count, 50u);
}

TEST(ThrowsTest, SoManyWithinASecondAreTooManyAtEveryMoment) {
  Throws t;
  t.set_max(3);
  EXPECT_FALSE(t.too_many(1'000 * kMs));
  EXPECT_FALSE(t.too_many(1'900 * kMs));
  EXPECT_FALSE(t.too_many(2'100 * kMs)) << "the first is 1.1 s ago";
  EXPECT_TRUE(t.too_many(2'800 * kMs)) << "1.9, 2.1 and 2.8";
  t.forget();
  EXPECT_FALSE(t.too_many(2'801 * kMs));
  Throws never;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(never.too_many(1));
  Throws once;
  once.set_max(1);
  EXPECT_TRUE(once.too_many(1));
}

// --- its thread ---

TEST(HouseThreadTest, ItMakesARoundWhenAskedAndEndsWithItsWorkers) {
  const Ref<Recorder> recorder(new Recorder);
  const Ref<Engine> workers(new Engine({}));
  workers->house().set_reporter(recorder.get());
  EXPECT_FALSE(workers->house().await_round(0)) << "no thread yet";
  ASSERT_EQ(workers->start(), 1u);
  EXPECT_TRUE(workers->house().running());
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(workers->house().await_round(60'000 * kMs));
    ASSERT_GE(recorder->rounds, i);
  }
  {
    const CallbackScope scope;
    EXPECT_FALSE(workers->house().await_round(-1)) << "it may be the one who would have to";
  }
  EXPECT_TRUE(workers->stop(false, 60'000 * kMs).stuck.empty());
  EXPECT_FALSE(workers->house().running());
  EXPECT_FALSE(workers->house().await_round(-1));
}

TEST(HouseThreadTest, ItLooksOnceASecondWhenNothingHappens) {
  const Running running(2);
  ASSERT_TRUE(running->house().await_round(60'000 * kMs));
  ASSERT_TRUE(eventually([&] { return !running->anybody_awake(); }));
  const std::uint64_t before = running->house().wakes();
  const std::int64_t from = now_ns();
  ASSERT_TRUE(eventually([&] { return running->house().wakes() >= before + 3; }));
  // The first may have been due already, and the wait before it a short one.
  EXPECT_GE(now_ns() - from, 1'000 * kMs);
}

TEST(HouseThreadTest, AStuckReporterDoesNotHoldUpStop) {
  class Stuck final : public Reporter {
   public:
    void slow(const SlowTurn&) noexcept override {}
    void threw(const Thrown&) noexcept override {}
    bool lost(const ChannelCore&, const Losses&, std::int64_t, std::int64_t) noexcept override {
      return true;
    }
    bool round(std::uint32_t, std::int64_t) noexcept override { return door.pass(), true; }
    [[nodiscard]] bool is_calling() const noexcept override { return true; }
    [[nodiscard]] std::string calling() const override { return "the reporter"; }
    [[nodiscard]] std::int64_t due_ns() const noexcept override { return INT64_MAX; }
    Door door;
  };
  const Ref<Stuck> stuck(new Stuck);
  const Ref<Engine> workers(new Engine({}));
  workers->house().set_reporter(stuck.get());
  ASSERT_EQ(workers->start(), 1u);
  workers->inbox().event_count().notify(EventCount::kNews);
  ASSERT_TRUE(stuck->door.await_arrival());
  EXPECT_EQ(workers->stop(false, 5 * kMs).stuck, std::vector<std::string>{"the reporter"});
  EXPECT_TRUE(workers->house().running());
  stuck->door.open();
  EXPECT_TRUE(eventually([&] { return !workers->house().running(); }));
  (void)workers->stop(false, 60'000 * kMs);
}

TEST(HouseThreadTest, WhatNobodyReadsAnyMoreIsFreedWithoutFurtherChanges) {
  const Running running(1);
  const auto channel = running.channel();
  auto* leaver = make_test_subscriber([](const engine::Run&) {});
  leaver->holders.fetch_add(1);
  ASSERT_TRUE(channel->attach(leaver));
  leaver->gate.close();
  channel->unlist(leaver);
  destroy_captures(*leaver);
  EXPECT_TRUE(eventually([&] { return leaver->holders.load() == 1; }));
  drop_subscriber(leaver);
}

}  // namespace
}  // namespace ringmain::tests
