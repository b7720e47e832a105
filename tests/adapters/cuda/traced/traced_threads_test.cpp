// Is every wrapped call told exactly once, and refused where it is to be, while the source and
// those who refuse come and go? Counted call by call, in the thread that makes it.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"
#include "adapters/sources/cuda/traced.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/engine/eventually.hpp"

namespace ringmain::cuda {
namespace {

using tests::eventually;

/// What the main thread is doing. A call that begins and ends in one phase must be told once in
/// `attached`, and must not be told in `detached`.
enum Phases : unsigned { detached, attaching, attached, detaching, kPhases };

/// Threads that call CUDA through the wrapper and straight in turn, and check each call.
class Callers {
 public:
  static constexpr int kThreads = 8;

  void begin() {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~Callers() { end(); }
  void end() {
    ended_ = true;
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  /// Until each thread has made two whole rounds from now on.
  [[nodiscard]] bool await_calls() const {
    std::uint64_t before[kThreads];
    for (int i = 0; i < kThreads; ++i) before[i] = rounds_[i];
    for (int i = 0; i < kThreads; ++i) {
      if (!eventually([&] { return rounds_[i] >= before[i] + 2; })) return false;
    }
    return true;
  }
  void hear(Layer layer) {
    ++heard[layer == Layer::wrapper ? 1 : 0];
    if (phase % kPhases == detached) ++wrong;
  }

  std::atomic<unsigned> phase{detached};
  std::atomic<bool> by_cupti{false};  // so that straight calls are told as well
  std::atomic<std::uint64_t> must{0}, must_not{0}, wrong{0}, refused{0};

 private:
  void run(int me) {
    cudaEvent_t event = nullptr;
    (void)cudaSetDevice(0);
    (void)cudaEventCreate(&event);
    while (!ended_) {
      for (const bool wrapped : {true, false}) {
        const unsigned before = phase;
        const bool told = wrapped || by_cupti;
        heard[0] = heard[1] = 0;
        const auto result = wrapped ? static_cast<int>(traced::cudaEventRecord(event, nullptr))
                                    : static_cast<int>(cudaEventRecord(event, nullptr));
        const unsigned mine = heard[wrapped ? 1 : 0], others = heard[wrapped ? 0 : 1];
        const unsigned after = phase;
        if (mine + others > 1) ++wrong;
        if (result != 0 && (!wrapped || result != 800)) ++wrong;
        refused += result != 0 ? 1 : 0;
        if (before != after) continue;
        if (before % kPhases == attached) {
          ++must;
          if (mine != (told ? 1 : 0) || others != 0) ++wrong;
        } else if (before % kPhases == detached) {
          ++must_not;
          if (mine + others != 0 || result != 0) ++wrong;
        }
      }
      ++rounds_[me];
    }
    (void)cudaEventDestroy(event);
  }

  static thread_local unsigned heard[2];
  std::atomic<bool> ended_{false};
  std::atomic<std::uint64_t> rounds_[kThreads] = {};
  std::vector<std::thread> threads_;
};
thread_local unsigned Callers::heard[2] = {};

class TracedThreadsTest : public testing::Test {
 protected:
  TracedThreadsTest() {
    fake_cuda_reset();
    fake_cupti_reset();
  }
  ~TracedThreadsTest() override {
    EXPECT_EQ(fake_cuda_forbidden(), 0) << fake_cuda_forbidden_name();
    EXPECT_EQ(fake_cupti_overlaps(), 0);
  }
  Bus bus;
};

TEST_F(TracedThreadsTest, SourcesComeAndGoAndEachCallIsToldOnce) {
  Callers callers;
  const auto hears = bus.channel<EventRecord>().subscribe_inline(
      [&](const EventRecord& event) { callers.hear(event.layer); });
  callers.begin();
  for (int i = 0; i < 400; ++i) {
    ++callers.phase;
    callers.by_cupti = i % 2 == 0;
    auto source = Source::attach(bus, {.wrapped_only = i % 2 != 0});
    ASSERT_TRUE(source) << source.error().message;
    ++callers.phase;
    if (i % 20 < 2) {
      ASSERT_TRUE(callers.await_calls());
    }
    ++callers.phase;
    ASSERT_EQ(source.value().detach(), Detached::done);
    ++callers.phase;
    if (i % 20 < 2) {
      ASSERT_TRUE(callers.await_calls());
    }
  }
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.must, 20 * Callers::kThreads);
  EXPECT_GE(callers.must_not, 20 * Callers::kThreads);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(TracedThreadsTest, ThoseWhoRefuseComeAndGoAndEachCallIsToldOnce) {
  Callers callers;
  const auto hears = bus.channel<EventRecord>().subscribe_inline(
      [&](const EventRecord& event) { callers.hear(event.layer); });
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  callers.by_cupti = true;
  callers.phase = attached;
  callers.begin();
  const Name why{"not now"};
  for (int i = 0; i < 100; ++i) {
    std::atomic<std::uint64_t> asked{0};
    auto veto = bus.channel<CallBegin>().subscribe_inline([&asked, why](const CallBegin&) {
      return ++asked % 2 == 0 ? Verdict::veto(why) : Verdict::allow();
    });
    ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10)));
    ASSERT_TRUE(eventually([&] { return asked >= 2 * Callers::kThreads; }));
    veto.reset();
  }
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.refused, 100);
  EXPECT_GE(callers.must, Callers::kThreads);
}

TEST_F(TracedThreadsTest, CuptiIsLentAndTakenBackAndEachWrappedCallIsToldOnce) {
  Callers callers;
  const auto hears = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord& event) {
    if (event.layer == Layer::wrapper) callers.hear(event.layer);
  });
  auto source = Source::attach(bus);
  ASSERT_TRUE(source) << source.error().message;
  callers.phase = attached;  // of straight calls nothing is asked here: they are not counted above
  callers.begin();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(source.value().lend("a profiler").value());
    if (i % 20 == 0) {
      ASSERT_TRUE(callers.await_calls());
    }
    ASSERT_TRUE(source.value().take_back().value());
  }
  callers.end();
  EXPECT_EQ(callers.wrong, 0);
  EXPECT_GE(callers.must, 10 * Callers::kThreads);
}

thread_local unsigned synchronized = 0;
traced::cudaError_t ready(traced::cudaEvent_t) {
  return traced::cudaSuccess;
}
TEST_F(TracedThreadsTest, EightThreadsMeetAFunctionThatWasNotLookedForYet) {
  // First calls of a row race with a source that comes: none is missed once attach() has returned.
  for (int i = 0; i < 50; ++i) {
    const auto hears = bus.channel<EventSynchronization>().subscribe_inline(
        [](const EventSynchronization&) { ++synchronized; });
    ASSERT_TRUE(traced::replace("cudaEventSynchronize", &ready));  // closes and opens the gate
    std::atomic<bool> is_attached{false};
    std::atomic<std::uint64_t> missed{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (bool last = false; !last;) {
          last = is_attached;
          synchronized = 0;
          (void)traced::cudaEventSynchronize(nullptr);
          if (last && synchronized != 2) ++missed;
        }
      });
    }
    ASSERT_TRUE(traced::restore("cudaEventSynchronize"));
    auto source = Source::attach(bus, {.wrapped_only = true});
    ASSERT_TRUE(source);
    is_attached = true;
    threads.clear();
    EXPECT_EQ(missed, 0);
  }
}

}  // namespace
}  // namespace ringmain::cuda
