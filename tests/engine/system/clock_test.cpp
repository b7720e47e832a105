// Has a deadline passed that is at this moment, or that never comes?

#include "engine/system/clock.hpp"

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(DeadlineTest, ANegativeLimitNeverPasses) {
  const Deadline never(-1);
  EXPECT_EQ(never.left_ns(), -1);
  EXPECT_FALSE(never.passed());
}

TEST(DeadlineTest, AZeroLimitHasPassed) {
  const Deadline now(0);
  EXPECT_EQ(now.left_ns(), 0);
  EXPECT_TRUE(now.passed());
}

}  // namespace
}  // namespace ringmain::engine
