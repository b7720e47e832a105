#include "adapters/flight/groups.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace ringmain::flight {
namespace {

/// By name and members; members 0 where the dump does not tell them.
using Key = std::pair<std::uint32_t, std::uint32_t>;

bool is_transfer_name(std::string_view name) {
  return name == "send" || name == "recv" || name == "batch_op_issue";
}

bool closes_batch(std::string_view name) {
  return name.ends_with("coalesced");
}

Phase phase_of(const Entry& entry, const Tells& tells) {
  if (entry.state == EntryState::completed || entry.completed_ns > 0) return Phase::finished;
  if (tells.torchcomms) return entry.retired ? Phase::over : Phase::enqueued;
  if (entry.retired) return tells.ends ? Phase::gave_up : Phase::over;
  if (entry.state == EntryState::started || entry.started_ns > 0) return Phase::started;
  return Phase::enqueued;
}

/// Sorts one dump's entries into the lines of its groups.
class DumpSorter {
 public:
  DumpSorter(const Job& job, std::uint32_t dump, std::vector<Line*> lines,
             const std::vector<const std::vector<std::int64_t>*>& members)
      : dump_(job.dumps[dump]),
        texts_(job.kept.texts),
        tells_(what_it_tells(dump_, texts_)),
        lines_(std::move(lines)),
        members_(members),
        counted_(lines_.size()),
        unnamed_(lines_.size()),
        reach_(lines_.size(), -1) {}

  void sort() {
    for (std::uint32_t i = 0; i < dump_.entries.size();) i = add(i);
    for (std::size_t g = 0; g < lines_.size(); ++g) settle(*lines_[g], g);
  }
  [[nodiscard]] std::size_t unnamed(std::size_t group) const { return unnamed_[group]; }

 private:
  /// Adds the operation that begins here; returns where the next one does.
  std::uint32_t add(std::uint32_t first) {
    const Entry& entry = dump_.entries[first];
    const std::string_view name = texts_.of(entry.name);
    const std::size_t group = entry.group;
    if (tells_.torchcomms && (name == "finalize" || is_transfer_name(name))) {
      if (name != "finalize") ++unnamed_[group];
      return first + 1;
    }
    std::uint32_t last = first;
    while (!tells_.torchcomms && last + 1 < dump_.entries.size() &&
           same_batch(entry, dump_.entries[last + 1])) {
      ++last;
    }
    const Phase phase = batch_phase(first, last);
    if (entry.is_p2p) {
      const bool closed = closes_batch(texts_.of(dump_.entries[last].name));
      for (std::uint32_t i = first; i <= last; ++i) {
        Transfer made;
        made.entry = i;
        made.closing = closed ? last : i;
        made.phase = phase;
        made.in_batch = last - first > (closed ? 1u : 0u);
        add_transfer(made);
      }
      return last + 1;
    }
    const std::int64_t seq = numbers_by_count() ? ++counted_[group] : entry.collective_seq;
    if (first == 0 && (last > first || closes_batch(name)))
      reach_[group] = seq;  // perhaps the rest of a larger batch
    lines_[group]->operations.push_back({seq, first, last, phase});
    return last + 1;
  }

  [[nodiscard]] static bool same_batch(const Entry& one, const Entry& other) {
    if (one.group != other.group || one.is_p2p != other.is_p2p) return false;
    if (one.of_two || other.of_two)
      return one.of_two && other.of_two && one.op_id == other.op_id && one.op_id >= 0;
    return one.is_p2p ? one.p2p_seq == other.p2p_seq : one.collective_seq == other.collective_seq;
  }

  /// Only the entry that closes a batch is followed to its end.
  [[nodiscard]] Phase batch_phase(std::uint32_t first, std::uint32_t last) const {
    const Entry& closing = dump_.entries[last];
    if (last == first || closes_batch(texts_.of(closing.name))) return phase_of(closing, tells_);
    Phase least = Phase::finished;
    for (std::uint32_t i = first; i <= last; ++i) {
      least = std::min(least, phase_of(dump_.entries[i], tells_));
    }
    return least;
  }

  void add_transfer(Transfer made) {
    const Entry& entry = dump_.entries[made.entry];
    if (closes_batch(texts_.of(entry.name))) return;
    const auto& members = *members_[entry.group];
    const auto count = static_cast<std::int64_t>(members.size());
    if (entry.from < 0 || entry.to < 0 || entry.from >= count || entry.to >= count) {
      ++unnamed_[entry.group];
      return;
    }
    made.from = members[static_cast<std::size_t>(entry.from)];
    made.to = members[static_cast<std::size_t>(entry.to)];
    lines_[entry.group]->transfers.push_back(made);
  }

