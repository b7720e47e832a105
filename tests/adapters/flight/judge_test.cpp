// Small jobs, made by hand: what is told of them, and what is not.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/flight/report.hpp"

namespace ringmain::flight {
namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

/// Ranks of a group, and what each has recorded.
class HandMade {
 public:
  explicit HandMade(std::int64_t ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      Dump dump;
      dump.rank = rank;
      dump.version = "2.10";
      job.dumps.push_back(std::move(dump));
      all_.push_back(rank);
    }
    (void)job.kept.members.number(all_);
  }

  std::uint32_t group(std::int64_t rank, const std::string& name,
                      std::vector<std::int64_t> members) {
    auto& groups = dump(rank).groups;
    groups.push_back({job.kept.texts.number(name), job.kept.texts.number("d"),
                      job.kept.members.number(std::move(members))});
    return static_cast<std::uint32_t>(groups.size() - 1);
  }
  Dump& dump(std::int64_t rank) { return job.dumps[static_cast<std::size_t>(rank)]; }

  /// The next operation of a rank in its first group, which is of all ranks.
  Entry& add(std::int64_t rank, std::int64_t seq, EntryState state,
             const std::string& name = "all_reduce", std::uint32_t of_group = 0) {
    if (dump(rank).groups.empty()) (void)group(rank, "world", all_);
    Entry entry;
    entry.record_id = static_cast<std::int64_t>(dump(rank).entries.size());
    entry.collective_seq = seq;
    entry.group = of_group;
    entry.backend = job.kept.texts.number("nccl");
    entry.name = job.kept.texts.number(name);
    entry.inputs = entry.outputs = {job.kept.texts.number("[[8]]"), job.kept.texts.number("Float")};
    entry.created_ns = kStart + seq * kSecond + rank;
    entry.state = state;
    entry.retired = state == EntryState::completed;
    dump(rank).entries.push_back(entry);
    return dump(rank).entries.back();
  }
  void add_all(std::int64_t seq, EntryState state) {
    for (const Dump& one : job.dumps) add(one.rank, seq, state);
  }
  Verdict verdict() {
    std::erase_if(job.dumps, [](const Dump& one) { return one.rank < 0; });
    return judge(job, {});
  }

  Job job;

 private:
  std::vector<std::int64_t> all_;
};

using enum EntryState;
using Ranks = std::vector<std::int64_t>;

TEST(JudgeTest, WhoNeverEnqueuedIsNamedAndWhoWaitsAndSinceWhen) {
  HandMade made(4);
  made.add_all(1, completed);
  for (const std::int64_t rank : {0, 1, 3}) made.add(rank, 2, started);
  const Verdict verdict = made.verdict();
  ASSERT_EQ(verdict.findings.size(), 1u);
  const Finding& finding = verdict.findings.front();
  EXPECT_EQ(finding.kind, FindingKind::not_joined);
  EXPECT_EQ(finding.culprits, Ranks{2});
  EXPECT_EQ(finding.waiting, (Ranks{0, 1, 3}));
  EXPECT_EQ(finding.since_ns, kStart + 2 * kSecond);
  EXPECT_EQ(
      finding.sentence.substr(0, 87),
      "rank 2 never enqueued all_reduce #2 of world (d), in which ranks 0, 1 and 3 wait since ");
}

TEST(JudgeTest, WhatOthersFinishedIsNoFindingOfARankWhoseDumpMayBeOlder) {
  HandMade made(3);
  made.add_all(1, completed);
  made.add(0, 2, completed);
  made.add(1, 2, completed);
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(verdict.findings.empty());
  EXPECT_EQ(verdict.notes.size(), 1u);
}

TEST(JudgeTest, WhatOthersFinishedIsAFindingWhereTheDumpIsKnownToBeNewer) {
  HandMade made(3);
  made.add_all(1, completed);
  made.add(0, 2, completed);
  made.add(1, 2, completed);
  for (Dump& dump : made.job.dumps) dump.file_time_ns = kStart + 100 * kSecond;
  const Verdict verdict = made.verdict();
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings.front().culprits, Ranks{2});
}

