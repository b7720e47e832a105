// Which ranks come late to operations that all of them have joined?
//
// By when each enqueued it, after the first. Clocks of hosts differ: where ends were recorded, a
// rank's clock is off by the median of its ends against the median of all ranks' ends, as an
// operation ends everywhere at about the same time. Without ends clocks are taken as they are.
#include <algorithm>
#include <map>

#include "adapters/flight/judging.hpp"

namespace ringmain::flight {
namespace {

constexpr double kNsPerMs = 1e6;

double median(std::vector<double>& of) {
  if (of.empty()) return 0;
  const auto middle = of.begin() + static_cast<long>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

/// Calls `use` with the entries of each operation that every rank of the group has.
template <class Use>
void each_common(const Judging& judging, const Group& group, std::int64_t low, Use&& use) {
  if (group.lines.size() < 2) return;
  std::vector<std::pair<std::int64_t, const Entry*>> entries;
  std::vector<std::size_t> cursor(group.lines.size());
  for (const Operation& wanted : group.lines.front().operations) {
    if (wanted.seq < low) continue;
    entries.clear();
    for (std::size_t i = 0; i < group.lines.size(); ++i) {
      const Line& line = group.lines[i];
      while (cursor[i] < line.operations.size() && line.operations[cursor[i]].seq < wanted.seq) {
        ++cursor[i];
      }
      if (cursor[i] == line.operations.size()) break;
      if (line.operations[cursor[i]].seq != wanted.seq) break;
      entries.emplace_back(line.rank, &judging.entry(line, line.operations[cursor[i]].last));
    }
    if (entries.size() == group.lines.size()) use(entries);
  }
}

using Differences = std::map<std::int64_t, std::vector<double>>;

}  // namespace

void rank_stragglers(Judging& judging) {
  Verdict& verdict = judging.verdict;
  Differences clocks;
  Differences late;
  std::map<std::int64_t, std::size_t> last;
  std::vector<double> ends;
  for (std::size_t g = 0; g < verdict.groups.size(); ++g) {
    each_common(judging, verdict.groups[g], verdict.trimmed_to[g], [&](const auto& entries) {
      ends.clear();
      // Against the first one's, so that no digits are lost.
      const std::int64_t base = entries.front().second->completed_ns;
      for (const auto& [rank, entry] : entries) {
        if (entry->completed_ns > 0)
          ends.push_back(static_cast<double>(entry->completed_ns - base));
      }
      if (ends.size() < entries.size()) return;
      const double middle = median(ends);
      for (const auto& [rank, entry] : entries) {
        clocks[rank].push_back(static_cast<double>(entry->completed_ns - base) - middle);
      }
    });
  }
  std::map<std::int64_t, double> offset;
  for (auto& [rank, differences] : clocks) offset[rank] = median(differences);
  verdict.clocks_compared = !offset.empty();
  for (std::size_t g = 0; g < verdict.groups.size(); ++g) {
    each_common(judging, verdict.groups[g], verdict.trimmed_to[g], [&](const auto& entries) {
      const std::int64_t base = entries.front().second->created_ns;
      double first = 0;
      double latest = 0;
      std::int64_t latest_rank = entries.front().first;
      bool begun = false;
      const auto at = [&](const auto& one) {
        return static_cast<double>(one.second->created_ns - base) - offset[one.first];
      };
      for (const auto& one : entries) {
        if (!begun || at(one) < first) first = at(one);
        if (!begun || at(one) > latest) {
          latest = at(one);
          latest_rank = one.first;
        }
        begun = true;
      }
      ++last[latest_rank];
      for (const auto& one : entries) late[one.first].push_back(at(one) - first);
    });
  }
  for (auto& [rank, differences] : late) {
    Straggler made;
    made.rank = rank;
    made.last = last[rank];
    made.compared = differences.size();
    made.late_ms_max = *std::max_element(differences.begin(), differences.end()) / kNsPerMs;
    made.late_ms_median = median(differences) / kNsPerMs;
    made.clock_ms = offset[rank] / kNsPerMs;
    verdict.stragglers.push_back(made);
  }
  std::stable_sort(verdict.stragglers.begin(), verdict.stragglers.end(),
                   [](const Straggler& one, const Straggler& other) {
                     return one.late_ms_median > other.late_ms_median;
                   });
}

}  // namespace ringmain::flight
