// Is a thread's outermost call found, whatever is not heard of its entries and exits?
#include <memory>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cuda_guard.hpp"

namespace ringmain::cuda {
namespace {

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    for (Switch& each : switches) each.turn();
  }
  std::uint64_t enter(std::size_t row, std::uint32_t epoch = 1) {
    return guard.enter(call_rows()[row], switches[row].look(), switches, epoch);
  }
  Guard guard;
  Switches switches;
};

TEST_F(GuardTest, ACallWithinACallIsNotTheOutermost) {
  const auto outer = enter(0);
  EXPECT_TRUE(guard.outermost());
  const auto inner = enter(1);
  EXPECT_FALSE(guard.outermost());
  EXPECT_EQ(guard.call().row, &call_rows()[0]);
  EXPECT_FALSE(guard.leave(inner));
  EXPECT_TRUE(guard.leave(outer));
  EXPECT_FALSE(guard.leave(outer)) << "once";
}

TEST_F(GuardTest, AnExitWithoutItsEntryDoesNothing) {
  EXPECT_FALSE(guard.leave(0));
  EXPECT_FALSE(guard.leave(~std::uint64_t{0}));
  const auto outer = enter(0);
  EXPECT_FALSE(guard.leave(0));
  EXPECT_FALSE(guard.leave(outer + 1)) << "of a call that is deeper than the thread is";
  EXPECT_TRUE(guard.leave(outer));
}

TEST_F(GuardTest, AnInnerExitThatNeverComesIsMadeUpForByTheOuterOne) {
  const auto outer = enter(0);
  (void)enter(1);
  EXPECT_TRUE(guard.leave(outer));
  (void)enter(2);
  EXPECT_TRUE(guard.outermost());
}

TEST_F(GuardTest, AnOuterExitThatNeverComesMutesUntilItsSwitchTurned) {
  const auto lost = enter(0);
  switches[0].turn();
  const auto next = enter(1);
  EXPECT_TRUE(guard.outermost());
  EXPECT_FALSE(guard.leave(lost)) << "too late";
  EXPECT_TRUE(guard.leave(next));
}

TEST_F(GuardTest, AnotherEpochBeginsAnew) {
  const auto before = enter(0, 1);
  const auto after = enter(1, 2);
  EXPECT_TRUE(guard.outermost());
  EXPECT_FALSE(guard.leave(before));
  EXPECT_TRUE(guard.leave(after));
  EXPECT_FALSE(guard.under_way(2, switches));
}

TEST_F(GuardTest, CallsOfAnInlineSubscriberStandAlone) {
  const auto outer = enter(0);
  std::uint64_t own = 0;
  {
    const Aside aside(guard);
    EXPECT_FALSE(guard.under_way(1, switches));
    own = enter(1);
    EXPECT_TRUE(guard.outermost());
    EXPECT_TRUE(guard.leave(own));
  }
  EXPECT_TRUE(guard.under_way(1, switches));
  EXPECT_FALSE(guard.leave(own));
  EXPECT_TRUE(guard.leave(outer));
}

TEST_F(GuardTest, DeepestCallsKeepTheirOuterOne) {
  const auto outer = enter(0);
  for (int i = 0; i < 1000; ++i) (void)enter(1);
  EXPECT_TRUE(guard.leave(outer));
}

}  // namespace
}  // namespace ringmain::cuda