TEST(JudgeTest, EnqueuedStartedAndFinishedAreToldApart) {
  HandMade made(3);
  made.add(0, 1, started);
  made.add(1, 1, started);
  made.add(2, 1, scheduled);
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::not_started);
  EXPECT_EQ(made.verdict().findings.at(0).culprits, Ranks{2});
  made.dump(2).entries[0].state = started;
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::not_finished);
  EXPECT_TRUE(made.verdict().culprits().empty());
  made.dump(0).entries[0].state = made.dump(1).entries[0].state = completed;
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::state);
  EXPECT_EQ(made.verdict().findings.at(0).culprits, Ranks{2});
  made.dump(2).entries[0].state = completed;
  EXPECT_TRUE(made.verdict().findings.empty());
}

TEST(JudgeTest, AnOperationThatWasGivenUpIsAFindingHoweverShortTheWait) {
  HandMade made(2);
  made.add_all(1, started);
  for (Dump& dump : made.job.dumps) dump.file_time_ns = kStart + 2 * kSecond;
  EXPECT_TRUE(made.verdict().findings.empty());
  made.dump(0).entries[0].retired = true;
  ASSERT_EQ(made.verdict().findings.size(), 1u);
  EXPECT_TRUE(made.verdict().findings.front().timed_out);
  // Which of the two no dump tells.
  EXPECT_TRUE(made.verdict().findings.front().sentence.ends_with(" s; it failed or timed out"));
}

TEST(JudgeTest, SinceStandsBesideWhatHasLastedSoLong) {
  HandMade made(4);
  made.add_all(1, scheduled);
  for (Dump& dump : made.job.dumps) dump.file_time_ns = kStart + 601 * kSecond;
  const auto sentence = [&made] { return made.verdict().findings.at(0).sentence; };
  const std::string since = " since 2026-01-01T00:00:01.000Z, for at least 600 s";
  EXPECT_EQ(sentence(), "ranks 0-3 enqueued all_reduce #1 of world (d), and it has not finished" +
                            since + "; whether it started is not recorded");
  made.dump(3).entries[0].state = started;
  EXPECT_EQ(sentence(),
            "ranks 0-2 enqueued all_reduce #1 of world (d) and have not started it, in which rank 3"
            " waits" +
                since);
  made.dump(1).entries[0].state = made.dump(2).entries[0].state = started;
  EXPECT_EQ(sentence(),
            "rank 0 enqueued all_reduce #1 of world (d) and has not started it, in which ranks 1-3"
            " wait" +
                since);
  made.dump(0).entries[0].state = completed;
  EXPECT_EQ(sentence(), "ranks 1-3 started all_reduce #1 of world (d) and have not finished it" +
                            since + "; others have");
  made.dump(1).entries[0].state = made.dump(2).entries[0].state = completed;
  EXPECT_EQ(sentence(), "rank 3 started all_reduce #1 of world (d) and has not finished it" +
                            since + "; others have");
}

TEST(JudgeTest, TheMinorityIsToBlameAndATieBlamesNobody) {
  HandMade made(4);
  made.add_all(1, completed);
  made.dump(3).entries[0].name = made.job.kept.texts.number("broadcast");
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::operation);
  EXPECT_EQ(made.verdict().culprits(), Ranks{3});
  made.dump(2).entries[0].name = made.dump(3).entries[0].name;
  EXPECT_TRUE(made.verdict().culprits().empty());
  EXPECT_EQ(made.verdict().findings.at(0).suspects, (Ranks{0, 1, 2, 3}));
}

/// As MPI does it: some leave, and one hangs.
TEST(JudgeTest, WhoHangsInWhatAnotherCallsDifferentlyIsNotToBlame) {
  HandMade made(4);
  made.add_all(1, completed);
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    Entry& entry = made.add(rank, 2, rank == 3 ? started : completed);
    if (rank == 2) entry.inputs.sizes = made.job.kept.texts.number("[[9]]");
  }
  for (Dump& dump : made.job.dumps) dump.file_time_ns = kStart + 100 * kSecond;
  const Verdict verdict = made.verdict();
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[0].kind, FindingKind::size);
  EXPECT_EQ(verdict.findings[1].kind, FindingKind::state);
  EXPECT_EQ(verdict.findings[1].consequence_of, 0);
  EXPECT_EQ(verdict.culprits(), Ranks{2});
}

TEST(JudgeTest, AnotherShapeOfAsManyElementsIsNoFault) {
  HandMade made(3);
  made.add_all(1, completed);
  made.dump(1).entries[0].inputs.sizes = made.job.kept.texts.number("[[4,2]]");
  EXPECT_TRUE(made.verdict().findings.empty());
  made.dump(1).entries[0].inputs.sizes = made.job.kept.texts.number("[[4,3]]");
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::size);
}

