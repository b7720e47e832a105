// Does a broken promise end the process with a sentence, and a kept one cost nothing but a look?
#include "engine/system/assert.hpp"

#include <gtest/gtest.h>

namespace {

TEST(AssertDeathTest, ABrokenPromiseIsNamedWithItsPlace) {
  const int held = 1;
  EXPECT_DEATH(
      RINGMAIN_ASSERT(held == 2),
      "ringmain: broken inside: held == 2 \\(.*assert_test.cpp:[0-9]+\\); this is a fault of");
}

TEST(AssertTest, AKeptOneGoesOnAndIsLookedAtOnce) {
  int looks = 0;
  RINGMAIN_ASSERT(++looks == 1);
  EXPECT_EQ(looks, 1);
}

}  // namespace
