// Is a function that asked for it called before the process's bus is used, while other threads
// wait?
#include "bus/core/first_use.hpp"

#include <atomic>
#include <barrier>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::tests {
namespace {

std::atomic<int> told{0};
std::atomic<std::uint64_t> heard{0};
Subscription* hears = nullptr;
thread_local bool opens = false;

/// As a run does it: one opens, and the others wait for it.
void open() noexcept {
  static std::once_flag once;
  if (opens) return;
  std::call_once(once, [] {
    opens = true;
    hears =
        new Subscription(Bus::process().channel<Tick>().subscribe([](const Tick&) { ++heard; }));
    ++told;
    opens = false;
  });
  (void)detail::before_first_use(nullptr);
}

TEST(FirstUseTest, NobodyPublishesBeforeWhoWasToldHasOpened) {
  ASSERT_TRUE(detail::before_first_use(open));
  EXPECT_EQ(told, 0);
  constexpr int kThreads = 8;
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&together] {
      together.arrive_and_wait();
      for (std::uint64_t n = 1; n <= 100; ++n) (void)Bus::process().channel<Tick>().publish({n});
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(told, 1);
  ASSERT_TRUE(Bus::process().flush(kLong));
  EXPECT_EQ(heard, 100u * kThreads);
  EXPECT_FALSE(detail::before_first_use(open)) << "it is there already";
  (void)detail::before_first_use(nullptr);
  delete hears;
}

}  // namespace
}  // namespace ringmain::tests
