// Does a summary stay within its limits, whatever lines come, and does every event still count?
#include "cli/summary_table.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace ringmain::cli {
namespace {

SummaryLine line_of(std::string_view channel, std::string_view operation, std::uint64_t origin) {
  SummaryLine line;
  line.channel = channel;
  line.operation = operation;
  line.event.origin = origin;
  return line;
}

std::uint64_t events_of(const SummaryTable& table) {
  std::uint64_t sum = 0;
  for (const auto& [place, cell] : table.cells()) sum += cell.events;
  return sum;
}

TEST(SummaryTableTest, OperationsBeyondTheLimitAreTogetherInTheirChannel) {
  SummaryTable table(false, {.kinds = 10});
  for (int i = 0; i < 1000; ++i) table.add(line_of("a", std::to_string(i), 1));
  for (int i = 0; i < 1000; ++i) table.add(line_of("channel " + std::to_string(i), "", 1));
  EXPECT_LE(table.kinds().size(), 21u);
  EXPECT_EQ(events_of(table), 2000u);
  EXPECT_EQ(table.beyond().operations, 990u + 1000u);
  EXPECT_EQ(table.kinds()[10].channel, "a");
  EXPECT_EQ(table.kinds()[10].operation, "(others)");
  EXPECT_EQ(table.kinds().back().channel, "(others)");
}

TEST(SummaryTableTest, ProcessesAndCellsBeyondTheLimitAreTogether) {
  SummaryTable table(false, {.processes = 5, .cells = 8});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    table.add(line_of("a", std::to_string(i % 7), i / 7));
  }
  EXPECT_LE(table.processes().size(), 6u);
  EXPECT_LE(table.cells().size(), 8u + 7u);
  EXPECT_EQ(events_of(table), 1000u);
  EXPECT_TRUE(std::any_of(table.processes().begin(), table.processes().end(),
                          [](const auto& one) { return one.origin == "(others)"; }));
  EXPECT_GT(table.beyond().processes, 0u);
}

TEST(SummaryTableTest, StepsAreToldTogetherUntilThereIsRoom) {
  SummaryTable table(true, {.cells = 16});
  for (std::uint64_t step = 0; step < 1000; ++step) {
    SummaryLine line = line_of("a", "", 1);
    line.step = step;
    line.measures.add("took_ns", 1 + step);
    table.add(line);
  }
  EXPECT_EQ(table.step_width(), 64u) << "1000 steps in at most 16";
  EXPECT_EQ(events_of(table), 1000u);
  std::uint64_t sum = 0;
  for (const auto& [place, cell] : table.cells()) {
    EXPECT_EQ(place.step % 64, 0u);
    ASSERT_EQ(cell.measures.size(), 1u);
    EXPECT_EQ(cell.measures[0].second.min(), place.step + 1);
    EXPECT_EQ(cell.measures[0].second.max(), std::min<std::uint64_t>(place.step + 64, 1000));
    sum += cell.measures[0].second.count();
  }
  EXPECT_EQ(sum, 1000u);
  EXPECT_EQ(table.beyond().cells, 0u);
}

TEST(SummaryTableTest, SketchesGrowCoarserRatherThanLarge) {
  SummaryTable table(false, {.sketch_bytes = 4096});
  for (std::uint64_t i = 1; i < 20'000; ++i) {
    const std::string operation = std::to_string(i % 4);
    SummaryLine line = line_of("a", operation, 1);
    line.measures.add("took_ns", i * i * i);
    table.add(line);
  }
  EXPECT_GT(table.coarser(), 0u);
  std::size_t bytes = 0;
  for (const auto& [place, cell] : table.cells()) {
    for (const auto& [key, sketch] : cell.measures) bytes += sketch.bytes();
  }
  EXPECT_LE(bytes, 4096u + 1024u);
}

TEST(SummaryTableTest, PublishersAndOpenOperationsBeyondTheLimitAreCounted) {
  SummaryTable table(false, {.publishers = 3, .operations = 2});
  for (std::uint64_t i = 1; i <= 10; ++i) {
    SummaryLine line = line_of("collective.issued", "all_reduce", 1);
    line.publisher = i;
    line.sequence = 1;
    line.op_id = i;
    table.add(line);
  }
  EXPECT_EQ(table.sequences().size(), 3u);
  EXPECT_EQ(table.beyond().sequences, 7u);
  EXPECT_EQ(table.open().size(), 2u);
  EXPECT_EQ(table.beyond().pairs, 8u);
}

TEST(SummaryTableTest, AGapIsAsLongAsTheLossInWhateverOrderLinesCome) {
  SummaryTable table(false);
  for (const std::uint64_t sequence : {7u, 3u, 4u, 9u}) {
    SummaryLine line = line_of("a", "", 1);
    line.publisher = 1;
    line.sequence = sequence;
    table.add(line);
  }
  ASSERT_EQ(table.sequences().size(), 1u);
  EXPECT_EQ(table.sequences()[0].missing(), 3u) << "5, 6 and 8";
  EXPECT_EQ(table.sequences()[0].backward, 1u);
}

TEST(SummaryTableTest, ALongNameIsCutBetweenCharacters) {
  SummaryTable table(false);
  std::string name;
  for (int i = 0; i < 500; ++i) name += "ä";
  table.add(line_of("a", name, 1));
  EXPECT_EQ(table.kinds()[0].operation, name.substr(0, 240));
}

}  // namespace
}  // namespace ringmain::cli