TEST(JudgeTest, RingsThatWrappedAreComparedFromWhereAllAreWhole) {
  HandMade made(3);
  for (std::int64_t seq = 1; seq <= 9; ++seq) made.add_all(seq, completed);
  auto& entries = made.dump(1).entries;
  entries.erase(entries.begin(), entries.begin() + 5);
  made.dump(0).entries[2].name =
      made.job.kept.texts.number("broadcast");  // before rank 1's ring begins
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(verdict.findings.empty());
  EXPECT_EQ(verdict.trimmed_to.at(0), 6);
}

TEST(JudgeTest, OfTorchcommsWrappedRingsNothingIsDecided) {
  HandMade made(2);
  for (std::int64_t seq = 5; seq < 9; ++seq) made.add_all(seq, scheduled);
  for (Dump& dump : made.job.dumps) {
    dump.groups[0].desc = made.job.kept.texts.number("nccl");
    for (Entry& entry : dump.entries) entry.retired = true;
  }
  EXPECT_TRUE(made.verdict().undecided.empty());  // they begin with their first
  for (Dump& dump : made.job.dumps) dump.entries.front().record_id = 4;
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(verdict.findings.empty());
  ASSERT_EQ(verdict.undecided.size(), 2u);
  EXPECT_EQ(verdict.undecided[1],
            "What rank 1 did in world (nccl) cannot be said: its ring has wrapped, and torchcomms "
            "counts the operations of all groups together");
}

TEST(JudgeTest, WhatWaitsForARankWhoseDumpIsOlderIsUndecided) {
  HandMade made(3);
  made.add_all(1, completed);
  made.add(0, 2, started);
  made.add(1, 2, started);
  for (Dump& dump : made.job.dumps) dump.file_time_ns = kStart + 100 * kSecond;
  made.dump(2).file_time_ns = kStart + 3 * kSecond;
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(verdict.findings.empty());
  ASSERT_EQ(verdict.undecided.size(), 1u);
  EXPECT_EQ(verdict.undecided[0],
            "ranks 0 and 1 had not finished all_reduce #2 of world (d), and whether it was joined "
            "by rank 2 cannot be said: the dump is older");
}

TEST(JudgeTest, OfABatchThatARingHasOverwrittenBeforeItsEndNothingIsCompared) {
  HandMade made(2);
  made.add(0, 5, completed, "coalesced");
  made.dump(0).entries.front().record_id = 3;
  for (int i = 0; i < 2; ++i) made.add(1, 5, scheduled);
  made.add(1, 5, completed, "coalesced");
  made.add_all(6, completed);
  EXPECT_TRUE(made.verdict().findings.empty());
  EXPECT_EQ(made.verdict().trimmed_to[0], 6);
}

TEST(JudgeTest, AnOpenBatchOfAWrappedRingAccusesNobodyForSure) {
  HandMade made(3);
  made.add_all(1, completed);
  const auto transfer = [&made](std::int64_t rank, bool sends, std::int32_t from, std::int32_t to,
                                EntryState state) {
    Entry& entry = made.add(rank, 0, state, sends ? "send" : "recv");
    entry.is_p2p = true;
    entry.p2p_seq = 1;
    entry.from = from;
    entry.to = to;
  };
  transfer(0, true, 0, 1, started);   // rank 1 is not there,
  transfer(0, false, 2, 0, started);  // and what rank 2 sends has come
  transfer(2, true, 2, 0, completed);
  for (Dump& dump : made.job.dumps) dump.entries.front().record_id = 3;
  const Verdict verdict = made.verdict();
  EXPECT_TRUE(verdict.culprits().empty());
  ASSERT_EQ(verdict.findings.size(), 2u);
  EXPECT_EQ(verdict.findings[0].suspects, Ranks{1});
  EXPECT_EQ(verdict.findings[1].suspects, Ranks{2});
}

TEST(JudgeTest, AnOperationThatIsMissingBetweenOthersIsAFinding) {
  HandMade made(3);
  for (std::int64_t seq = 1; seq <= 3; ++seq) made.add_all(seq, completed);
  auto& entries = made.dump(1).entries;
  entries.erase(entries.begin() + 1);
  const Verdict verdict = made.verdict();
  ASSERT_EQ(verdict.findings.size(), 1u);
  EXPECT_EQ(verdict.findings.front().culprits, Ranks{1});
}

