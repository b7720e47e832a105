// What must hold where a subscriber is taken away in the middle of its call?
#pragma once
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/engine/eventually.hpp"

namespace ringmain::tests {

/// Takes `sub` away while a call of it, in another thread, stands at `door`: reset() must wait for
/// that call, and must have destroyed the captures, which `living` counts, when it returns.
inline void expect_reset_waits(Subscription& sub, Door& door, const std::atomic<int>& living) {
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(sub.reset_for(std::chrono::milliseconds(1)), Detached::timeout);
  EXPECT_EQ(living, 1);
  std::thread opens([&] { door.open(); });
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
  opens.join();
}

}  // namespace ringmain::tests
