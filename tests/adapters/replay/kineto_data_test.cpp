// Do replayed counts equal those that an independent count of recorded trainings gave?
//
// The recordings of others lie outside the project: RINGMAIN_SHARED_DATA names the folder that
// holds kineto/, by default ../shared/data beside the sources. Those that the project ships itself
// come with counts.json, made by examples/traces/count_trace.py.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <simdjson.h>
#include <string>

#include <gtest/gtest.h>

#include "tests/adapters/replay/kineto_support.hpp"

namespace ringmain::replay {
namespace {

namespace fs = std::filesystem;

fs::path shared_folder() {
  const char* named = std::getenv("RINGMAIN_SHARED_DATA");
  return named != nullptr && *named != '\0' ? fs::path(named)
                                            : fs::path(RINGMAIN_SOURCE_DIR) / "../shared/data";
}

std::size_t threads_in(const Mapping& mapping) {
  std::size_t threads = 0;
  for (const KinetoLane& lane : mapping.lanes) threads += lane.kind == KinetoLane::Kind::thread;
  return threads;
}

/// One row of the table beside the recordings.
struct Recorded {
  const char* file;
  std::uint64_t records, event_record, event_wait, allocation, deallocation, stream_creation,
      device_sync, stream_sync, event_sync, issued, kernels;
  std::size_t threads;
  bool sizes = true;  // older traces do not say what a collective moves

