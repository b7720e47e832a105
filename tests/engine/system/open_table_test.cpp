// Does each thing that was opened begin at most once and end once, also while places change hands?
#include "engine/system/open_table.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::engine {
namespace {

struct Facts {
  std::array<std::uint64_t, 5> words{};
  static Facts of(std::uint64_t id) { return {{id, id * 3, ~id, id << 8, 7}}; }
  friend bool operator==(const Facts&, const Facts&) = default;
};
using Table = OpenTable<Facts>;

TEST(OpenTableTest, WhatIsOpenIsFoundAndEndsOnce) {
  Table table(16);
  EXPECT_FALSE(table.find(5));
  EXPECT_FALSE(table.end(5));
  ASSERT_TRUE(table.open(5, Facts::of(5)));
  ASSERT_TRUE(table.find(5));
  EXPECT_EQ(*table.find(5), Facts::of(5));
  const auto ended = table.end(5);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->facts, Facts::of(5));
  EXPECT_EQ(ended->begun_at, 0);
  EXPECT_FALSE(table.end(5));
  EXPECT_FALSE(table.find(5));
}

TEST(OpenTableTest, ItBeginsOnceAndItsEndKnowsWhen) {
  Table table(16);
  EXPECT_FALSE(table.begin(9, 100));
  ASSERT_TRUE(table.open(9, Facts::of(9)));
  const auto begun = table.begin(9, 100);
  ASSERT_TRUE(begun);
  EXPECT_EQ(*begun, Facts::of(9));
  EXPECT_FALSE(table.begin(9, 200));
  EXPECT_EQ(*table.find(9), Facts::of(9));
  const auto ended = table.end(9);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->begun_at, 100);
  EXPECT_FALSE(table.begin(9, 300));
}

TEST(OpenTableTest, IdsOutsideOfItsRangeFindNoRoom) {
  Table table(16);
  EXPECT_FALSE(table.open(0, {}));
  EXPECT_FALSE(table.open(Table::kIdMax + 1, {}));
  EXPECT_FALSE(table.open(~std::uint64_t{0}, {}));
  EXPECT_FALSE(table.end(0));
  EXPECT_FALSE(table.begin(0, 1));
  ASSERT_TRUE(table.open(Table::kIdMax, Facts::of(1)));
  EXPECT_EQ(table.end(Table::kIdMax)->begun_at, 0);
}

TEST(OpenTableTest, ItHoldsAsManyAsItWasAskedFor) {
  for (const std::size_t room : {1u, 16u, 17u, 1000u, 4096u}) {
    Table table(room);
    EXPECT_GE(table.places(), 2 * room);
    for (std::uint64_t id = 1; id <= room; ++id) ASSERT_TRUE(table.open(id, Facts::of(id))) << id;
    for (std::uint64_t id = 1; id <= room; ++id) ASSERT_EQ(*table.find(id), Facts::of(id));
    std::map<std::uint64_t, Facts> all;
    table.for_each([&](std::uint64_t id, const Facts& facts) { all[id] = facts; });
    EXPECT_EQ(all.size(), room);
    for (const auto& [id, facts] : all) EXPECT_EQ(facts, Facts::of(id));
    for (std::uint64_t id = 1; id <= room; ++id) ASSERT_TRUE(table.end(id));
    table.for_each([](std::uint64_t id, const Facts&) { ADD_FAILURE() << id; });
  }
}

TEST(OpenTableTest, FullIsSaidAndWhatIsOpenStays) {
  Table table(16);
  std::vector<std::uint64_t> kept;
  for (std::uint64_t id = 1; id <= 10 * table.places(); ++id) {
    if (table.open(id, Facts::of(id))) kept.push_back(id);
  }
  EXPECT_EQ(kept.size(), table.places());
  for (const std::uint64_t id : kept) EXPECT_EQ(table.end(id)->facts, Facts::of(id));
  EXPECT_TRUE(table.open(1'000'000, {}));  // there is room again
}

TEST(OpenTableTest, WhatIsNotToldYetEndsForWhoKnowsItAndIsNotFoundAmongAll) {
  Table table(16);
  const Table::Room room = table.take_room(5);
  ASSERT_TRUE(room);
  EXPECT_FALSE(table.end(5));
  table.open(room, 5, Facts::of(5));
  table.for_each([](std::uint64_t id, const Facts&) { ADD_FAILURE() << id; });
  ASSERT_TRUE(table.begin(5, 100));
  EXPECT_EQ(table.end(5)->begun_at, 100);
  table.tell(room, 5);
  table.for_each([](std::uint64_t id, const Facts&) { ADD_FAILURE() << id; });
}

// Its opener has still to write there: whoever took the place would be told of in its stead.
TEST(OpenTableTest, ThePlaceOfWhatEndedUntoldIsUsedAgainOnceItIsTold) {
  Table table(16);
  const Table::Room room = table.take_room(1);
  table.open(room, 1, Facts::of(1));
  EXPECT_EQ(table.end(1)->facts, Facts::of(1));
  std::vector<std::uint64_t> others;
  for (std::uint64_t id = 2; id <= 10 * table.places(); ++id) {
    if (table.open(id, Facts::of(id))) others.push_back(id);
  }
  EXPECT_EQ(others.size(), table.places() - 1);
  table.tell(room, 1);
  std::size_t found = 0;
  table.for_each([&](std::uint64_t, const Facts&) { ++found; });
  EXPECT_EQ(found, others.size());
  EXPECT_TRUE(table.open(1'000'001, Facts::of(1'000'001)));
  EXPECT_FALSE(table.open(1'000'002, {}));
  for (const std::uint64_t id : others) EXPECT_EQ(table.end(id)->facts, Facts::of(id));
}

// One place only, in effect: each id takes the places of those before it, while three threads try
// to begin and to end what is open and what was.
TEST(OpenTableTest, EachEndsOnceHoweverManySayIt) {
  constexpr std::uint64_t kIds = 20'000;
  Table table(1);
  std::atomic<std::uint64_t> opened{0};
  std::vector<std::atomic<int>> begun(kIds + 1), ended(kIds + 1);
  std::atomic<int> wrong{0};
  const auto report = [&](std::uint64_t lag) {
    for (std::uint64_t now = 0; now < kIds;) {
      now = opened;
      for (std::uint64_t id = now > lag ? now - lag : 1; id <= now; ++id) {
        if (const auto facts = table.find(id); facts && *facts != Facts::of(id)) ++wrong;
        if (const auto facts = table.begin(id, 1'000)) {
          if (*facts != Facts::of(id) || ended[id] != 0) ++wrong;
          ++begun[id];
        }
        if (const auto end = table.end(id)) {
          if (end->facts != Facts::of(id)) ++wrong;
          if (end->begun_at != 0 && end->begun_at != 1'000) ++wrong;
          ++ended[id];
        }
      }
    }
  };
  std::thread first(report, 0), second(report, 3), third(report, 40);
  for (std::uint64_t id = 1; id <= kIds; ++id) {
    if (!table.open(id, Facts::of(id))) {
      ++ended[id];  // no room: who opens says so
    }
    opened = id;
  }
  first.join();
  second.join();
  third.join();
  for (std::uint64_t id = 1; id <= kIds; ++id) {
    if (const auto end = table.end(id)) ++ended[id];
    ASSERT_EQ(ended[id], 1) << id;
    ASSERT_LE(begun[id], 1) << id;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ringmain::engine
