// What if CUPTI has a lock of its own, or refuses at any moment? And what may subscribers do inside
// a call, and threads on their way out?
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);

class SourceAttackTest : public SourceFixture {};

/// Threads that make and delete events, record and allocate until this ends.
class Busy {
 public:
  explicit Busy(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Busy() {
    ended_ = true;
    for (auto& each : threads_) each.join();
  }

 private:
  void run() const {
    (void)cudaSetDevice(0);
    while (!ended_) {
      cudaEvent_t event = nullptr;
      void* memory = nullptr;
      (void)cudaEventCreate(&event);
      (void)cudaEventRecord(event, nullptr);
      (void)cudaMalloc(&memory, 64);
      (void)cudaFree(memory);
      (void)cudaEventDestroy(event);
    }
  }
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

TEST_F(SourceAttackTest, ComingAndGoingNeedsNoLockThatCuptiHoldsWhileItCallsBack) {
  fake_cupti_hold_own_lock(1);
  {
    Bus live;
    std::atomic<int> heard{0};
    const auto hear = [&](const auto&) {
      if (++heard % 64 == 0) (void)Source::state_in_process();
    };
    const auto records = live.channel<EventRecord>().subscribe_inline(hear);
    const auto notices = live.channel<SourceNotice>().subscribe_inline(hear);
    const Busy busy(8);
    for (int i = 0; i < 40; ++i) {
      Source source = attached(live);
      auto other = live.channel<MemoryAllocation>().subscribe_inline(hear);
      (void)source.state();
      if (i % 4 == 0) {
        ASSERT_TRUE(live.wait_told(kPatience));
      }
      ASSERT_TRUE(source.lend("nobody").value());
      ASSERT_TRUE(source.take_back().value());
      other.reset();
      ASSERT_EQ(source.detach(), Detached::done);
    }
  }
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

/// A life of a source, in which CUPTI's `function` answers `code` from the `from`-th moment on,
/// `times` times.
void live_with(const char* function, int code, unsigned times, int from, cudaEvent_t event) {
  Bus bus;
  int moment = 0;
  const auto next = [&] {
    if (moment++ == from) fake_cupti_answer(function, code, times, "Kineto");
  };
  const auto heard = bus.channel<EventRecord>().subscribe_inline([](const EventRecord&) {});
  next();
  auto made = Source::attach(bus);
  Source source = made ? std::move(made).value() : Source();
  next();
  auto more = bus.channel<StreamCreation>().subscribe([](const StreamCreation&) {});
  (void)bus.wait_told(kPatience);
  next();
  (void)cudaEventRecord(event, nullptr);
  (void)source.state();
  more.reset();
  (void)bus.wait_told(kPatience);
  next();
  (void)source.lend("nobody");
  next();
  (void)source.take_back();
  (void)cudaEventRecord(event, nullptr);
  next();
  (void)source.detach();
  fake_cupti_answer(function, 0, 0, nullptr);
}

TEST_F(SourceAttackTest, WhateverCuptiRefusesAndWhenTheNextSourceIsWhole) {
  for (const char* function :
       {"cuptiSubscribe", "cuptiSubscribe_v2", "cuptiEnableCallback", "cuptiGetDeviceId"}) {
    for (const int code : {1, 15, 35, 39, 999}) {
      for (const unsigned times : {1U, 3U, 1000U}) {
        for (int from = 0; from < 6; ++from) {
          live_with(function, code, times, from, event);
          EXPECT_EQ(fake_cupti_subscribers(), 0) << function << ' ' << code << ' ' << from;
          const auto heard = bus.heard<EventRecord>();
          Source whole = attached(bus);
          record();
          (void)whole.detach();
          bus.deliver();
          ASSERT_EQ(heard.size(), 1) << function << ' ' << code << ' ' << times << ' ' << from;
        }
      }
    }
  }
}

TEST_F(SourceAttackTest, AnInlineSubscriberMayThrowInsideACall) {
  int heard = 0;
  const auto thrower = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    ++heard;
    throw std::runtime_error("no");
  });
  Source source = attached(bus);
  record();
  record();
  EXPECT_GE(heard, 1);
}

TEST_F(SourceAttackTest, AnInlineSubscriberMayEndItselfInsideACall) {
  int heard = 0;
  Subscription itself;
  itself = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    ++heard;
    itself.reset();
  });
  Source source = attached(bus);
  record();
  record();
  EXPECT_EQ(heard, 1);
}