TEST(JudgeTest, WhoWaitsElsewhereIsHeldUpAndNotToBlame) {
  HandMade made(4);
  made.add_all(1, completed);
  made.add(0, 2, started);
  made.add(1, 2, started);
  for (const std::int64_t rank : {2, 3}) (void)made.group(rank, "pair", {2, 3});
  made.add(2, 1, started, "all_reduce", 1);
  const Verdict verdict = made.verdict();
  EXPECT_EQ(verdict.culprits(), Ranks{3});
  EXPECT_EQ(verdict.findings.at(0).held_up, Ranks{2});
}

TEST(JudgeTest, RanksThatWaitForEachOtherInTwoGroupsAreADeadlock) {
  HandMade made(2);
  for (const std::int64_t rank : {0, 1}) {
    (void)made.group(rank, "a", {0, 1});
    (void)made.group(rank, "b", {0, 1});
  }
  made.add(0, 1, started, "all_reduce", 0);
  made.add(1, 1, started, "all_reduce", 1);
  const Verdict verdict = made.verdict();
  ASSERT_EQ(verdict.findings.size(), 3u);
  EXPECT_EQ(verdict.findings.back().kind, FindingKind::deadlock);
  EXPECT_EQ(verdict.findings.back().suspects, (Ranks{0, 1}));
  EXPECT_TRUE(verdict.culprits().empty());
}

Entry& transfer(HandMade& made, std::int64_t rank, bool sends, std::int32_t from, std::int32_t to,
                EntryState state) {
  Entry& entry = made.add(rank, 0, state, sends ? "send" : "recv");
  entry.is_p2p = true;
  entry.p2p_seq = entry.record_id + 1;
  entry.from = from;
  entry.to = to;
  return entry;
}

TEST(JudgeTest, ASendWithoutItsReceiveAndTwoOfOtherSizesAreTold) {
  HandMade made(3);
  transfer(made, 0, true, 0, 1, completed);
  transfer(made, 1, false, 0, 1, completed);
  (void)made.add(2, 1, completed);
  EXPECT_TRUE(made.verdict().findings.empty());
  transfer(made, 0, true, 0, 1, started);
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::transfer);
  EXPECT_EQ(made.verdict().culprits(), Ranks{1});
  transfer(made, 1, false, 0, 1, started).outputs.sizes = made.job.kept.texts.number("[[9]]");
  EXPECT_EQ(made.verdict().findings.at(0).kind, FindingKind::transfer_size);
}

TEST(JudgeTest, MembersOfABatchHaveTheStateOfTheEntryThatClosesIt) {
  HandMade made(2);
  for (const std::int64_t rank : {0, 1}) {
    for (const bool sends : {true, false}) {
      const std::int32_t from = (rank == 0) == sends ? 0 : 1;
      transfer(made, rank, sends, from, 1 - from, scheduled).p2p_seq = 1;
    }
    Entry& closing = transfer(made, rank, true, -1, -1, completed);
    closing.name = made.job.kept.texts.number("coalesced");
    closing.p2p_seq = 1;
  }
  EXPECT_TRUE(made.verdict().findings.empty());
  made.dump(1).entries.clear();
  EXPECT_TRUE(made.verdict().findings.empty());  // rank 0's batch has ended, so nobody waits
  made.dump(0).entries.back().state = scheduled;
  made.dump(0).entries.back().retired = false;
  EXPECT_EQ(made.verdict().culprits(), Ranks{1});
}

TEST(JudgeTest, TheRankThatComesLateIsRankedFirstWhateverItsClock) {
  HandMade made(3);
  for (std::int64_t seq = 1; seq <= 9; ++seq) {
    for (const std::int64_t rank : {0, 1, 2}) {
      Entry& entry = made.add(rank, seq, completed);
      const std::int64_t clock = rank == 0 ? 5 * kSecond : 0;  // rank 0's clock is ahead
      entry.created_ns = kStart + seq * kSecond + clock + (rank == 2 ? 1'000'000 : 0);
      entry.completed_ns = kStart + seq * kSecond + 2'000'000 + clock;
    }
  }
  const Verdict verdict = made.verdict();
  EXPECT_EQ(verdict.stragglers.at(0).rank, 2);
  EXPECT_NEAR(verdict.stragglers.at(0).late_ms_median, 1, 1e-6);
  EXPECT_EQ(verdict.stragglers.at(0).last, 9u);
}

}  // namespace
}  // namespace ringmain::flight
