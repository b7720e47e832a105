// How far may a histogram's quantile be from the truth?
#include "engine/watch/histogram.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

TEST(HistogramTest, AnEmptyOneSaysNothing) {
  const Histogram h;
  EXPECT_EQ(h.count(), 0u);
  EXPECT_EQ(h.quantile(0.5), 0u);
  EXPECT_EQ(h.max(), 0u);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram h;
  for (int i = 0; i < 16; ++i) h.add(i);
  EXPECT_EQ(h.count(), 16u);
  EXPECT_EQ(h.quantile(0.0), 0u);
  EXPECT_EQ(h.quantile(1.0), 15u);
}

TEST(HistogramTest, ANegativeDurationCountsAsZero) {
  Histogram h;
  h.add(-5);
  EXPECT_EQ(h.count(), 1u);
  EXPECT_EQ(h.max(), 0u);
}

TEST(HistogramTest, TheLargestDurationHasABucket) {
  Histogram h;
  h.add(INT64_MAX);
  EXPECT_EQ(h.quantile(1.0), static_cast<std::uint64_t>(INT64_MAX));
}

TEST(HistogramTest, AQuantileIsAtMostASixteenthAboveTheTruth) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values;
  Histogram h;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t v = random() >> (random() % 60 + 2);
    values.push_back(v);
    h.add(static_cast<std::int64_t>(v));
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    const std::uint64_t truth = values[rank];
    EXPECT_GE(h.quantile(share), truth) << share;
    EXPECT_LE(h.quantile(share), truth + truth / 16 + 1) << share;
  }
}

}  // namespace
}  // namespace ringmain::engine
