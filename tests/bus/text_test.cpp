// Are equal strings one name, and is a text that is too long cut at a character, and counted?
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

namespace ringmain::tests {
namespace {

TEST(NameTest, EqualStringsAreEqualNames) {
  const Name a("alpha");
  EXPECT_EQ(a, Name(std::string("alp") + "ha"));
  EXPECT_NE(a, Name("beta"));
  EXPECT_EQ(a.view(), "alpha");
  EXPECT_EQ(Name(), Name(""));
  EXPECT_EQ(Name().view(), "");
  EXPECT_EQ(Name(std::string_view("a\0b", 3)).view(), std::string_view("a\0b", 3));
}

TEST(NameTest, AViewStaysWhereItIs) {
  const Name first("stays");
  const char* at = first.view().data();
  for (int i = 0; i < 20'000; ++i) (void)Name("name " + std::to_string(i));
  EXPECT_EQ(first.view().data(), at);
  EXPECT_EQ(Name("name 19999").view(), "name 19999");
}

TEST(NameTest, ALongStringIsCutAtACharacterAndCounted) {
  const std::uint64_t before = names_stats().truncated;
  std::string s(64 * 1024 - 1, 'x');
  s += "\xc3\xa9";  // two bytes, of which one would fit
  const Name n(s);
  EXPECT_EQ(n.view().size(), 64u * 1024 - 1);
  EXPECT_EQ(names_stats().truncated, before + 1);
}

TEST(NameTest, ThreadsThatInternTheSameStringsGetTheSameNames) {
  std::array<std::vector<Name>, 4> all;
  std::vector<std::thread> threads;
  for (auto& names : all) {
    threads.emplace_back([&names] {
      for (int i = 0; i < 2000; ++i) {
        names.emplace_back("shared " + std::to_string(i));
        EXPECT_EQ(names.back().view(), "shared " + std::to_string(i));
      }
    });
  }
  for (auto& t : threads) t.join();
  for (const auto& names : all) EXPECT_EQ(names, all[0]);
}

/// Fills the process's table and leaves with 0 where it says so.
[[noreturn]] void fill_the_table() {
  const Name old("known before");
  std::string s;
  for (std::uint64_t i = 0; names_stats().refused == 0 && i < 1u << 21; ++i) {
    s = "fill ";
    s += std::to_string(i);
    (void)Name(s);
  }
  EXPECT_EQ(names_stats().refused, 1u) << "the table has no bound";
  EXPECT_EQ(Name(s).view(), "(names full)");
  EXPECT_EQ(names_stats().refused, 2u);
  EXPECT_EQ(Name("known before"), old);
  EXPECT_EQ(Name("fill 0").view(), "fill 0");
  std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
}

// In a process of its own: the table is full for ever, for the tests that come later too.
TEST(NameTest, PastItsBoundTheTableSaysSoAndCounts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fill_the_table(), ::testing::ExitedWithCode(0), "");
}

TEST(TextTest, ItHoldsUpToItsBytesAndMarksTheCut) {
  const Text<16> fits("fourteen bytes");
  EXPECT_EQ(fits.view(), "fourteen bytes");
  EXPECT_FALSE(fits.cut());
  const Text<16> longer("fifteen bytes..");
  EXPECT_EQ(longer.view(), "fifteen bytes.");
  EXPECT_TRUE(longer.cut());
  EXPECT_EQ(Text<8>().view(), "");
}

TEST(TextTest, ItIsNeverCutWithinACharacter) {
  for (const std::string& character :
       {std::string("\xc3\xa9"), std::string("\xe2\x82\xac"), std::string("\xf0\x9f\x9a\x80")}) {
    for (std::size_t before = 0; before <= 14; ++before) {
      std::string s(before, 'x');
      while (s.size() < 30) s += character;
      const Text<16> t(s);
      EXPECT_TRUE(t.cut());
      EXPECT_LE(t.view().size(), 14u);
      EXPECT_GT(t.view().size() + character.size(), 14u);
      EXPECT_EQ((t.view().size() - before) % character.size(), 0u) << before;
    }
  }
}

TEST(TextTest, WhatIsNotUtf8IsCutWhereItMustBe) {
  const Text<16> t(std::string(30, '\x80'));
  EXPECT_EQ(t.view().size(), 14u);
  EXPECT_TRUE(t.cut());
}

}  // namespace
}  // namespace ringmain::tests
