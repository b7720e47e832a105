// Can the members of a group be read off its text again?
#include "events/terms/collective_ranks.hpp"

#include <climits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::collective {
namespace {

std::string written(const std::vector<int>& ranks) {
  Text<256> text;
  write_ranks(text, ranks);
  EXPECT_FALSE(text.cut());
  return std::string(text.view());
}

TEST(CollectiveRanksTest, RunsAreShort) {
  EXPECT_EQ(written({}), "");
  EXPECT_EQ(written({7}), "7");
  EXPECT_EQ(written({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(written({0, 1}), "0-1");
  EXPECT_EQ(written({0, 4}), "0,4");
  EXPECT_EQ(written({0, 4, 8, 12}), "0-12/4");
  EXPECT_EQ(written({0, 1, 2, 3, 8, 16, 20, 24, 28}), "0-3,8,16-28/4");
}

TEST(CollectiveRanksTest, TheirOrderIsTheGroups) {
  EXPECT_EQ(written({3, 2, 1, 0}), "3,2,1,0");
  EXPECT_EQ(written({5, 5, 6}), "5,5-6");
  EXPECT_EQ(written({1, 0, 1, 2}), "1,0-2");
}

TEST(CollectiveRanksTest, NumbersAtTheirLimits) {
  EXPECT_EQ(written({INT_MIN, INT_MAX}), "-2147483648,2147483647");
  EXPECT_EQ(written({-1}), "-1");
}

TEST(CollectiveRanksTest, WhatDoesNotFitIsLeftOutWhole) {
  std::vector<int> ranks;
  for (int i = 0; i < 1000; ++i) ranks.push_back(i * i);
  const std::string text = written(ranks);
  ASSERT_TRUE(text.ends_with(",..."));
  ASSERT_LE(text.size(), Text<256>::kBytesMax);
  const std::string whole = text.substr(0, text.size() - 4);
  std::string expected;
  for (std::size_t i = 0; expected.size() < whole.size(); ++i)
    expected += (i == 0 ? "" : ",") + std::to_string(ranks[i]);
  // 0,1 is the one run of squares.
  EXPECT_EQ("0-1" + expected.substr(3), whole);
}

TEST(CollectiveRanksTest, WhatJustFitsIsWhole) {
  // 254 bytes: 0,2,5 … are no runs, as their steps differ.
  for (int digits = 60; digits < 140; ++digits) {
    std::vector<int> ranks;
    std::string expected;
    for (int i = 0; i < digits; ++i) {
      ranks.push_back(i % 2 == 0 ? 9 : 3);
      expected += (i == 0 ? "" : ",") + std::to_string(ranks.back());
    }
    const std::string text = written(ranks);
    if (expected.size() <= Text<256>::kBytesMax) {
      EXPECT_EQ(text, expected);
    } else {
      EXPECT_TRUE(text.ends_with(",..."));
    }
  }
}

}  // namespace
}  // namespace ringmain::collective
