#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <set>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

constexpr std::int64_t kSecondInNs = 1'000'000'000;
constexpr std::size_t kSentencesMax = 100;

std::string time_text(std::int64_t ns) {
  const std::time_t seconds = ns / kSecondInNs;
  std::tm broken{};
  ::gmtime_r(&seconds, &broken);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &broken);
  std::snprintf(text + length, sizeof text - length, ".%03dZ",
                static_cast<int>(ns % kSecondInNs / 1'000'000));
  return text;
}

void add_sentence(std::vector<std::string>& to, std::string sentence) {
  if (to.size() < kSentencesMax && std::find(to.begin(), to.end(), sentence) == to.end()) {
    to.push_back(std::move(sentence));
  }
}

std::vector<std::int64_t> ranks_without_dump(const Job& job, const std::vector<Group>& groups) {
  std::set<std::int64_t> missing;
  for (const Unread& unread : job.unread) {
    if (unread.rank >= 0) missing.insert(unread.rank);
  }
  for (const Group& group : groups) missing.insert(group.missing.begin(), group.missing.end());
  for (std::int64_t rank = 0; rank < job.world_size; ++rank) missing.insert(rank);
  for (const Dump& dump : job.dumps) missing.erase(dump.rank);
  return {missing.begin(), missing.end()};
}

}  // namespace

std::string_view to_string(FindingKind kind) noexcept {
  static constexpr std::string_view kNames[] = {
      "not_joined", "not_started", "not_finished", "state",         "operation",
      "size",       "type",        "transfer",     "transfer_size", "deadlock"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string ranks_short(const std::vector<std::int64_t>& ranks) {
  std::string made;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!made.empty()) made += ",";
    made += std::to_string(ranks[i]);
    if (end - i == 2) made += "," + std::to_string(ranks[i + 1]);
    if (end - i > 2) made += "-" + std::to_string(ranks[end - 1]);
    i = end;
  }
  return made;
}

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string list = ranks_short(ranks);
  if (ranks.size() == 1) return "rank " + list;
  const std::size_t last = list.rfind(',');
  for (std::size_t at = list.size(); (at = list.rfind(',', at)) != list.npos; --at) {
    list.replace(at, 1, at == last ? " and " : ", ");
    if (at == 0) break;
  }
  return "ranks " + list;
}

std::vector<std::int64_t> Verdict::culprits() const {
  std::set<std::int64_t> all;
  for (const Finding& finding : findings) {
    if (finding.consequence_of < 0) all.insert(finding.culprits.begin(), finding.culprits.end());
  }
  return {all.begin(), all.end()};
}

Judging::Judging(const Job& judged, const JudgeOptions& options, Verdict& to)
    : job(judged),
      verdict(to),
      elements(judged.kept.texts),
      grace_ns_(static_cast<std::int64_t>(std::llround(options.grace_s * 1e9))) {
  for (const Dump& dump : job.dumps) {
    const std::int64_t newest = dump.newest_ns();
    newest_ns = std::max(newest_ns, newest);
    // A file that claims to be older than what it holds has lost its time, in an archive perhaps.
    written_ns.push_back(dump.file_time_ns >= newest ? dump.file_time_ns : 0);
  }
}

bool Judging::made_after(const Line& line, std::int64_t since_ns) const {
  const std::int64_t written = written_ns[line.dump];
  return written == 0 || since_ns == 0 || written - since_ns >= grace_ns_;
}

std::string Judging::title(const Group& group, std::int64_t seq, std::string_view name) const {
  return std::string(name) + " #" + std::to_string(seq) + " of " + name_of(group, job.kept.texts);
}

std::string Judging::name_of_batch(const Line& line, const Operation& operation) const {
  const std::string closing(text(entry(line, operation.last).name));
  if (!operation.is_batch()) return closing;
  return closing + " (a batch of " + std::to_string(operation.last - operation.first + 1) + ")";
}

std::string Judging::since_text(const Finding& finding) const {
  if (finding.since_ns <= 0) return "";
  std::string made = " since " + time_text(finding.since_ns);
  if (finding.waited_ns > 0) {
    char text[48];
    std::snprintf(text, sizeof text, ", for at least %.3g s",
                  static_cast<double>(finding.waited_ns) / 1e9);
    made += text;
  }
  return made;
}

std::string Judging::last_of(const Line& line) const {
  const Dump& dump = job.dumps[line.dump];
  if (dump.entries.empty()) return ". It has recorded nothing";
  const Entry& last = dump.entries.back();
  std::string made = ". Its last operation is " + std::string(text(last.name));
  made += " #" + std::to_string(last.is_p2p ? last.p2p_seq : last.collective_seq) + " of " +
          std::string(text(dump.groups[last.group].name)) + ", " +
          std::string(to_string(last.state));
  if (last.retired) made += ", retired";
  if (last.where != 0) made += ", at " + std::string(text(last.where));
  return made;
}

void Judging::time(Finding& finding, const Line& line, const Entry& entry) const {
  if (entry.created_ns <= 0) return;
  if (finding.since_ns == 0 || entry.created_ns < finding.since_ns) {
    finding.since_ns = entry.created_ns;
    finding.where = text(entry.where);
  }
  const std::int64_t until = std::max(written_ns[line.dump], newest_ns);
  if (until > entry.created_ns) {
    finding.waited_ns = std::max(finding.waited_ns, until - entry.created_ns);
  }
}

void Judging::undecided(std::string sentence) {
  add_sentence(verdict.undecided, std::move(sentence));
}

void Judging::note(std::string sentence) {
  add_sentence(verdict.notes, std::move(sentence));
}

Verdict judge(const Job& job, const JudgeOptions& options) {
  Verdict verdict;
  verdict.groups = find_groups(job);
  verdict.trimmed_to.resize(verdict.groups.size());
  verdict.missing = ranks_without_dump(job, verdict.groups);
  Judging judging(job, options, verdict);
  for (std::size_t g = 0; g < verdict.groups.size(); ++g) {
    const Group& group = verdict.groups[g];
    if (!group.members_told) {
      judging.note(
          "No dump tells who is in " + name_of(group, job.kept.texts) +
          ": taken for its members are the ranks " + ranks_short(group.members) +
          (job.kept.texts.of(group.desc) == "default_pg" ? ", or as --world-size says" : ""));
    }
    judge_collectives(judging, g);
    judge_transfers(judging, g);
  }
  for (const Dump& dump : job.dumps) {
    if (dump.left_out == 0) continue;
    judging.note("The file of rank " + std::to_string(dump.rank) + " leaves out " +
                 std::to_string(dump.left_out) +
                 " operations that PyTorch's analyzer cannot compare; dump_json() has them");
  }
  judge_waits(judging);
  rank_stragglers(judging);
  return verdict;
}

}  // namespace ringmain::flight
