// What becomes of a document's fields, of sizes, members and names of files.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/flight/job.hpp"
#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/tensors.hpp"
#include "adapters/flight/verdict.hpp"

namespace ringmain::flight {
namespace {

constexpr const char* kWhole = R"({"version": "2.10", "rank": 5, "comm_lib_version": "2.26",
  "pg_config": {"dp": {"name": "dp", "desc": "grad", "ranks": "[0, 1,5]"}},
  "pg_status": {"0": {"last_enqueued_collective": "9", "last_started_collective": "-1"}},
  "entries": [{"record_id": 3, "pg_id": 1, "process_group": ["dp", "grad"], "collective_seq_id": 7,
    "p2p_seq_id": 2, "op_id": -1, "profiling_name": "nccl:recv 2<-0", "time_created_ns": 11,
    "duration_ms": 1.5, "input_sizes": [], "output_sizes": [[3, 4], [5]], "input_dtypes": [],
    "output_dtypes": ["Float", "Long"], "state": "started", "time_discovered_started_ns": 12,
    "time_discovered_completed_ns": 0, "retired": true, "timeout_ms": 600000, "is_p2p": true,
    "thread_name": "main", "thread_id": "17", "frames": [
      {"name": "all_reduce", "filename": "/x/torch/distributed/c.py", "line": 1},
      {"name": "step", "filename": "train.py", "line": 88}]}]})";

std::string fault_of(std::string json) {
  const auto document = read_json(std::move(json));
  if (!document) return document.error().message;
  Kept kept;
  const auto dump = read_dump(document.value(), kept);
  return dump ? "" : dump.error().message;
}

std::string replaced(std::string_view what, std::string_view by) {
  std::string made = kWhole;
  made.replace(made.find(what), what.size(), by);
  return made;
}

TEST(DumpReaderTest, ATransferOfAGroupOfTwoIsOfTheGroupInWhichItWasCalled) {
  std::string json = replaced("\"process_group\": [\"dp\"", "\"process_group\": [\"dp 2->1\"");
  const std::string two = R"("dp 2->1": {"name": "dp 2->1", "desc": "grad", "ranks": "[1, 5]",)"
                          R"( "transfers_of": "dp", "between": "2->1"}, )";
  json.insert(json.find("\"dp\": {"), two);
  json.replace(json.find("recv 2<-0"), 9, "recv 0<-1");
  json.replace(json.find("\"p2p_seq_id\": 2"), 15, "\"p2p_seq_id\": 4294967298");
  Kept kept;
  const auto document = read_json(json);
  const Dump dump = read_dump(document.value(), kept).value();
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_EQ(kept.texts.of(dump.groups[dump.entries.at(0).group].name), "dp");
  EXPECT_EQ(dump.entries[0].from, 2);
  EXPECT_EQ(dump.entries[0].to, 1);
  EXPECT_EQ(dump.entries[0].p2p_seq, 2);
  for (const char* wrong : {"2->", "-2->1", "2-1", "2->1x", ""}) {
    std::string spoilt = json;
    spoilt.replace(spoilt.find("\"between\": \"2->1\""), 17,
                   "\"between\": \"" + std::string(wrong) + "\"");
    EXPECT_EQ(fault_of(spoilt), "a group of its 'pg_config' has no two ranks 'between' which it is")
        << wrong;
  }
}

TEST(DumpReaderTest, EveryFieldArrives) {
  Kept kept;
  const auto document = read_json(kWhole);
  const Dump dump = read_dump(document.value(), kept).value();
  EXPECT_EQ(dump.rank, 5);
  EXPECT_EQ(dump.library_version, "2.26");
  EXPECT_EQ(kept.members.of(dump.groups.at(0).members), (std::vector<std::int64_t>{0, 1, 5}));
  EXPECT_EQ(dump.status.at(0).enqueued, 9);
  EXPECT_EQ(dump.status.at(0).started, -1);
  const Entry& entry = dump.entries.at(0);
  EXPECT_EQ(entry.record_id, 3);
  EXPECT_EQ(entry.pg_id, 1);
  EXPECT_EQ(entry.collective_seq, 7);
  EXPECT_EQ(entry.p2p_seq, 2);
  EXPECT_EQ(entry.op_id, -1);
  EXPECT_EQ(kept.texts.of(entry.backend), "nccl");
  EXPECT_EQ(kept.texts.of(entry.name), "recv");
  EXPECT_EQ(entry.from, 0);
  EXPECT_EQ(entry.to, 2);
  EXPECT_EQ(kept.texts.of(entry.outputs.sizes), "[[3,4],[5]]");
  EXPECT_EQ(kept.texts.of(entry.outputs.types), "Float,Long");
  EXPECT_EQ(kept.texts.of(entry.where), "train.py:88 step");
  EXPECT_EQ(kept.texts.of(entry.thread), "main (17)");
  EXPECT_EQ(entry.created_ns, 11);
  EXPECT_EQ(entry.started_ns, 12);
  EXPECT_EQ(entry.completed_ns, 0);
  EXPECT_EQ(entry.timeout_ms, 600000);
  EXPECT_EQ(entry.duration_ms, 1.5);
  EXPECT_EQ(entry.state, EntryState::started);
  EXPECT_TRUE(entry.retired);
  EXPECT_TRUE(entry.is_p2p);
}