  /// torchcomms counts all groups together, so the operations of one are counted here.
  [[nodiscard]] bool numbers_by_count() const { return tells_.torchcomms; }

  void settle(Line& line, std::size_t group) {
    std::stable_sort(line.operations.begin(), line.operations.end(),
                     [](const Operation& a, const Operation& b) { return a.seq < b.seq; });
    if (!tells_.wrapped) return;
    if (numbers_by_count()) {
      line.uncounted = true;
      line.blind =
          "its ring has wrapped, and torchcomms counts the operations of all groups "
          "together";
    } else if (line.operations.empty()) {
      line.blind = "its ring has wrapped and holds no operation of this group";
    } else {
      const std::int64_t oldest = line.operations.front().seq;
      line.whole_from = oldest == reach_[group] ? oldest + 1 : oldest;
    }
  }

  const Dump& dump_;
  const Texts& texts_;
  const Tells tells_;
  std::vector<Line*> lines_;
  const std::vector<const std::vector<std::int64_t>*>& members_;
  std::vector<std::int64_t> counted_;
  std::vector<std::size_t> unnamed_;
  std::vector<std::int64_t> reach_;
};

/// Which groups there are, and which of them each dump's are.
class GroupFinder {
 public:
  explicit GroupFinder(const Job& job) : job_(job) {}

  std::vector<Group> find() {
    for (const Dump& dump : job_.dumps) {
      for (const DumpGroup& group : dump.groups) told_[group.name].insert(group.members);
    }
    std::vector<std::vector<std::size_t>> of_dump(job_.dumps.size());
    for (std::size_t d = 0; d < job_.dumps.size(); ++d) {
      for (const DumpGroup& group : job_.dumps[d].groups) {
        of_dump[d].push_back(place(group, job_.dumps[d].rank));
      }
    }
    infer_members(of_dump);
    add_lines(of_dump);
    for (std::size_t d = 0; d < job_.dumps.size(); ++d)
      sort(static_cast<std::uint32_t>(d), of_dump[d]);
    for (Group& group : groups_) {
      // Who is told of a group without being in it, and does nothing there, has no part in it.
      std::erase_if(group.lines, [&group](const Line& line) {
        return line.operations.empty() && line.transfers.empty() &&
               std::find(group.members.begin(), group.members.end(), line.rank) ==
                   group.members.end();
      });
      find_missing(group);
    }
    std::erase_if(groups_, [](const Group& group) {
      return std::all_of(group.lines.begin(), group.lines.end(),
                         [](const Line& line) {
                           return line.operations.empty() && line.transfers.empty();
                         }) &&
             group.unnamed_transfers == 0;
    });
    return std::move(groups_);
  }

 private:
  std::size_t place(const DumpGroup& group, std::int64_t rank) {
    Key key{group.name, group.members};
    // A dump that does not tell the members: those that another one tells, if only one does.
    if (key.second == 0) {
      std::vector<std::uint32_t> others;
      for (const std::uint32_t members : told_[group.name]) {
        const auto& all = job_.kept.members.of(members);
        if (std::find(all.begin(), all.end(), rank) != all.end()) others.push_back(members);
      }
      if (others.size() == 1) key.second = others.front();
    }
    const auto [found, added] = places_.emplace(key, groups_.size());
    if (added) {
      Group made;
      made.name = group.name;
      made.desc = group.desc;
      made.members = job_.kept.members.of(key.second);
      made.members_told = key.second != 0;
      groups_.push_back(std::move(made));
    }
    return found->second;
  }

  /// PyTorch's first group is of all ranks; of others those are members that use them.
  void infer_members(const std::vector<std::vector<std::size_t>>& of_dump) {
    for (std::size_t d = 0; d < of_dump.size(); ++d) {
      const Dump& dump = job_.dumps[d];
      for (const std::size_t g : of_dump[d]) {
        if (!groups_[g].members_told) groups_[g].members.push_back(dump.rank);
      }
    }
    const std::int64_t ranks = std::max(job_.world_size, job_.dumps.back().rank + 1);
    for (Group& group : groups_) {
      if (group.members_told) continue;
      if (job_.kept.texts.of(group.desc) == "default_pg") {
        group.members.clear();
        group.members_told = job_.world_size > 0;
        for (std::int64_t r = 0; r < ranks; ++r) group.members.push_back(r);
      }
      std::sort(group.members.begin(), group.members.end());
      group.members.erase(std::unique(group.members.begin(), group.members.end()),
                          group.members.end());
    }
  }

