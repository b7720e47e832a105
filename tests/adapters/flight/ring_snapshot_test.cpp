// What is told of a job by the rings that its processes left? Here the processes are buses.
#include "adapters/flight/ring_snapshot.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/origin.hpp"
#include "bus/test_bus.hpp"

#include "events/collective_life.hpp"
#include "events/recorded_operations.hpp"

#include "adapters/flight/json_reader.hpp"
#include "adapters/flight/report.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

namespace fl = ringmain::flight;
using collective::How;

constexpr std::int32_t kRanks = 3;

/// A rank that records what it publishes.
class RankOfJob {
 public:
  RankOfJob(const std::string& folder, std::int32_t rank) : rank_(rank), bus_(with_workers(1)) {
    RecordOptions options = in_folder(folder);
    options.operations = collective::recorded_operations();
    auto made = bus_.record("collective.>", options);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    recording_ = std::move(made).value();
    EXPECT_EQ(recording_.complaint(), "");
  }

  void tell_group(std::string_view ranks,
                  collective::GroupChange change = collective::GroupChange::made) {
    collective::Group said;
    said.change = change;
    said.group = Name("world");
    said.description = Name("all of them");
    said.rank = rank_;
    said.group_size = kRanks;
    said.ranks = ranks;
    say(said);
  }
  std::uint64_t issue(std::uint64_t sequence, std::string_view op = "all_reduce",
                      std::uint64_t elements = 4, std::int32_t peer = collective::kNoRank) {
    collective::Issued said;
    said.op_id = new_op_id();
    said.sequence = sequence;
    said.op = Name(op);
    said.group = Name("world");
    said.dtype = Name("float32");
    said.backend = Name("gloo");
    said.in_elements = said.out_elements = elements;
    said.rank = rank_;
    said.group_size = kRanks;
    said.peer = peer;
    said.timeout_s = 15;
    if (peer != collective::kNoRank) said.p2p_sequence = ++transfers_;
    say(said);
    return said.op_id;
  }
  void start(std::uint64_t op) {
    collective::Started said;
    said.op_id = op;
    say(said);
  }
  void complete(std::uint64_t op) {
    collective::Completed said;
    said.op_id = op;
    said.duration_ns = 2'000'000;
    say(said);
  }
  void fail(std::uint64_t op, How how) {
    collective::Failed said;
    said.op_id = op;
    said.how = how;
    say(said);
  }
  void do_all(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n <= to; ++n) complete(issue(n));
  }

  [[nodiscard]] std::string path() const { return recording_.path(); }
  [[nodiscard]] fl::RingSnapshot told() const {
    auto read = fl::snapshot_of_ring(path());
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return std::move(read).value();
  }

 private:
  template <class E>
  void say(const E& event) {
    EXPECT_EQ(bus_.channel<E>().publish(event), PublishCode::accepted);
  }

  std::int32_t rank_;
  std::uint32_t transfers_ = 6;  // what was called for before the recording
  Bus bus_;
  Recording recording_;
};

class RingSnapshotTest : public ::testing::Test {
 protected:
  RingSnapshotTest() {
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      ranks_.push_back(std::make_unique<RankOfJob>(folder_.path(), rank));
  }
  RankOfJob& rank(std::size_t number) { return *ranks_[number]; }

  fl::Verdict judged() {
    fl::JobOptions options;
    options.paths = {folder_.path()};
    auto read = fl::read_job(options);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    job_ = std::move(read).value();
    return fl::judge(job_, {.grace_s = 0});
  }

  Folder folder_;
  std::vector<std::unique_ptr<RankOfJob>> ranks_;
  fl::Job job_;
};

