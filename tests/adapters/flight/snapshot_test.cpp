// Is a dump that is written while it is told the document that it tells?
#include "adapters/flight/snapshot.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/flight/document_writer.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/tensor_runs.hpp"

namespace ringmain::flight {
namespace {

struct Made {
  FlightSnapshot snapshot;

  FlightTensors tensors(const std::vector<std::vector<std::int64_t>>& sizes, Name dtype) {
    TensorRuns count({});
    for (const auto& one : sizes) count.add(dtype, one);
    const std::size_t from = snapshot.words.size();
    snapshot.words.resize(from + count.words());
    TensorRuns runs(std::span(snapshot.words).subspan(from));
    for (const auto& one : sizes) runs.add(dtype, one);
    return {from, static_cast<std::uint32_t>(count.words())};
  }
  FlightEntry& add(const char* op) {
    FlightEntry& made = snapshot.entries.emplace_back();
    made.record_id = made.op_id = snapshot.entries.size();
    made.op = Name(op);
    made.created_ns = 1'700'000'000'000'000'000;
    made.thread = static_cast<std::int32_t>(snapshot.entries.size() % 3);
    made.thread_name = std::string_view("w\xff\"\n");
    made.timeout_ms = 600000;
    return made;
  }
};

Made everything() {
  Made made;
  auto& groups = made.snapshot.groups;
  groups.resize(3);
  groups[0].name = "dp \xc3\xa4 \xff\xfe \"\\";
  groups[0].backend = "gloo";
  groups[0].size = 4;
  groups[1].name = "whole";
  groups[1].description = "the world";
  for (int rank = 0; rank < 5000; ++rank) groups[1].ranks.push_back(3 * rank);
  groups[2].name = groups[0].name;
  groups[2].description = "another rank of the first";
  groups[1].figures = {300, 70000, -1, 2, 5, 4};
  const Name f32("float32"), own("a type \xff");
  made.add("all_reduce").input = made.tensors({{3, 4}}, f32);
  FlightEntry& all = made.add("all_gather");
  all.input = made.tensors({{2}}, f32);
  all.output = made.tensors({{2}, {2}, {2}}, own);
  FlightEntry& some = made.add("reduce_scatter");
  some.input = made.tensors({{2}, {3}, {}, {}}, f32);
  some.state = FlightState::started;
  some.started_ns = 1;
  FlightEntry& done = made.add("reduce");
  done.input = made.tensors({{}}, f32);
  done.state = FlightState::completed;
  done.retired = true;
  done.completed_ns = 2;
  done.duration_ns = 2'000'000;
  done.group = 1;
  FlightEntry& sent = made.add("send");
  sent.from = 0;
  sent.to = 1;
  sent.is_p2p = true;
  sent.transfer = 1;
  made.add("send").is_p2p = true;  // it does not say to whom
  made.add("split");
  made.add("batch_op_issue").op_id = ~std::uint64_t{0};
  return made;
}

/// As one who has read it would write it.
std::string written_again(const std::string& bytes, DumpFormat format) {
  const auto read = read_document(bytes);
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return format == DumpFormat::pickle ? to_pickle(read.value()) : to_json(read.value());
}

TEST(FlightSnapshotTest, ItIsByteByByteWhatTheWholeDocumentIs) {
  const Made made = everything();
  for (const bool include_completed : {true, false}) {
    const std::string json =
        write_flight_dump(made.snapshot, {DumpFormat::json, "", 3, include_completed});
    EXPECT_EQ(json, written_again(json, DumpFormat::json));
    // Of the texts only that of 5,000 ranks has no place in a pickle's memo.
    Made fewer = everything();
    fewer.snapshot.groups[1].ranks.resize(800);
    const std::string pickle =
        write_flight_dump(fewer.snapshot, {DumpFormat::pickle, "a:b", 3, include_completed});
    EXPECT_EQ(pickle, written_again(pickle, DumpFormat::pickle));
  }
  const FlightSnapshot empty;
  for (const DumpFormat format : {DumpFormat::json, DumpFormat::pickle}) {
    const std::string bytes = write_flight_dump(empty, {.format = format});
    EXPECT_EQ(bytes, written_again(bytes, format));
  }
}

TEST(FlightSnapshotTest, ItSaysWhatItHolds) {
  const std::string json = write_flight_dump(everything().snapshot, {.backend = "x:y:"});
  for (const char* const part :
       {"\"profiling_name\":\"x_y_:send 0->1\"", "\"input_sizes\":[[2],[3],[],[]]",
        "\"output_dtypes\":[\"a type \xef\xbf\xbd\",\"a type \xef\xbf\xbd\",\"a type "
        "\xef\xbf\xbd\"]",
        "\"duration_ms\":2.0,", "\"thread_name\":\"w\xef\xbf\xbd\\\"\\u000a\"",
        "\"desc\":\"another rank of the first\"", "[0,3,6,", ",14997]\"", "\"op_id\":-1,",
        "\"last_started_collective\":\"70000\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json.substr(0, 9000);
  // Two of one name are one in the list of groups.
  EXPECT_EQ(json.find("\"desc\":\"gloo\""), std::string::npos);
}

TEST(FlightSnapshotTest, MoreTextsThanAMemoHoldsAreThereAllTheSame) {
  Made made;
  made.snapshot.groups.resize(1);
  const std::string filler(200, 'x');
  for (int i = 0; i < 3000; ++i)
    made.snapshot.groups.emplace_back().name = filler + std::to_string(i);
  made.snapshot.groups.emplace_back().name = std::string(10'000, 'y') + "\xff";  // longer than any
  for (std::size_t i = 0; i < made.snapshot.groups.size(); ++i) {
    made.add("broadcast").group = i;
    made.add("barrier").group = i;
  }
  const std::string json = write_flight_dump(made.snapshot, {.format = DumpFormat::json});
  const std::string pickle = write_flight_dump(made.snapshot, {.format = DumpFormat::pickle});
  const auto read = read_document(pickle);
  ASSERT_TRUE(read) << read.error().message;
  const Value* const entries = read.value().find(read.value().root, "entries");
  ASSERT_NE(entries, nullptr);
  const auto items = read.value().items(*entries);
  ASSERT_EQ(items.size(), 2 * made.snapshot.groups.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto group = read.value().items(*read.value().find(items[i], "process_group"));
    const std::string& name = made.snapshot.groups[i / 2].name;
    EXPECT_EQ(group[0].str().substr(0, 10'000), name.substr(0, 10'000)) << i;
    EXPECT_EQ(read.value().find(items[i], "profiling_name")->str(),
              i % 2 == 0 ? "nccl:broadcast" : "nccl:all_reduce_barrier");
  }
  EXPECT_EQ(json, written_again(json, DumpFormat::json));
}

TEST(TensorRunsTest, AlikeOnesInARowAreOneRunHoweverManyThereAre) {
  const std::array<std::int64_t, 2> sizes{3, 4};
  const Name f32("float32"), f64("float64");
  std::array<std::int64_t, 16> words{};
  TensorRuns runs(words);
  for (int i = 0; i < 70'000; ++i) runs.add(f32, sizes);  // more than one run can have
  runs.add(f64, sizes);
  runs.add(f64, {});
  std::vector<std::size_t> counts, lengths;
  each_run(std::span(words).first(runs.words()), [&](const TensorRun& run) {
    counts.push_back(run.count);
    lengths.push_back(run.sizes.size());
    EXPECT_EQ(run.dtype, counts.size() <= 2 ? f32 : f64);
  });
  EXPECT_EQ(counts, (std::vector<std::size_t>{65535, 4465, 1, 1}));
  EXPECT_EQ(lengths, (std::vector<std::size_t>{2, 2, 2, 0}));
}

}  // namespace
}  // namespace ringmain::flight