TEST(DumpReaderTest, WhatIsMissingOrOfAnotherTypeIsNamedWithItsEntry) {
  EXPECT_EQ(fault_of(replaced("\"record_id\": 3,", "")), "entry 0: it has no 'record_id'");
  EXPECT_EQ(fault_of(replaced("\"record_id\": 3", "\"record_id\": \"3\"")),
            "entry 0: 'record_id' is text, and not a whole number");
  EXPECT_EQ(fault_of(replaced("\"collective_seq_id\": 7", "\"collective_seq_id\": -7")),
            "entry 0: 'collective_seq_id' is -7, out of range");
  EXPECT_EQ(fault_of(replaced("started\"", "asleep\"")),
            "entry 0: the state 'asleep' is none of scheduled, started and completed");
  EXPECT_EQ(fault_of(replaced("[[3, 4], [5]]", "[3]")),
            "entry 0: 'output_sizes' is a whole number, and not a list of lists");
  EXPECT_EQ(fault_of(replaced("2.10", "3.0")), "it is of version 3.0, and 2.x is known");
  EXPECT_EQ(fault_of(replaced("[0, 1,5]", "[0, 1,5")),
            "the ranks of a group are no list such as \"[0, 1]\"");
  EXPECT_EQ(fault_of("[]"), "it is a list, no dict");
  EXPECT_EQ(fault_of("{\"version\": \"2.4\", \"pg_config\": {}}"), "");
}

TEST(ElementsTest, TensorsAreSummedAndAScalarIsOne) {
  EXPECT_EQ(elements_of("[[3,4],[5]]"), 17u);
  EXPECT_EQ(elements_of("[]"), 0u);
  EXPECT_EQ(elements_of("[[]]"), 1u);
  EXPECT_EQ(elements_of("[[0,9]]"), 0u);
  EXPECT_EQ(elements_of("[[4294967296,4294967296]]"), std::nullopt);
  EXPECT_EQ(elements_of("[[99999999999999999999]]"), std::nullopt);
}

TEST(RankNameTest, TheLastNumberOfTheNameIsTheRankUnlessAnExpressionFindsIt) {
  EXPECT_EQ(rank_of_name("/a/9/trace_rank_12", "").value(), 12);
  EXPECT_EQ(rank_of_name("node3-rank7.json", "").value(), 7);
  EXPECT_EQ(rank_of_name("trace", "").value(), -1);
  EXPECT_EQ(rank_of_name("r7-node3", "r([0-9]+)").value(), 7);
  EXPECT_EQ(rank_of_name("r7-node3", "x([0-9]+)").value(), -1);
  EXPECT_EQ(rank_of_name("r99999999999999999999", "").value(), -1);
  EXPECT_FALSE(rank_of_name("r7", "("));
}

/// A folder with a file, a link to the folder, and another name of the file.
class JobTest : public testing::Test {
 protected:
  JobTest() {
    std::string made = (std::filesystem::temp_directory_path() / "job-XXXXXX").string();
    folder = ::mkdtemp(made.data());
    std::ofstream(folder + "/rank_0") << "no dump";
    std::filesystem::create_symlink(folder, folder + "-link");
  }
  ~JobTest() override {
    std::filesystem::remove(folder + "-link");
    std::filesystem::remove_all(folder);
  }
  std::string folder;
};

TEST_F(JobTest, AFileThatSeveralPathsLeadToIsTakenOnceAndByThePathThatNamesIt) {
  const std::string file = folder + "/rank_0";
  using Files = std::vector<std::string>;
  EXPECT_EQ(find_files({.paths = {folder, folder + "-link"}}).value(), Files{file});
  EXPECT_EQ(find_files({.paths = {file, folder + "-link"}}).value(), Files{file});
  EXPECT_EQ(find_files({.paths = {folder + "-link", file}}).value(), Files{file});
  EXPECT_EQ(find_files({.paths = {"-", file, "-"}}).value(), (Files{"-", file}));
  std::filesystem::create_hard_link(file, folder + "/rank_1");
  EXPECT_EQ(find_files({.paths = {folder}}).value(), (Files{file, folder + "/rank_1"}));
}

TEST(RanksTextTest, RunsOfRanksAreShort) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1}), "ranks 0 and 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 7}), "ranks 0-2 and 7");
  EXPECT_EQ(ranks_text({0, 2, 4, 5, 6}), "ranks 0, 2 and 4-6");
}

}  // namespace
}  // namespace ringmain::flight
