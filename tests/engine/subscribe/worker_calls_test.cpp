// Does a subscriber that a worker calls often cost its call no count, and its end no call too many?
#include "engine/subscribe/worker_calls.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"
#include "tests/engine/subscribe/shown_words.hpp"

namespace ringmain::engine {
namespace {

using tests::eventually;

enum : int { kOften = 1024, kWorkers = 2 };

class WorkerCallsTest : public testing::Test {
 protected:
  WorkerCallsTest() : one_(make_subscriber(0)) {
    one_->shown_by = &words_;
    one_->destroy = [](Subscriber&) noexcept {};
  }
  ~WorkerCallsTest() override { drop_subscriber(one_); }

  Entered enter(std::size_t worker = 0) { return enter_call(*one_, words_.at(worker)); }
  bool leave(Entered entered, std::size_t worker = 0) {
    return leave_call(*one_, words_.at(worker), entered);
  }
  void call_often() {
    for (int i = 0; i < kOften; ++i) ASSERT_FALSE(leave(enter()));
  }

  tests::ShownWords<kWorkers> words_;
  Subscriber* const one_;
};

TEST_F(WorkerCallsTest, OneThatIsCalledOftenIsCountedNoMore) {
  for (int i = 0; i < kOften; ++i) {  // so one that comes and goes costs its end no barrier
    ASSERT_EQ(enter(), Entered::counted);
    ASSERT_FALSE(leave(Entered::counted));
  }
  const Entered entered = enter();
  // Without membarrier the cheap side would need a fence, which costs what a count does.
  EXPECT_EQ(entered, barrier_is_fence() ? Entered::counted : Entered::shown);
  EXPECT_TRUE(words_.calling(*one_));
  EXPECT_FALSE(leave(entered));
  EXPECT_FALSE(words_.calling(*one_));
}

TEST_F(WorkerCallsTest, OneWhoseCallsOverlapIsCountedForGood) {
  one_->writers = Writers::many;
  call_often();
  const Entered entered = enter();
  EXPECT_EQ(entered, Entered::counted);
  EXPECT_FALSE(leave(entered));
}

TEST_F(WorkerCallsTest, NoCallStartsOnceItIsClosedOrBarred) {
  call_often();
  one_->gate.bar();
  EXPECT_EQ(enter(), Entered::refused);
  EXPECT_FALSE(leave(Entered::refused));
  one_->gate.readmit();
  const Entered again = enter();
  EXPECT_NE(again, Entered::refused);
  EXPECT_FALSE(leave(again));
  one_->gate.close();
  EXPECT_EQ(enter(), Entered::refused);
  EXPECT_FALSE(leave(Entered::refused));
  EXPECT_EQ(wait_uncalled(*one_, -1), Gate::Waited::claimed);
}

TEST_F(WorkerCallsTest, AWaitGivesUpWhileACallIsShownAndSucceedsAfterwards) {
  call_often();
  const Entered entered = enter();
  one_->gate.close();
  EXPECT_EQ(wait_uncalled(*one_, 0), Gate::Waited::timeout);
  EXPECT_EQ(wait_uncalled(*one_, 1'000'000), Gate::Waited::timeout);
  EXPECT_FALSE(leave(entered));
  EXPECT_EQ(wait_uncalled(*one_, -1), Gate::Waited::claimed);
}

TEST_F(WorkerCallsTest, AWaitIsWokenByTheEndOfAShownCall) {
  call_often();
  const Entered entered = enter();
  one_->gate.close();
  std::atomic<int> waited{-1};
  std::thread waiter([&] { waited = static_cast<int>(wait_uncalled(*one_, -1)); });
  EXPECT_EQ(waited, -1);
  EXPECT_FALSE(leave(entered));
  waiter.join();
  EXPECT_EQ(waited, static_cast<int>(Gate::Waited::claimed));
}

TEST_F(WorkerCallsTest, TheLastShownCallDestroysAfterADeferredClose) {
  call_often();
  const Entered first = enter(0);
  const Entered second = enter(1);
  EXPECT_FALSE(close_deferred(*one_));
  EXPECT_FALSE(leave(first, 0));
  EXPECT_TRUE(leave(second, 1));
  one_->gate.gone();
  EXPECT_EQ(enter(), Entered::refused);
  EXPECT_FALSE(leave(Entered::refused));
}

TEST_F(WorkerCallsTest, TheCallFromWhichItIsCountedNoMoreDestroysAfterADeferredClose) {
  for (int i = 1; i < kOften; ++i) {
    ASSERT_EQ(enter(), Entered::counted);
    ASSERT_FALSE(leave(Entered::counted));
  }
  EXPECT_EQ(enter(), Entered::counted);
  EXPECT_FALSE(close_deferred(*one_));
  EXPECT_TRUE(leave(Entered::counted));
}

TEST_F(WorkerCallsTest, ADeferredCloseOfOneThatIsNotCalledDestroysAtOnce) {
  call_often();
  EXPECT_TRUE(close_deferred(*one_));
  EXPECT_FALSE(close_deferred(*one_));
}

/// On a worker, and on a thread of its own.
class WorkerCallsOnABusTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(OfEach, WorkerCallsOnABusTest, testing::Bool(), [](const auto& own) {
  return std::string(own.param ? "OnItsOwnThread" : "OnAWorker");
});

TEST_P(WorkerCallsOnABusTest, TheEndOfOneThatIsCalledOftenWaitsForItsCall) {
  const tests::Running running(1);
  ChannelCoreOptions options;
  options.pulled = options.own_thread = GetParam();
  const auto channel = running.channel(options);
  std::atomic<bool> hold{false}, inside{false};
  Subscriber* const one = tests::make_test_subscriber([&](const auto&) {
    if (!hold) return;
    inside = true;
    hold.wait(true);
    inside = false;
  });
  one->holders.fetch_add(1);
  ASSERT_TRUE(channel->attach(one));
  Lane* const lane = channel->take_lane({}, *channel);
  ASSERT_NE(lane, nullptr);
  if (GetParam()) channel->begin_listening();
  const Ref<OwnThread> own = GetParam() ? new OwnThread(channel, "own") : nullptr;
  if (own) own->start();
  for (int i = 0; i <= kOften; ++i) {
    ASSERT_EQ(tests::push_number(*lane, 1), Pushed::accepted);
    ASSERT_TRUE(running->flush(-1));
  }
  EXPECT_NE(one->gate.open_to_shown(), barrier_is_fence());
  hold = true;
  ASSERT_EQ(tests::push_number(*lane, 1), Pushed::accepted);
  EXPECT_TRUE(eventually([&] { return inside.load(); }));
  one->gate.close();
  channel->unlist(one);
  EXPECT_EQ(wait_uncalled(*one, 1'000'000), Gate::Waited::timeout);
  EXPECT_TRUE(inside);
  hold = false;
  hold.notify_all();
  EXPECT_EQ(wait_uncalled(*one, -1), Gate::Waited::claimed);
  EXPECT_FALSE(inside);
  destroy_captures(*one);
  drop_subscriber(one);
  ChannelCore::give_lane(*lane);
  if (own) {
    own->end();
    EXPECT_TRUE(own->join(-1));
  }
}

TEST(WorkerCallsStressTest, ExactlyOneOfManyDestroysAndNoCallOutlivesTheWait) {
  enum : int { kCalls = 50 };
  for (int round = 0; round < 300; ++round) {
    tests::ShownWords<kWorkers> words;
    Subscriber* const one = make_subscriber(0);
    one->shown_by = &words;
    if (!barrier_is_fence()) one->gate.bias();
    int captures = 1;  // not atomic: a call beside its destruction is a race
    std::atomic<int> destroyed{0}, calls{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kWorkers; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kCalls; ++i) {
          const Entered entered = enter_call(*one, words.at(t));
          if (entered != Entered::refused) {
            ++calls;
            EXPECT_EQ(captures, 1);
            if (t == 0 && i == kCalls / 2 && round % 2 == 0 && close_deferred(*one)) ADD_FAILURE();
          }
          if (leave_call(*one, words.at(t), entered)) {
            captures = 0;
            ++destroyed;
            one->gate.gone();
          }
        }
      });
    }
    if (round % 3 == 0) {
      EXPECT_TRUE(eventually([&] { return calls > kCalls / 4; }));
    }
    one->gate.close();
    if (wait_uncalled(*one, -1) == Gate::Waited::claimed) {
      captures = 0;
      ++destroyed;
      one->gate.gone();
    }
    EXPECT_EQ(captures, 0);
    EXPECT_EQ(destroyed, 1);
    for (auto& t : threads) t.join();
    EXPECT_EQ(destroyed, 1);
    drop_subscriber(one);
  }
}

}  // namespace
}  // namespace ringmain::engine
