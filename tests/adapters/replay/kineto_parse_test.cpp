// Are times and numbers read to the last digit, and is everything else refused?
#include "adapters/sources/replay/kineto_parse.hpp"

#include <gtest/gtest.h>

namespace ringmain::replay {
namespace {

std::int64_t ns_of(std::string_view text) {
  std::int64_t ns = 0;
  EXPECT_TRUE(parse_time_ns(text, ns)) << text;
  return ns;
}

bool is_time(std::string_view text) {
  std::int64_t ns = 0;
  return parse_time_ns(text, ns);
}

std::int64_t integer_of(std::string_view text) {
  std::int64_t value = 0;
  EXPECT_TRUE(parse_integer(text, value)) << text;
  return value;
}

bool is_integer(std::string_view text) {
  std::int64_t value = 0;
  return parse_integer(text, value);
}

TEST(KinetoTimeTest, MicrosecondsBecomeExactNanoseconds) {
  EXPECT_EQ(ns_of("0"), 0);
  EXPECT_EQ(ns_of("1669783687464181"), 1669783687464181000);  // a double is 250 ns wide here
  EXPECT_EQ(ns_of("1669783687464181.123"), 1669783687464181123);
  EXPECT_EQ(ns_of("4458676522690.655"), 4458676522690655);
  EXPECT_EQ(ns_of("68.0"), 68000);
  EXPECT_EQ(ns_of("0.1"), 100);
  EXPECT_EQ(ns_of("0.01"), 10);
  EXPECT_EQ(ns_of("-12.5"), -12500);
}

TEST(KinetoTimeTest, MoreThanThreeDecimalsAreRounded) {
  EXPECT_EQ(ns_of("1.2344"), 1234);
  EXPECT_EQ(ns_of("1.2345"), 1235);
  EXPECT_EQ(ns_of("1.9996"), 2000);
  EXPECT_EQ(ns_of("1.23449999999999"), 1234);
}

TEST(KinetoTimeTest, ExponentsAreRead) {
  EXPECT_EQ(ns_of("1e3"), 1000000);
  EXPECT_EQ(ns_of("1.5E2"), 150000);
  EXPECT_EQ(ns_of("25e-1"), 2500);
}

TEST(KinetoTimeTest, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"",     "-",    ".",    "abc", "NaN", "nan", "inf", "-inf", "Infinity", "1x",
        "0x10", "true", "null", "{}",  "[]",  "1 2", "+1",  "1e",   "1e999",    "--1"}) {
    EXPECT_FALSE(is_time(text)) << text;
  }
}

TEST(KinetoTimeTest, TimesBeyond146YearsAreRefused) {
  EXPECT_TRUE(is_time("4611686018427386"));
  for (const char* text : {"4611686018427388", "99999999999999999999999999999", "-1e300", "9e18",
                           "-99999999999999999"}) {
    EXPECT_FALSE(is_time(text)) << text;
  }
}

TEST(KinetoIntegerTest, NumbersAreReadInEveryForm) {
  EXPECT_EQ(integer_of("42"), 42);
  EXPECT_EQ(integer_of("-1"), -1);
  EXPECT_EQ(integer_of("42.0"), 42);
  EXPECT_EQ(integer_of("\"42\""), 42);
  EXPECT_EQ(integer_of("0x7f00"), 0x7f00);
  EXPECT_EQ(static_cast<std::uint64_t>(integer_of("18446744073709551615")), ~std::uint64_t{0});
}

TEST(KinetoIntegerTest, WhatIsNoIntegerIsRefused) {
  for (const char* text : {"", "\"\"", "4.5", "abc", "1e30", "NaN", "true", "null", "[1]", "0x",
                           "0xg", "99999999999999999999"}) {
    EXPECT_FALSE(is_integer(text)) << text;
  }
}

TEST(KinetoRanksTest, DistributedInfoIsRead) {
  const KinetoRanks ranks =
      parse_distributed_info(R"({"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1})");
  EXPECT_EQ(ranks.rank, 3);
  EXPECT_EQ(ranks.world_size, 8);
  EXPECT_EQ(ranks.groups, 1);
}

TEST(KinetoRanksTest, OddDistributedInfoIsUnknown) {
  for (const char* text : {"", "null", "[]", "{", R"({"rank": "3"})", R"({"rank": -3})",
                           R"({"rank": 1e99})", R"({"rank": null})"}) {
    EXPECT_EQ(parse_distributed_info(text).rank, -1) << text;
  }
}

}  // namespace
}  // namespace ringmain::replay
