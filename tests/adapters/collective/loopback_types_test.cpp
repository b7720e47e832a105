// Are all types reduced as their arithmetic says?
#include "adapters/sources/collective/loopback_types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::tests {
namespace {

using collective::ReduceOp;
using collective::loopback::detail::fault_of;
using collective::loopback::detail::find_type;
using collective::loopback::detail::narrowed;
using collective::loopback::detail::reduce;
using collective::loopback::detail::widened;

constexpr ReduceOp kAll[] = {
    ReduceOp::sum,     ReduceOp::avg,    ReduceOp::product, ReduceOp::min,        ReduceOp::max,
    ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor, ReduceOp::premul_sum, ReduceOp::other};
const std::set<std::string> kFloats{"float16", "bfloat16", "float32", "float64"};

template <class T>
T reduced(const char* type, ReduceOp by, const std::vector<T>& values) {
  std::vector<const std::byte*> at;
  for (const T& value : values) at.push_back(reinterpret_cast<const std::byte*>(&value));
  T all{};
  reduce(find_type(type)->kind, by, at, 1, reinterpret_cast<std::byte*>(&all));
  return all;
}

TEST(LoopbackTypesTest, WhatHasNoMeaningIsRefused) {
  for (const char* const name : {"float16", "bfloat16", "float32", "float64", "int8", "int16",
                                 "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"}) {
    const bool is_float = kFloats.contains(name), is_bool = std::string(name) == "bool";
    for (const ReduceOp by : kAll) {
      const bool bits =
          by == ReduceOp::bit_and || by == ReduceOp::bit_or || by == ReduceOp::bit_xor;
      const bool refused = by == ReduceOp::premul_sum || by == ReduceOp::other ||
                           (by == ReduceOp::avg && !is_float) || (bits && is_float) ||
                           (is_bool && (by == ReduceOp::sum || by == ReduceOp::product));
      EXPECT_EQ(!fault_of(find_type(name), name, by).empty(), refused) << name << to_string(by);
    }
  }
  EXPECT_EQ(find_type("complex64"), nullptr);
  EXPECT_FALSE(fault_of(nullptr, "complex64", ReduceOp::min).empty());
}

/// By 128 bits, and cut to the type at the end.
template <class T>
void check_integers(const char* type) {
  const std::vector<T> values{std::numeric_limits<T>::max(), static_cast<T>(77),
                              std::numeric_limits<T>::min(), static_cast<T>(-3)};
  __extension__ using Wide = __int128;
  __extension__ using Bits = unsigned __int128;  // of which a product may lose the upper ones
  Wide sum = 0, product = 1;
  T all_bits = static_cast<T>(-1), any_bits = 0, odd_bits = 0;
  for (const T value : values) {
    sum += value;
    all_bits = static_cast<T>(all_bits & value);
    any_bits = static_cast<T>(any_bits | value);
    odd_bits = static_cast<T>(odd_bits ^ value);
  }
  EXPECT_EQ(reduced(type, ReduceOp::sum, values), static_cast<T>(sum)) << type;
  const std::vector<T> factors{static_cast<T>(-3), static_cast<T>(101),
                               std::numeric_limits<T>::max()};
  // The two's complement of a product depends on that of its factors only: cut after each step.
  for (const T value : factors)
    product = static_cast<T>(static_cast<Bits>(product) * static_cast<Bits>(value));
  EXPECT_EQ(reduced(type, ReduceOp::product, factors), static_cast<T>(product)) << type;
  EXPECT_EQ(reduced(type, ReduceOp::min, values), *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(reduced(type, ReduceOp::max, values), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(reduced(type, ReduceOp::bit_and, values), all_bits);
  EXPECT_EQ(reduced(type, ReduceOp::bit_or, values), any_bits);
  EXPECT_EQ(reduced(type, ReduceOp::bit_xor, values), odd_bits);
}

TEST(LoopbackTypesTest, IntegersAreReducedModuloTheirRange) {
  check_integers<std::int8_t>("int8");
  check_integers<std::int16_t>("int16");
  check_integers<std::int32_t>("int32");
  check_integers<std::int64_t>("int64");
  check_integers<std::uint8_t>("uint8");
  check_integers<std::uint16_t>("uint16");
  check_integers<std::uint32_t>("uint32");
  check_integers<std::uint64_t>("uint64");
}

template <class T>
void check_floats(const char* type) {
  const std::vector<T> values{T(1.5), T(-4), T(0.25), T(8)};
  EXPECT_EQ(reduced(type, ReduceOp::sum, values), T(5.75));
  EXPECT_EQ(reduced(type, ReduceOp::avg, values), T(1.4375));
  EXPECT_EQ(reduced(type, ReduceOp::product, values), T(-12));
  EXPECT_EQ(reduced(type, ReduceOp::min, values), T(-4));
  EXPECT_EQ(reduced(type, ReduceOp::max, values), T(8));
  for (std::size_t at = 0; at < values.size(); ++at) {
    auto one = values;
    one[at] = std::numeric_limits<T>::quiet_NaN();
    for (const ReduceOp by : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max})
      EXPECT_TRUE(std::isnan(reduced(type, by, one))) << at;
  }
  // In the order of ranks: added the other way round, 1 would stay.
  const T huge = std::numeric_limits<T>::max() / 4;
  EXPECT_EQ(reduced(type, ReduceOp::sum, std::vector<T>{1, huge, -huge}), T(0));
  EXPECT_EQ(reduced(type, ReduceOp::sum, std::vector<T>{huge, -huge, 1}), T(1));
}

TEST(LoopbackTypesTest, FloatsAreReducedInTheOrderOfRanksAndANanStays) {
  check_floats<float>("float32");
  check_floats<double>("float64");
}

TEST(LoopbackTypesTest, OfBoolWhatIsNotZeroIsTrue) {
  const std::vector<std::uint8_t> values{0, 255, 2};
  EXPECT_EQ(reduced("bool", ReduceOp::max, values), 1);
  EXPECT_EQ(reduced("bool", ReduceOp::min, values), 0);
  EXPECT_EQ(reduced("bool", ReduceOp::bit_or, values), 1);
  EXPECT_EQ(reduced("bool", ReduceOp::bit_and, std::vector<std::uint8_t>{255, 2}), 1);
  EXPECT_EQ(reduced("bool", ReduceOp::bit_xor, std::vector<std::uint8_t>{255, 2}), 0);
}

double half(unsigned bits) {
  const double sign = bits >= 0x8000u ? -1 : 1;
  const unsigned exponent = bits / 1024 % 32, fraction = bits % 1024;
  if (exponent == 0) return sign * fraction * std::pow(2.0, -24);
  return sign * (1 + fraction / 1024.0) * std::pow(2.0, static_cast<int>(exponent) - 15);
}

TEST(LoopbackTypesTest, EachFloat16IsWhatItsBitsSayAndIsRoundedToNearestEven) {
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const auto stored = static_cast<std::uint16_t>(bits);
    const unsigned size = bits % 0x8000u;
    if (size > 0x7c00u) {
      ASSERT_TRUE(std::isnan(widened(stored)));
      ASSERT_GT(narrowed(widened(stored)) % 0x8000u, 0x7c00u);
      continue;
    }
    if (size == 0x7c00u) {
      ASSERT_TRUE(std::isinf(widened(stored)));
    } else {
      ASSERT_EQ(static_cast<double>(widened(stored)), half(bits));
    }
    ASSERT_EQ(narrowed(widened(stored)), stored);
    if (size >= 0x7c00u) continue;
    // Between it and the next, of which the even one gets the middle. Beyond the greatest lies
    // infinity, where one more would be.
    const auto middle = static_cast<float>(
        (half(bits) + (size == 0x7bffu ? half(bits) / 65504 * 65536 : half(bits + 1))) / 2);
    const float away = middle < 0 ? -INFINITY : INFINITY;
    ASSERT_EQ(narrowed(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(narrowed(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(narrowed(std::nextafter(middle, away)), bits + 1) << bits;
  }
}

TEST(LoopbackTypesTest, ShortFloatsAreReducedInFloat32AndRoundedOnce) {
  // 2048 + 1 is 2048 in float16: adding 1 twice by steps in it would be lost.
  const std::uint16_t one = 0x3c00, large = 0x6800;
  ASSERT_EQ(half(large), 2048);
  EXPECT_EQ(half(reduced("float16", ReduceOp::sum, std::vector{large, one, one})), 2050);
  // The same of bfloat16, the upper half of a float32: 256 + 1 is 256 there.
  const auto brain = [](float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) / 65536);
  };
  const auto as_float = [](std::uint16_t value) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value) * 65536);
  };
  const auto sum = [&](std::vector<float> values) {
    std::vector<std::uint16_t> stored;
    for (const float value : values) stored.push_back(brain(value));
    return as_float(reduced("bfloat16", ReduceOp::sum, stored));
  };
  EXPECT_EQ(sum({256, 1, 1}), 258);
  EXPECT_EQ(sum({256, 1}), 256);  // halfway: to even
  EXPECT_EQ(sum({258, 1}), 260);  // halfway: to even
  EXPECT_EQ(sum({256, 1, 0.5f}), 258);
  EXPECT_TRUE(std::isnan(sum({std::numeric_limits<float>::quiet_NaN(), 1})));
  EXPECT_TRUE(std::isinf(sum({3e38f, 3e38f})));
}

}  // namespace
}  // namespace ringmain::tests
