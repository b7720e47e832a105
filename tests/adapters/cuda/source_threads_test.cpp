// Is every call heard exactly once while the source is attached, and none when it is not, whoever
// comes and goes meanwhile? Counted call by call, in the thread that makes it.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/engine/eventually.hpp"

namespace ringmain::cuda {
namespace {

using tests::eventually;

/// What the main thread is doing. A call that begins and ends in one phase must be heard once in
/// `attached`, and must not be heard in `detached`.
enum Phases : unsigned { detached, attaching, attached, detaching, kPhases };

/// Threads that call CUDA until they are told to end, and check each call.
class Callers {
 public:
  static constexpr int kThreads = 8;

  explicit Callers(std::atomic<unsigned>& phase) : phase_(phase) {}
  void begin() {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~Callers() { end(); }
  void end() {
    ended_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  /// Until each thread has made a whole call from now on.
  [[nodiscard]] bool await_calls() const {
    std::uint64_t before[kThreads];
    for (int i = 0; i < kThreads; ++i) before[i] = calls_[i];
    for (int i = 0; i < kThreads; ++i) {
      if (!eventually([&] { return calls_[i] >= before[i] + 2; })) return false;
    }
    return true;
  }
  /// In the thread that calls, inside its call. Gives detach() time to return too early.
  void hear() {
    ++heard;
    std::this_thread::yield();
    if (phase_ % kPhases == detached) ++wrong;
  }

  std::atomic<std::uint64_t> must{0}, must_not{0}, wrong{0};

 private:
  void run() {
    const int me = started_++;
    cudaEvent_t event = nullptr;
    (void)cudaSetDevice(0);
    (void)cudaEventCreate(&event);
    while (!ended_) {
      const unsigned before = phase_;
      heard = 0;
      (void)cudaEventRecord(event, nullptr);
      const unsigned times = heard;
      const unsigned after = phase_;
      if (times > 1) ++wrong;
      if (before == after && before % kPhases == attached) {
        ++must;
        if (times != 1) ++wrong;
      }
      if (before == after && before % kPhases == detached) {
        ++must_not;
        if (times != 0) ++wrong;
      }
      ++calls_[me];
    }
    (void)cudaEventDestroy(event);
  }

  static thread_local unsigned heard;
  std::atomic<unsigned>& phase_;
  std::atomic<bool> ended_{false};
  std::atomic<int> started_{0};
  std::atomic<std::uint64_t> calls_[kThreads] = {};
  std::vector<std::thread> threads_;
};
thread_local unsigned Callers::heard = 0;

class SourceThreadsTest : public testing::Test {
 protected:
  SourceThreadsTest() {
    fake_cuda_reset();
    fake_cupti_reset();
  }
  ~SourceThreadsTest() override {
    EXPECT_EQ(fake_cuda_forbidden(), 0) << fake_cuda_forbidden_name();
    EXPECT_EQ(fake_cupti_overlaps(), 0);
  }
  Bus bus;
};

TEST_F(SourceThreadsTest, AThousandComingsAndGoingsMissNoCallAndHearNoneTooMany) {
  std::atomic<unsigned> phase{detached};
  Callers callers(phase);
  const auto inline_one =
      bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) { callers.hear(); });
  callers.begin();
  for (int i = 0; i < 1000; ++i) {
    ++phase;
    auto source = Source::attach(bus);
    ASSERT_TRUE(source) << source.error().message;
    ++phase;
    if (i % 50 == 0) {
      ASSERT_TRUE(callers.await_calls());
    }
    ++phase;
    ASSERT_EQ(source.value().detach(), Detached::done);
    ++phase;
    if (i % 50 == 0) {
      ASSERT_TRUE(callers.await_calls());
    }
  }
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.must, 20 * Callers::kThreads);
  EXPECT_GE(callers.must_not, 20 * Callers::kThreads);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceThreadsTest, WhoListensElsewhereComesAndGoesUnheard) {
  std::atomic<unsigned> phase{attached};
  Callers callers(phase);
  const auto inline_one =
      bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) { callers.hear(); });
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  callers.begin();
  for (int i = 0; i < 100; ++i) {
    auto other = bus.channel<EventWait>().subscribe([](const EventWait&) {});
    auto third = bus.channel<EventCreation>().subscribe([](const EventCreation&) {});
    ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10)));
    other.reset();
    third.reset();
    ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10)));
  }
  ASSERT_TRUE(callers.await_calls());
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.must, Callers::kThreads);
}

TEST_F(SourceThreadsTest, WhoListensComesAndGoesInMidCallAndMutesNoThread) {
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  std::atomic<unsigned> phase{detached};
  Callers callers(phase);
  callers.begin();
  for (int i = 0; i < 200; ++i) {
    ++phase;
    auto heard =
        bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) { callers.hear(); });
    ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10)));
    ++phase;
    if (i % 20 == 0) {
      ASSERT_TRUE(callers.await_calls());
    }
    ++phase;
    heard.reset();
    ++phase;
  }
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.must, 10 * Callers::kThreads);
}

TEST_F(SourceThreadsTest, WithoutLossEveryCallOfEightThreadsIsHeardOnAWorker) {
  std::uint64_t heard = 0;
  const auto subscription =
      bus.channel<EventRecord>().subscribe([&heard](const EventRecord&) { ++heard; });
  auto source = Source::attach(bus, {.lossless = true, .lane_events = 64});
  ASSERT_TRUE(source) << source.error().message;
  constexpr int kCalls = 2000;
  std::vector<std::thread> threads;
  for (int i = 0; i < Callers::kThreads; ++i) {
    threads.emplace_back([] {
      cudaEvent_t event = nullptr;
      (void)cudaSetDevice(0);
      (void)cudaEventCreate(&event);
      for (int n = 0; n < kCalls; ++n) (void)cudaEventRecord(event, nullptr);
      (void)cudaEventDestroy(event);
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(source.value().detach(), Detached::done);
  ASSERT_TRUE(bus.flush(std::chrono::minutes(10)));
  const Counts counts = source.value().counts();
  EXPECT_EQ(counts.published + counts.refused, Callers::kThreads * kCalls);
  EXPECT_EQ(heard, counts.published);
}

}  // namespace
}  // namespace ringmain::cuda