TEST_F(RingSnapshotTest, AnOperationIsThereAsItsEventsTellIt) {
  rank(0).tell_group("0-2");
  rank(0).complete(rank(0).issue(1, "broadcast", 6));
  rank(0).fail(rank(0).issue(2), How::error);
  rank(0).fail(rank(0).issue(3), How::vetoed);
  rank(0).start(rank(0).issue(4));
  rank(0).complete(rank(0).issue(4, "send", 5, 2));
  rank(0).issue(4, "recv", 5, 1);
  const fl::RingSnapshot told = rank(0).told();
  EXPECT_EQ(told.rank, 0);
  EXPECT_TRUE(told.living);
  EXPECT_GE(told.alive_ns, told.began_ns);
  ASSERT_EQ(told.operations.groups.size(), 1u);
  const fl::FlightGroup& group = told.operations.groups.front();
  EXPECT_EQ(group.name, "world");
  EXPECT_EQ(group.description, "all of them");
  EXPECT_EQ(group.backend, "gloo");
  EXPECT_EQ(group.ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(group.figures.enqueued, 4);
  EXPECT_EQ(group.figures.started, 4);
  EXPECT_EQ(group.figures.completed, 1);
  const auto& all = told.operations.entries;
  ASSERT_EQ(all.size(), 5u);  // the vetoed one was never called for
  EXPECT_EQ(all[0].op.view(), "broadcast");
  EXPECT_EQ(all[0].state, fl::FlightState::completed);
  EXPECT_EQ(all[0].duration_ns, 2'000'000);
  ASSERT_EQ(all[0].input.words, 2u);
  EXPECT_EQ(told.operations.words[all[0].input.from + 1], 6);  // a tensor of so many elements
  EXPECT_GE(all[0].completed_ns, all[0].created_ns);
  EXPECT_TRUE(all[1].retired);
  EXPECT_EQ(all[1].completed_ns, 0);
  EXPECT_EQ(all[2].state, fl::FlightState::started);
  EXPECT_EQ(all[2].sequence, 4);
  EXPECT_TRUE(all[3].is_p2p);
  EXPECT_EQ(std::pair(all[3].from, all[3].to), std::pair(0, 2));
  EXPECT_EQ(std::pair(all[4].from, all[4].to), std::pair(1, 0));
  EXPECT_EQ(std::pair(all[3].transfer, all[4].transfer),
            std::pair(std::int64_t{7}, std::int64_t{8}));
  EXPECT_EQ(all[0].timeout_ms, 15'000);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].record_id, i);
}

TEST_F(RingSnapshotTest, WhatHangsIsThereHoweverManyCameAfterIt) {
  const std::uint64_t hangs = rank(0).issue(1, "barrier", 0);
  rank(0).do_all(2, 1000);
  const auto told = rank(0).told().operations;
  ASSERT_FALSE(told.entries.empty());
  EXPECT_EQ(told.entries.front().op_id, hangs);
  EXPECT_EQ(told.entries.front().op.view(), "barrier");
  EXPECT_FALSE(told.entries.front().retired);
  EXPECT_GT(told.entries.front().record_id, 0u);  // before it something is gone
  EXPECT_LT(told.entries.size(), 200u);
}

TEST_F(RingSnapshotTest, WhoNeverJoinedIsNamed) {
  for (std::size_t i = 0; i < kRanks; ++i) {
    rank(i).tell_group("0-2");
    rank(i).do_all(1, 10);
    if (i != 1) rank(i).issue(11);
  }
  const fl::Verdict verdict = judged();
  ASSERT_EQ(job_.dumps.size(), 3u);
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings[0].kind, fl::FindingKind::not_joined);
  EXPECT_EQ(verdict.findings[0].culprits, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(verdict.findings[0].waiting, (std::vector<std::int64_t>{0, 2}));
}

TEST_F(RingSnapshotTest, WhoMovesAnotherSizeIsNamed) {
  for (std::size_t i = 0; i < kRanks; ++i) {
    rank(i).tell_group("0-2");
    rank(i).do_all(1, 3);
    rank(i).issue(4, "all_reduce", i == 2 ? 6 : 4);
  }
  const fl::Verdict verdict = judged();
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].kind, fl::FindingKind::size);
  EXPECT_EQ(verdict.findings[0].culprits, (std::vector<std::int64_t>{2}));
}

