// Who is the first cause? A rank that did not join because it waits elsewhere is not: the one that
// it waits for is. Nor is one that hangs in what ranks call differently. Ranks that wait for each
// other in a circle have a deadlock.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

bool is_wait(const Finding& finding) {
  return finding.kind == FindingKind::not_joined || finding.kind == FindingKind::transfer;
}

/// The finding in which each rank waits: of several, the one that it entered first.
std::map<std::int64_t, int> waits_of(const std::vector<Finding>& findings) {
  std::map<std::int64_t, int> made;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    for (const std::int64_t rank : findings[i].waiting) {
      const auto [place, added] = made.emplace(rank, static_cast<int>(i));
      const std::int64_t since = findings[static_cast<std::size_t>(place->second)].since_ns;
      if (!added && findings[i].since_ns < since) place->second = static_cast<int>(i);
    }
  }
  return made;
}

/// The findings that a rank's wait leads to, until one whose culprits wait for nobody, or the
/// circle.
std::vector<int> circle_from(int start, const std::vector<Finding>& findings,
                             const std::map<std::int64_t, int>& waits) {
  std::vector<int> path{start};
  for (;;) {
    const auto& culprits = findings[static_cast<std::size_t>(path.back())].culprits;
    const auto next = std::find_if(culprits.begin(), culprits.end(),
                                   [&waits](std::int64_t r) { return waits.contains(r); });
    if (next == culprits.end()) return {};
    const int finding = waits.at(*next);
    const auto again = std::find(path.begin(), path.end(), finding);
    if (again != path.end()) return {again, path.end()};
    path.push_back(finding);
  }
}

/// Takes those from the culprits of a finding that wait in another.
void hold_up(Judging& judging, std::size_t at, const std::map<std::int64_t, int>& waits) {
  auto& findings = judging.verdict.findings;
  Finding& finding = findings[at];
  const auto elsewhere = [&](std::int64_t rank) {
    const auto found = waits.find(rank);
    return found != waits.end() && found->second != static_cast<int>(at);
  };
  auto& blamed = finding.culprits.empty() ? finding.suspects : finding.culprits;
  std::copy_if(blamed.begin(), blamed.end(), std::back_inserter(finding.held_up), elsewhere);
  if (finding.held_up.empty()) return;
  const int cause = waits.at(finding.held_up.front());
  const Finding& there = findings[static_cast<std::size_t>(cause)];
  finding.sentence += ". Of these, " + ranks_text(finding.held_up) + " waits itself, in " +
                      there.operation + " of " +
                      name_of(judging.verdict.groups[there.group], judging.job.kept.texts);
  std::erase_if(blamed, elsewhere);
  if (blamed.empty()) finding.consequence_of = cause;
}

bool is_mismatch(const Finding& finding) {
  return finding.kind == FindingKind::operation || finding.kind == FindingKind::size ||
         finding.kind == FindingKind::type;
}

/// What ranks call differently may end on some and hang on others: those are not to blame for it.
void follow_mismatches(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (finding.kind != FindingKind::state && finding.kind != FindingKind::not_finished) continue;
    const auto cause = std::find_if(findings.begin(), findings.end(), [&](const Finding& other) {
      return is_mismatch(other) && other.group == finding.group && other.seq == finding.seq;
    });
    if (cause != findings.end())
      finding.consequence_of = static_cast<int>(cause - findings.begin());
  }
}

}  // namespace

void judge_waits(Judging& judging) {
  auto& findings = judging.verdict.findings;
  follow_mismatches(findings);
  const auto waits = waits_of(findings);
  std::set<int> in_circle;
  std::vector<Finding> deadlocks;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (!is_wait(findings[i]) || in_circle.contains(static_cast<int>(i))) continue;
    const auto circle = circle_from(static_cast<int>(i), findings, waits);
    if (circle.size() < 2 || in_circle.contains(circle.front())) continue;
    in_circle.insert(circle.begin(), circle.end());
    Finding deadlock = findings[static_cast<std::size_t>(circle.front())];
    deadlock.kind = FindingKind::deadlock;
    std::set<std::int64_t> ranks;
    std::string where;
    for (const int link : circle) {
      const Finding& one = findings[static_cast<std::size_t>(link)];
      for (const std::int64_t rank : one.culprits) {
        if (waits.contains(rank)) ranks.insert(rank);
      }
      where += (where.empty() ? "" : ", ") + ranks_text(one.waiting) + " for " +
               ranks_text(one.culprits) + " in " +
               name_of(judging.verdict.groups[one.group], judging.job.kept.texts);
    }
    deadlock.culprits.clear();
    deadlock.suspects.assign(ranks.begin(), ranks.end());
    deadlock.waiting = deadlock.suspects;
    deadlock.sentence = "Ranks wait for each other in a circle: " + where +
                        ". They entered the groups' operations in different orders";
    deadlocks.push_back(std::move(deadlock));
  }
  for (std::size_t i = 0; i < findings.size(); ++i) {
    if (is_wait(findings[i])) hold_up(judging, i, waits);
  }
  for (Finding& deadlock : deadlocks) findings.push_back(std::move(deadlock));
}

}  // namespace ringmain::flight
