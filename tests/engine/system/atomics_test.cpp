// Do futexes wake and time out, and does one of the barrier's two sides always see the other?
#include "engine/system/atomics.hpp"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <linux/membarrier.h>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(FutexTest, AWaitOnAnotherValueReturnsAtOnce) {
  Atomic<std::uint32_t> word{1};
  EXPECT_TRUE(futex_wait(word, 0));
}

TEST(FutexTest, AWaitRunsOutOfTime) {
  Atomic<std::uint32_t> word{1};
  EXPECT_FALSE(futex_wait(word, 1, 1'000'000));
}

TEST(FutexTest, AWakeUpEndsAWait) {
  Atomic<std::uint32_t> word{0};
  std::thread sleeper([&word] {
    while (word.load() == 0) futex_wait(word, 0);
  });
  word.store(1);
  futex_wake(word, 1);
  sleeper.join();
}

// Two threads store and then look at the other's word: both missing the other's store is what the
// barrier pair forbids, and what a machine with store buffers does without it.
TEST(BarrierTest, OfACheapAndADearSideOneSeesTheOther) {
  constexpr int kRounds = 20'000;
  std::vector<Atomic<int>> cheap(kRounds), dear(kRounds);
  std::vector<char> cheap_saw(kRounds), dear_saw(kRounds);
  std::atomic<int> started{0};
  const auto start = [&started] {
    ++started;
    while (started != 2) {
    }
  };
  std::thread other([&] {
    start();
    for (std::size_t i = 0; i < kRounds; ++i) {
      cheap[i].store(1, std::memory_order_relaxed);
      asymmetric_fence_light_or_full();
      cheap_saw[i] = static_cast<char>(dear[i].load(std::memory_order_relaxed));
    }
  });
  start();
  for (std::size_t i = 0; i < kRounds; ++i) {
    dear[i].store(1, std::memory_order_relaxed);
    asymmetric_fence_heavy();
    dear_saw[i] = static_cast<char>(cheap[i].load(std::memory_order_relaxed));
  }
  other.join();
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_TRUE(cheap_saw[i] || dear_saw[i]) << i;
}

TEST(BarrierTest, TheFenceFormIsTakenWhenAskedForOrWhereThereIsNoMembarrier) {
  const char* asked = std::getenv("RINGMAIN_BARRIER");
  const bool wanted = asked != nullptr && std::string_view(asked) == "fence";
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  const bool missing = known < 0 || (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  EXPECT_EQ(barrier_is_fence(), wanted || missing);
}

}  // namespace
}  // namespace ringmain::engine
