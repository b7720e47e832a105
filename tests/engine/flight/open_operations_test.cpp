#include "engine/flight/open_operations.hpp"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "engine/flight/ring_file.hpp"
#include "engine/flight/ring_reader.hpp"

#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

namespace flight = engine::flight;

class OpenOperationsTest : public ::testing::Test {
 protected:
  enum : std::size_t { kPlaces = 8 };
  enum : std::uint64_t { kSalt = 3 };
  [[nodiscard]] std::set<std::uint64_t> open_ids() const {
    std::set<std::uint64_t> ids;
    for (const flight::OperationPlace& place : places_) {
      flight::OpenOperation operation;
      if (place.state == 0) continue;
      EXPECT_TRUE(flight::read_operation(place, place.state, kSalt, operation));
      EXPECT_EQ(operation.group, operation.id * 7);
      ids.insert(operation.id);
    }
    return ids;
  }
  bool open(std::uint64_t id) { return table_.open({id, 100, 4, 5, id * 7, id + 1, id * 3}); }
  std::vector<flight::OperationPlace> places_ = std::vector<flight::OperationPlace>(kPlaces);
  flight::Counts counts_{};
  flight::OpenOperations table_{places_.data(), kPlaces, counts_, kSalt};
};

TEST_F(OpenOperationsTest, WhatWasOpenedAndHasNotEndedIsInIt) {
  for (std::uint64_t id = 0; id < 5; ++id) EXPECT_TRUE(open(id));
  EXPECT_TRUE(table_.end(3));
  EXPECT_FALSE(table_.end(3));
  EXPECT_FALSE(table_.end(99));
  EXPECT_EQ(open_ids(), (std::set<std::uint64_t>{0, 1, 2, 4}));
}

TEST_F(OpenOperationsTest, AllPlacesAreUsedAndWhatFindsNoneIsCounted) {
  // All of them have the same first place.
  for (std::uint64_t id = 0; id < kPlaces; ++id) EXPECT_TRUE(open(id * kPlaces));
  EXPECT_FALSE(open(1));
  EXPECT_FALSE(open(2));
  EXPECT_EQ(counts_.operations_left_out, 2u);
  EXPECT_FALSE(table_.end(1));
  for (std::uint64_t id = kPlaces; id-- > 0;) EXPECT_TRUE(table_.end(id * kPlaces));
  EXPECT_TRUE(open_ids().empty());
}

TEST_F(OpenOperationsTest, NoNumberOfLaterOnesPushesOneOut) {
  EXPECT_TRUE(open(5));
  for (std::uint64_t id = 6; id < 10'000; ++id) {
    ASSERT_TRUE(open(id));
    ASSERT_TRUE(table_.end(id));
  }
  EXPECT_EQ(open_ids(), (std::set<std::uint64_t>{5}));
  EXPECT_EQ(counts_.operations_left_out, 0u);
}

TEST_F(OpenOperationsTest, APlaceThatIsBeingWrittenOrWasDamagedIsNotRead) {
  EXPECT_TRUE(open(2));
  flight::OperationPlace& place = places_[2];
  flight::OpenOperation operation;
  const flight::OperationPlace whole = place;
  EXPECT_TRUE(flight::read_operation(whole, whole.state, kSalt, operation));
  EXPECT_FALSE(flight::read_operation(whole, 0, kSalt, operation));  // ended meanwhile
  for (std::size_t word = 0; word < sizeof place / 8; ++word) {
    flight::OperationPlace damaged = whole;
    reinterpret_cast<std::uint64_t*>(&damaged)[word] ^= 1;
    EXPECT_FALSE(flight::read_operation(damaged, damaged.state, kSalt, operation)) << word;
  }
}

TEST_F(OpenOperationsTest, AProcessHasFourThousandAndNinetySixPlacesAndCountsWhatFindsNone) {
  const Folder folder;
  flight::RingFileOptions options;
  options.folder = folder.path();
  const auto file = flight::RingFile::open(options);
  ASSERT_EQ(file->complaint(), "");
  flight::OpenOperation one;
  for (std::uint64_t id = 1; id <= 4096; ++id) {
    one.id = id;
    ASSERT_TRUE(file->operations().open(one)) << id;
  }
  for (std::uint64_t id = 4097; id <= 4099; ++id) {
    one.id = id;
    EXPECT_FALSE(file->operations().open(one));
  }
  const auto read = flight::read_flight(file->path());
  EXPECT_EQ(read.operations.size(), 4096u);
  EXPECT_EQ(read.counts.operations_left_out, 3u);
  EXPECT_TRUE(file->operations().end(7));
  EXPECT_TRUE(file->operations().open(one));
}

}  // namespace
}  // namespace ringmain::tests
