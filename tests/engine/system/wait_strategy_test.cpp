// Does a worker look again for a while before it parks, and anew after work?

#include "engine/system/wait_strategy.hpp"

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(WaitStrategyTest, ItLooksAgainAndThenParks) {
  WaitOptions options;
  options.spin_ns = 0;
  WaitStrategy wait(options);
  for (int again = 0; again < 3; ++again) {
    int looks = 0;
    while (wait.look_again()) ASSERT_LT(++looks, 10'000);
    EXPECT_GE(looks, 63);  // it never parks without having looked for a while
  }
}

TEST(WaitStrategyTest, WorkStartsTheLookingAnew) {
  WaitOptions options;
  options.spin_ns = 0;
  options.linger_ns = 0;
  WaitStrategy wait(options);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(wait.look_again());
    wait.worked(1);
  }
}

}  // namespace
}  // namespace ringmain::engine