TEST_F(SourceAttackTest, AnInlineSubscriberMayPublishAndCallInsideACall) {
  const auto others = bus.heard<EventWait>();
  const auto twin = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    (void)bus.channel<EventWait>().publish({});
    (void)cudaEventRecord(event, nullptr);
  });
  Source source = attached(bus);
  record();
  bus.deliver();
  EXPECT_EQ(others.size(), 1);
  EXPECT_EQ(source.counts(), (Counts{.published = 1, .suppressed = 1}));
  fake_cuda_reset();
}

TEST_F(SourceAttackTest, AnInlineSubscriberThatHearsItselfEnds) {
  int heard = 0;
  const auto itself = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    ++heard;
    (void)cudaEventRecord(event, nullptr);
  });
  Source source = attached(bus, {.own = true});
  record();
  const int once = heard;
  EXPECT_GT(once, 1);
  record();
  EXPECT_EQ(heard, 2 * once) << "it is told of again";
  fake_cuda_reset();
}

TEST_F(SourceAttackTest, ASourceMayBeDestroyedInsideACallAndAnotherMade) {
  Bus live;
  auto source = std::make_unique<Source>();
  bool refused = false;
  const auto ender = live.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    source.reset();
    refused = !Source::attach(live);
  });
  *source = attached(live);
  record();
  EXPECT_TRUE(refused);
  Source next = attached(bus);
  EXPECT_EQ(fake_cupti_subscribers(), 1);
}

TEST_F(SourceAttackTest, CallsInTheDestructorsOfAThreadsOwnObjectsAreHeard) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  struct Last {
    cudaEvent_t event;
    pthread_key_t key;
    int left = 3;
  };
  static const auto kEnd = +[](void* given) {
    auto* last = static_cast<Last*>(given);
    (void)cudaEventRecord(last->event, nullptr);
    if (--last->left > 0) (void)pthread_setspecific(last->key, last);
  };
  Last last{event, {}};
  ASSERT_EQ(pthread_key_create(&last.key, kEnd), 0);
  std::thread([&] {
    (void)cudaSetDevice(0);
    (void)cudaEventRecord(event, nullptr);
    (void)pthread_setspecific(last.key, &last);
  }).join();
  (void)pthread_key_delete(last.key);
  EXPECT_EQ(last.left, 0);
  bus.deliver();
  const Counts counts = source.counts();
  EXPECT_EQ(counts.published + counts.refused, 4);
  EXPECT_EQ(heard.size(), counts.published);
}

TEST_F(SourceAttackTest, AThreadThatIsToBeCancelledIsNotCancelledInACall) {
  Bus live;
  const auto heard = live.channel<EventRecord>().subscribe([](const EventRecord&) {});
  for (const bool lossless : {false, true}) {  // which wakes a worker inside the call
    Source source = attached(live, {.lossless = lossless});
    bool came_out = false;
    std::thread([&] {
      int before = 0;
      (void)cudaSetDevice(0);
      (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
      (void)pthread_cancel(pthread_self());
      (void)cudaEventRecord(event, nullptr);
      (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
      came_out = true;
    }).join();
    EXPECT_TRUE(came_out);
    EXPECT_EQ(source.counts().published, 1);
  }
}

TEST_F(SourceAttackTest, ThousandsOfThreadsCallAtOnceAndEnd) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus, {.lane_events = 64});
  constexpr int kThreads = 2000;
  std::atomic<int> there{0}, failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      (void)cudaSetDevice(0);
      ++there;
      while (there < kThreads) std::this_thread::yield();
      if (cudaEventRecord(event, nullptr) != cudaSuccess) ++failed;
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(failed, 0);
  bus.deliver();
  const Counts counts = source.counts();
  EXPECT_EQ(counts.published + counts.refused, kThreads);
  EXPECT_GE(counts.published, 1000) << "a lane each, as far as BusLimits::lanes_max goes";
  EXPECT_EQ(heard.size(), counts.published);
  bus.deliver();
  std::thread([&] { record(); }).join();
  EXPECT_EQ(source.counts().published, counts.published + 1) << "those lanes are free again";
}

}  // namespace
}  // namespace ringmain::cuda
