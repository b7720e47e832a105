#include <algorithm>
#include <map>
#include <utility>

#include "adapters/flight/convert.hpp"

namespace ringmain::flight {

bool MergePlan::has_wrapped(const Dump& dump) noexcept {
  return !dump.entries.empty() && dump.entries.front().record_id > 0;
}
bool MergePlan::sends(const Job& job, const Dump& dump, const Transfer& transfer) {
  return job.kept.texts.of(dump.entries[transfer.entry].name) == "send";
}

namespace {

/// What all dumps together tell of each.
class Planner {
 public:
  Planner(const Job& job, const Verdict& verdict) : job_(job), verdict_(verdict) {}

  MergePlan plan() {
    plan_.first = verdict_.groups.data();
    for (std::size_t g = 0; g < verdict_.groups.size(); ++g) {
      const bool hangs = std::any_of(verdict_.findings.begin(), verdict_.findings.end(),
                                     [g](const Finding& one) { return one.group == g; });
      plan_.until.push_back(hangs ? INT64_MAX : until(g));
      plan_transfers(g, hangs);
    }
    return std::move(plan_);
  }

 private:
  /// The first operation that some dump does not have, or has in another state.
  [[nodiscard]] std::int64_t until(std::size_t g) const {
    const auto& lines = verdict_.groups[g].lines;
    std::int64_t end = INT64_MAX;
    for (const Line& line : lines) {
      if (!line.blind.empty()) return INT64_MAX;  // all of it is left out
      end = std::min(end, line.newest_seq() + 1);
    }
    for (const Line& line : lines) {
      for (const Operation& one : line.operations) {
        if (one.seq >= end) break;
        const Operation* const other = lines.front().find(one.seq);
        if (one.seq < verdict_.trimmed_to[g]) continue;
        if (other == nullptr || !is_as_far(lines.front(), *other, line, one)) end = one.seq;
      }
    }
    return end;
  }
  [[nodiscard]] bool is_as_far(const Line& a, const Operation& one, const Line& b,
                               const Operation& other) const {
    if (one.last - one.first != other.last - other.first) return false;
    for (std::uint32_t i = 0; i <= one.last - one.first; ++i) {
      if (job_.dumps[a.dump].entries[one.first + i].state !=
          job_.dumps[b.dump].entries[other.first + i].state)
        return false;
    }
    return true;
  }

  void plan_transfers(std::size_t g, bool hangs) {
    struct Ends {
      std::int64_t sent = 0, received = 0;
    };
    const Group& group = verdict_.groups[g];
    const auto number = static_cast<std::int64_t>(g);
    std::map<std::int64_t, bool> wrapped;  // by rank
    std::map<MergePlan::Key, Ends> counts;
    for (const Line& line : group.lines) {
      const Dump& dump = job_.dumps[line.dump];
      wrapped[line.rank] = MergePlan::has_wrapped(dump);
      for (const Transfer& one : line.transfers) {
        const bool sent = MergePlan::sends(job_, dump, one);
        if (line.rank != (sent ? one.from : one.to)) continue;
        Ends& ends = counts[{number, one.from, one.to}];
        ++(sent ? ends.sent : ends.received);
      }
    }
    for (const auto& [key, ends] : counts) {
      const auto sender = wrapped.find(key[1]), receiver = wrapped.find(key[2]);
      const bool both = sender != wrapped.end() && receiver != wrapped.end();
      MergePlan::Direction& made = plan_.directions[key];
      made.wrapped = (sender != wrapped.end() && sender->second) ||
                     (receiver != wrapped.end() && receiver->second);
      const bool all = hangs || !both || key[1] == key[2];
      made.until = all ? INT64_MAX : std::min(ends.sent, ends.received);
    }
  }

  const Job& job_;
  const Verdict& verdict_;
  MergePlan plan_;
};

}  // namespace

MergePlan plan_merge(const Job& job, const Verdict& verdict) {
  return Planner(job, verdict).plan();
}

}  // namespace ringmain::flight