TEST_F(RingSnapshotTest, NothingIsFoundInAHealthyJobWhoseRingsHaveWrapped) {
  for (std::size_t i = 0; i < kRanks; ++i) {
    rank(i).tell_group("0-2");
    rank(i).do_all(1, 500);
  }
  const fl::Verdict verdict = judged();
  EXPECT_TRUE(verdict.findings.empty()) << verdict.findings.front().sentence;
}

TEST_F(RingSnapshotTest, ARingWithoutOperationsIsALaunchersAndIsPassedOver) {
  for (std::size_t i = 0; i < 2; ++i) rank(i).do_all(1, 2);
  (void)judged();
  EXPECT_EQ(job_.dumps.size(), 2u);
  EXPECT_EQ(job_.passed_over, std::vector<std::string>{rank(2).path()});
}

TEST_F(RingSnapshotTest, AGroupWhoseNameIsMadeAgainIsAnotherOne) {
  rank(0).tell_group("0-2");
  rank(0).do_all(1, 5);
  const std::uint64_t hangs = rank(0).issue(6);
  rank(0).tell_group("", collective::GroupChange::ended);
  EXPECT_EQ(rank(0).told().operations.entries.size(), 6u);  // until the name comes again
  const std::uint64_t again = rank(0).issue(1);             // by a source that is not told
  auto told = rank(0).told().operations;
  ASSERT_EQ(told.groups.size(), 1u);
  EXPECT_TRUE(told.groups[0].ranks.empty());
  EXPECT_EQ(told.groups[0].figures.enqueued, 1);
  ASSERT_EQ(told.entries.size(), 2u);  // what hangs is there, whoever has the name
  EXPECT_EQ(told.entries[0].op_id, hangs);
  EXPECT_EQ(told.entries[1].op_id, again);
  rank(0).complete(again);
  rank(0).tell_group("", collective::GroupChange::ended);
  rank(0).tell_group("0,2");
  rank(0).do_all(1, 2);
  told = rank(0).told().operations;
  EXPECT_EQ(told.groups[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(told.groups[0].figures.completed, 2);
  EXPECT_EQ(told.entries.size(), 3u);
}

TEST_F(RingSnapshotTest, WhatIsNoListOfRanksNamesNobody) {
  std::uint64_t sequence = 0;
  for (const char* wrong : {"", "3-1", "0-", "-1", "0,", "a", "0-4/0", "0-99999999"}) {
    RankOfJob one(folder_.path(), 0);
    one.tell_group(wrong);
    one.issue(++sequence);
    EXPECT_TRUE(one.told().operations.groups.front().ranks.empty()) << wrong;
  }
  RankOfJob one(folder_.path(), 0);
  one.tell_group("0-12/4,20,30-31");
  EXPECT_EQ(one.told().operations.groups.front().ranks,
            (std::vector<int>{0, 4, 8, 12, 20, 30, 31}));
}

TEST_F(RingSnapshotTest, ADumpOfItIsReadAndWrittenAsAnyOther) {
  rank(1).tell_group("0-2");
  rank(1).do_all(1, 3);
  const auto bytes = fl::read_dump_bytes(rank(1).path());
  ASSERT_TRUE(bytes.has_value());
  auto document = fl::read_document(bytes.value());
  ASSERT_TRUE(document.has_value()) << document.error().message;
  fl::Kept kept;
  const auto dump = fl::read_dump(document.value(), kept);
  ASSERT_TRUE(dump.has_value()) << dump.error().message;
  EXPECT_EQ(dump.value().rank, 1);
  EXPECT_EQ(dump.value().entries.size(), 3u);
  EXPECT_EQ(kept.texts.of(dump.value().entries[0].inputs.types), "Float");
}

TEST_F(RingSnapshotTest, ACutOneIsASentence) {
  rank(0).do_all(1, 3);
  const std::string cut = folder_.path() + "/cut";
  std::filesystem::copy_file(rank(0).path(), cut);
  std::filesystem::resize_file(cut, 100);
  const auto read = fl::snapshot_of_ring(cut);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("shorter"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace ringmain::tests
