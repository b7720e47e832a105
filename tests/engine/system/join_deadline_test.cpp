// For how long is a thread waited for that was told to end?

#include "engine/system/join_deadline.hpp"

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(JoinDeadlineTest, AThreadInACallbackGetsTheRestOfTheTimeAndAMomentAtLeast) {
  EXPECT_EQ(JoinDeadline(-1).left_ns(true), -1);
  EXPECT_EQ(JoinDeadline(-1).left_ns(false), -1);
  EXPECT_EQ(JoinDeadline(0, 100).left_ns(true, 100), JoinDeadline::kMomentNs);
  EXPECT_EQ(JoinDeadline(0, 100).left_ns(true, 100 + JoinDeadline::kMomentNs), 0);
  EXPECT_EQ(JoinDeadline(3 * JoinDeadline::kPatienceNs, 0).left_ns(true, JoinDeadline::kPatienceNs),
            2 * JoinDeadline::kPatienceNs);
}

TEST(JoinDeadlineTest, AThreadInNoneIsLookedAtAgainUntilPatienceEnds) {
  const JoinDeadline join_deadline(0, 0);
  EXPECT_EQ(join_deadline.left_ns(false, 1), JoinDeadline::kMomentNs - 1);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kMomentNs), JoinDeadline::kMomentNs);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kPatienceNs - 1), 1);
  EXPECT_EQ(join_deadline.left_ns(false, JoinDeadline::kPatienceNs), 0);
  EXPECT_EQ(join_deadline.left_ns(false, 2 * JoinDeadline::kPatienceNs), 0);
}

}  // namespace
}  // namespace ringmain::engine