  void add_lines(const std::vector<std::vector<std::size_t>>& of_dump) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const std::int64_t rank : groups_[g].members) add_line(groups_[g], rank);
    }
    // A rank that uses a group without being told a member of it has a line as well.
    for (std::size_t d = 0; d < of_dump.size(); ++d) {
      for (const std::size_t g : of_dump[d]) {
        if (line_of(groups_[g], job_.dumps[d].rank) == nullptr)
          add_line(groups_[g], job_.dumps[d].rank);
      }
    }
  }

  void add_line(Group& group, std::int64_t rank) {
    const auto found =
        std::lower_bound(job_.dumps.begin(), job_.dumps.end(), rank,
                         [](const Dump& dump, std::int64_t wanted) { return dump.rank < wanted; });
    if (found == job_.dumps.end() || found->rank != rank) return;
    Line line;
    line.rank = rank;
    line.dump = static_cast<std::uint32_t>(found - job_.dumps.begin());
    if (what_wrapped(line.dump)) {
      line.blind = "its ring has wrapped and holds no operation of this group";
    }
    const auto after = std::lower_bound(group.lines.begin(), group.lines.end(), rank,
                                        [](const Line& l, std::int64_t r) { return l.rank < r; });
    if (after == group.lines.end() || after->rank != rank)
      group.lines.insert(after, std::move(line));
  }

  [[nodiscard]] bool what_wrapped(std::uint32_t dump) const {
    const auto& entries = job_.dumps[dump].entries;
    return !entries.empty() && entries.front().record_id > 0;
  }

  static Line* line_of(Group& group, std::int64_t rank) {
    const auto found = std::lower_bound(group.lines.begin(), group.lines.end(), rank,
                                        [](const Line& l, std::int64_t r) { return l.rank < r; });
    return found == group.lines.end() || found->rank != rank ? nullptr : &*found;
  }

  void sort(std::uint32_t dump, const std::vector<std::size_t>& groups) {
    std::vector<Line*> lines;
    std::vector<const std::vector<std::int64_t>*> members;
    for (const std::size_t g : groups) {
      lines.push_back(line_of(groups_[g], job_.dumps[dump].rank));
      lines.back()->blind.clear();
      members.push_back(&groups_[g].members);
    }
    DumpSorter sorter(job_, dump, std::move(lines), members);
    sorter.sort();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      groups_[groups[i]].unnamed_transfers += sorter.unnamed(i);
    }
  }

  void find_missing(Group& group) const {
    for (const std::int64_t rank : group.members) {
      if (line_of(group, rank) == nullptr) group.missing.push_back(rank);
    }
  }

  const Job& job_;
  std::map<std::uint32_t, std::set<std::uint32_t>> told_;
  std::map<Key, std::size_t> places_;
  std::vector<Group> groups_;
};

}  // namespace

std::string_view to_string(Phase phase) noexcept {
  static constexpr std::string_view kNames[] = {"enqueued", "started", "gave up", "over",
                                                "finished"};
  return kNames[static_cast<std::size_t>(phase)];
}

const Operation* Line::find(std::int64_t seq) const noexcept {
  const auto found =
      std::lower_bound(operations.begin(), operations.end(), seq,
                       [](const Operation& one, std::int64_t wanted) { return one.seq < wanted; });
  return found == operations.end() || found->seq != seq ? nullptr : &*found;
}

std::int64_t Line::newest_seq() const noexcept {
  return operations.empty() ? -1 : operations.back().seq;
}

Tells what_it_tells(const Dump& dump, const Texts& texts) {
  Tells tells;
  tells.torchcomms = !dump.entries.empty() && dump.status.empty();
  for (const Entry& entry : dump.entries) {
    const std::string_view backend = texts.of(entry.backend);
    const bool completed = entry.state == EntryState::completed || entry.completed_ns > 0;
    tells.starts |= entry.state == EntryState::started || entry.started_ns > 0;
    tells.ends |= completed || backend == "nccl" || backend == "xccl";
    tells.torchcomms &=
        texts.of(dump.groups[entry.group].desc) == backend && !entry.is_p2p && entry.p2p_seq == 0;
  }
  tells.wrapped = !dump.entries.empty() && dump.entries.front().record_id > 0;
  return tells;
}

std::string name_of(const Group& group, const Texts& texts) {
  const std::string name(texts.of(group.name));
  const std::string_view desc = texts.of(group.desc);
  if (desc.empty() || desc == "undefined" || desc == name) return name;
  return name + " (" + std::string(desc) + ")";
}

std::vector<Group> find_groups(const Job& job) {
  return GroupFinder(job).find();
}

}  // namespace ringmain::flight
