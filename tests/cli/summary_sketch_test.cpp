// Are quantiles as near as is said, also after sketches were added up and made coarser?
#include "cli/summary_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::cli {
namespace {

/// Of every size, and many alike.
std::vector<std::uint64_t> some_values(unsigned seed, std::size_t count) {
  std::mt19937_64 chance(seed);
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(std::max<std::uint64_t>(chance() >> (chance() % 64), 1));
  }
  return values;
}

std::uint64_t exactly(std::vector<std::uint64_t> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

void expect_near(const Sketch& sketch, const std::vector<std::uint64_t>& values, unsigned coarser) {
  for (const double q : {0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto want = static_cast<double>(exactly(values, q));
    const auto have = static_cast<double>(sketch.quantile(q, coarser));
    const double few = static_cast<double>((1u << coarser) - 1);  // of small values
    EXPECT_LE(std::abs(have - want), std::max(want * Sketch::error(coarser), few) + 0.5)
        << "at " << q << ", coarser by " << coarser;
  }
}

TEST(SummarySketchTest, QuantilesAreWithinTheirErrorAndTheRestIsExact) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto values = some_values(seed, 1 + 400 * seed);
    Sketch sketch;
    std::uint64_t sum = 0;
    for (const std::uint64_t value : values) {
      sketch.add(value, 0);
      sum = sum + value < sum ? ~std::uint64_t{0} : sum + value;
    }
    expect_near(sketch, values, 0);
    EXPECT_EQ(sketch.count(), values.size());
    EXPECT_EQ(sketch.min(), *std::min_element(values.begin(), values.end()));
    EXPECT_EQ(sketch.max(), *std::max_element(values.begin(), values.end()));
  }
}

TEST(SummarySketchTest, SmallValuesAreExact) {
  for (std::uint64_t value = 1; value < 128; ++value) {
    Sketch sketch;
    sketch.add(1, 0);
    sketch.add(value, 0);
    sketch.add(127, 0);
    EXPECT_EQ(sketch.quantile(0.5, 0), value);
  }
}

TEST(SummarySketchTest, TwoAddedAreAsOneThatHeardAll) {
  const auto some = some_values(1, 3000), more = some_values(2, 500);
  Sketch a, b, both;
  for (const std::uint64_t value : some) a.add(value, 0), both.add(value, 0);
  for (const std::uint64_t value : more) b.add(value, 0), both.add(value, 0);
  Sketch sum = b;
  sum.add(a);
  EXPECT_EQ(sum.count(), both.count());
  EXPECT_EQ(sum.sum(), both.sum());
  EXPECT_EQ(sum.min(), both.min());
  EXPECT_EQ(sum.max(), both.max());
  for (const double q : {0.01, 0.5, 0.9, 0.99}) EXPECT_EQ(sum.quantile(q, 0), both.quantile(q, 0));
}

TEST(SummarySketchTest, ACoarserOneNeedsLessAndErrsByAsMuchAsItSays) {
  const auto values = some_values(5, 20'000);
  Sketch sketch;
  for (const std::uint64_t value : values) sketch.add(value, 0);
  for (unsigned coarser = 1; coarser <= Sketch::kBits; ++coarser) {
    const std::size_t before = sketch.bytes();
    sketch.coarsen();
    EXPECT_LT(sketch.bytes(), before);
    expect_near(sketch, values, coarser);
    Sketch from_the_start;
    for (const std::uint64_t value : values) from_the_start.add(value, coarser);
    EXPECT_EQ(from_the_start.quantile(0.9, coarser), sketch.quantile(0.9, coarser));
  }
}

TEST(SummarySketchTest, ASumBeyondSixtyFourBitsStaysAtTheirMost) {
  Sketch sketch;
  sketch.add(~std::uint64_t{0}, 0);
  sketch.add(5, 0);
  EXPECT_EQ(sketch.sum(), ~std::uint64_t{0});
  EXPECT_EQ(sketch.max(), ~std::uint64_t{0});
}

TEST(SummarySketchTest, AnEmptyOneSaysNought) {
  EXPECT_EQ(Sketch().quantile(0.5, 0), 0u);
  EXPECT_EQ(Sketch().min(), 0u);
}

}  // namespace
}  // namespace ringmain::cli