  friend void PrintTo(const Recorded& row, std::ostream* out) { *out << row.file; }
};
const Recorded kRecorded[] = {
    {"ddp_allreduce_rank0", 40573, 1077, 84, 0, 0, 0, 1, 0, 24, 21, 21, 3},
    {"allreduce_dense_rank0", 216092, 0, 6060, 0, 0, 0, 1, 0, 0, 2020, 2020, 2, false},
    {"alexnet_streams", 1408, 30, 34, 25, 15, 16, 5, 16, 0, 0, 0, 1},
    {"event_sync", 92, 2, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1},
    {"event_sync_multi_stream", 149, 4, 1, 3, 0, 0, 1, 0, 0, 0, 0, 1},
    {"sampled_rank0", 4855, 0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 2},
    {"sampled_rank1", 4720, 0, 0, 0, 0, 0, 0, 0, 0, 10, 10, 2},
};

class RecordedTraceTest : public testing::TestWithParam<Recorded> {
 protected:
  void SetUp() override {
    path_ = shared_folder() / "kineto" / (std::string(GetParam().file) + ".json.gz");
    if (!fs::exists(path_)) {
      GTEST_SKIP() << "skipped: " << path_.filename()
                   << " is not there; name the folder with the recordings by RINGMAIN_SHARED_DATA";
    }
  }
  fs::path path_;
};

TEST_P(RecordedTraceTest, CountsEqualTheTable) {
  const Recorded& row = GetParam();
  const Mapping mapping = map_trace(path_.string());
  ASSERT_FALSE(mapping.error) << mapping.error->message;
  EXPECT_EQ(mapping.counts.read, row.records);
  EXPECT_EQ(mapping.counts.skipped_total(), 0u);
  EXPECT_EQ(mapping.on("cuda.event_creation"), 0u);
  EXPECT_EQ(mapping.on("cuda.event_deletion"), 0u);
  EXPECT_EQ(mapping.on("cuda.event_record"), row.event_record);
  EXPECT_EQ(mapping.on("cuda.event_wait"), row.event_wait);
  EXPECT_EQ(mapping.on("cuda.memory_allocation"), row.allocation);
  EXPECT_EQ(mapping.on("cuda.memory_deallocation"), row.deallocation);
  EXPECT_EQ(mapping.on("cuda.stream_creation"), row.stream_creation);
  EXPECT_EQ(mapping.on("cuda.device_synchronization"), row.device_sync);
  EXPECT_EQ(mapping.on("cuda.stream_synchronization"), row.stream_sync);
  EXPECT_EQ(mapping.on("cuda.event_synchronization"), row.event_sync);
  EXPECT_EQ(mapping.on("collective.issued"), row.issued);
  EXPECT_EQ(mapping.on("collective.started"), row.kernels);
  EXPECT_EQ(mapping.on("collective.completed"), row.kernels);
  EXPECT_EQ(threads_in(mapping), row.threads);
  // A collective's kernel says two things, every other record one.
  EXPECT_EQ(mapping.events.size(), row.records + row.kernels);
}

TEST_P(RecordedTraceTest, EachCollectiveIsIssuedStartedAndCompletedInThatOrder) {
  const Mapping mapping = map_trace(path_.string());
  std::map<std::uint64_t, std::int64_t> issued;
  std::map<std::uint64_t, std::int64_t> started;
  for (const KinetoMapped& mapped : mapping.events) {
    if (const auto* event = std::get_if<collective::Issued>(&mapped.event)) {
      EXPECT_TRUE(issued.emplace(event->op_id, mapped.time_ns).second) << event->op_id;
      EXPECT_EQ(event->bytes > 0, GetParam().sizes);
      EXPECT_NE(event->device, collective::kNoDevice);
    } else if (const auto* begun = std::get_if<collective::Started>(&mapped.event)) {
      EXPECT_TRUE(started.emplace(begun->op_id, mapped.time_ns).second) << begun->op_id;
    }
  }
  EXPECT_EQ(issued.size(), started.size());
  for (const KinetoMapped& mapped : mapping.events) {
    const auto* event = std::get_if<collective::Completed>(&mapped.event);
    if (event == nullptr) continue;
    ASSERT_TRUE(issued.count(event->op_id) == 1 && started.count(event->op_id) == 1);
    EXPECT_LT(issued[event->op_id], started[event->op_id]);
    EXPECT_LT(started[event->op_id], mapped.time_ns);
    EXPECT_EQ(mapped.time_ns - started[event->op_id], event->duration_ns);
    EXPECT_EQ(started[event->op_id] - issued[event->op_id], event->queued_ns);
    EXPECT_GT(event->duration_ns, 0);
    started.erase(event->op_id);  // completed once only
  }
  EXPECT_TRUE(started.empty());
}

TEST_P(RecordedTraceTest, TheReadingStaysWithinItsMemory) {
  KinetoOptions options;
  options.memory_max = std::uint64_t{8} << 20;
  const std::uint64_t before = resident_bytes_max();
  const Mapping mapping = map_trace(path_.string(), false, options);
  EXPECT_FALSE(mapping.error) << mapping.error->message;
  EXPECT_EQ(mapping.counts.read, GetParam().records);
  EXPECT_EQ(mapping.counts.skipped_total(), 0u);
  if (!kSanitized) {
    EXPECT_LE(resident_bytes_max() - before, options.memory_max);
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, RecordedTraceTest, testing::ValuesIn(kRecorded),
                         [](const auto& row) { return std::string(row.param.file); });

/// The traces that the project ships, with what examples/traces/count_trace.py counted in them.
TEST(ShippedTracesTest, CountsEqualThoseBesideThem) {
  const fs::path folder = fs::path(RINGMAIN_SOURCE_DIR) / "examples" / "traces";
  simdjson::dom::parser parser;
  simdjson::dom::object files;
  ASSERT_EQ(parser.load((folder / "counts.json").string()).get(files), simdjson::SUCCESS);
  std::size_t checked = 0;
  for (const auto& [name, counts] : files) {
    SCOPED_TRACE(std::string(name));
    const Mapping mapping = map_trace((folder / std::string(name)).string());
    ASSERT_FALSE(mapping.error) << mapping.error->message;
    EXPECT_EQ(mapping.counts.read, counts["records"].get_uint64().value());
    EXPECT_EQ(mapping.counts.skipped_total(), 0u);
    const simdjson::dom::object kinds = counts["cuda_kinds"];
    const simdjson::dom::object collectives = counts["collectives"];
    for (const auto& [kind, calls] : kinds) {
      EXPECT_EQ(mapping.on("cuda." + std::string(kind)), calls.get_uint64().value()) << kind;
    }
    std::uint64_t annotations = 0;
    std::uint64_t on_cpu = 0;
    for (const auto& [annotation, times] : collectives) {
      annotations += times.get_uint64().value();
      if (annotation.starts_with("gloo:")) on_cpu += times.get_uint64().value();
    }
    const std::uint64_t kernels = counts["nccl_kernels"]["total"].get_uint64().value();
    EXPECT_EQ(mapping.on("collective.issued"), annotations);
    EXPECT_EQ(mapping.on("collective.started"), kernels);
    EXPECT_EQ(mapping.on("collective.completed"), kernels + on_cpu);
    EXPECT_EQ(threads_in(mapping), counts["threads"].get_uint64().value());
    EXPECT_EQ(mapping.events.size(), counts["records"].get_uint64().value() + kernels + on_cpu);
    ++checked;
  }
  EXPECT_GT(checked, 0u);
}

}  // namespace
}  // namespace ringmain::replay
