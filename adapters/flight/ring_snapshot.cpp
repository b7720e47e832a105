#include "adapters/flight/ring_snapshot.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "events/collective_life.hpp"

#include "adapters/flight/limits.hpp"
#include "adapters/flight/rings.hpp"
#include "adapters/flight/tensor_runs.hpp"

namespace ringmain::flight {
namespace {

template <class E>
std::optional<E> event_as(const RecordedEvent& recorded) {
  const E* const there = recorded.view().as<E>();
  if (there == nullptr) return std::nullopt;
  E copy;  // a file's event need not lie as an E must
  std::memcpy(static_cast<void*>(&copy), there, sizeof copy);
  return copy;
}

/// "0-3,8" is 0 1 2 3 8, "0-12/4" is 0 4 8 12. Empty for anything else.
std::vector<int> ranks_in(std::string_view text) {
  std::vector<int> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int& to) {
    const auto [after, bad] = std::from_chars(at, end, to);
    at = after;
    return bad == std::errc() && to >= 0;
  };
  while (at != end) {
    int first = 0, last = 0, step = 1;
    if (!number(first)) return {};
    last = first;
    if (at != end && *at == '-' && (++at, !number(last))) return {};
    if (at != end && *at == '/' && (++at, !number(step) || step == 0)) return {};
    if (last < first || static_cast<std::size_t>(last - first) > kMembersMax) return {};
    for (int rank = first; rank <= last; rank += step) ranks.push_back(rank);
    if (at != end && (*at++ != ',' || at == end)) return {};
  }
  return ranks;
}

class RingOperations {
 public:
  explicit RingOperations(const RingDump& dump) : dump_(dump) {}

  FlightSnapshot take() {
    std::vector<const RecordedEvent*> events;
    std::uint64_t overwritten = 0;
    for (const RecordedRing& ring : dump_.rings()) {
      overwritten += ring.overwritten;
      for (const RecordedEvent& one : ring.events)
        if (one.schema != nullptr) events.push_back(&one);
    }
    std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) {
      return a->stamp.time_ns < b->stamp.time_ns;
    });
    for (const RecordedEvent* const one : events) hear(*one);
    for (const OpenCollective& one : dump_.open()) add_open(one);
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const auto& a, const auto& b) { return a.created_ns < b.created_ns; });
    std::uint64_t id = overwritten;  // not 0: something before the first is gone
    for (FlightEntry& entry : entries_) {
      if (left_out_.contains(entry.op_id)) continue;
      entry.record_id = id++;
      told_.entries.push_back(entry);
    }
    return std::move(told_);
  }

 private:
  void hear(const RecordedEvent& one) {
    if (const auto issued = event_as<collective::Issued>(one)) return issue(one, *issued);
    if (const auto started = event_as<collective::Started>(one)) {
      if (FlightEntry* const entry = find(started->op_id)) start(*entry, one.stamp.time_ns);
    } else if (const auto completed = event_as<collective::Completed>(one)) {
      if (FlightEntry* const entry = find(completed->op_id))
        complete(*entry, one.stamp.time_ns, completed->duration_ns);
    } else if (const auto failed = event_as<collective::Failed>(one)) {
      if (FlightEntry* const entry = find(failed->op_id)) entry->retired = true;
      if (failed->how == collective::How::vetoed) left_out_.insert(failed->op_id);
    } else if (const auto group = event_as<collective::Group>(one)) {
      describe_group(*group);
    }
  }

  std::size_t group_at(std::string_view name) {
    const auto [at, first] = groups_.try_emplace(std::string(name), told_.groups.size());
    if (first) told_.groups.emplace_back().name = at->first;
    return at->second;
  }

  void describe_group(const collective::Group& said) {
    if (said.group == Name() || said.change == collective::GroupChange::split) return;
    const std::size_t at = group_at(said.group.view());
    FlightGroup& group = told_.groups[at];
    if (said.change == collective::GroupChange::ended) {
      if (group.rank == said.rank || group.rank < 0) ended_.insert(at);
      return;
    }
    begin_anew_if_ended(at);
    group.description = said.description.view();
    group.backend = said.backend.view();
    group.rank = said.rank;
    group.size = said.group_size;
    group.ranks = said.ranks.cut() ? std::vector<int>{} : ranks_in(said.ranks.view());
  }

  /// A name that comes again after its group's end is another group's: it counts from 1 and has
  /// members of its own, and what the first one did is compared with nobody's.
  void begin_anew_if_ended(std::size_t at) {
    if (ended_.erase(at) == 0) return;
    for (const FlightEntry& entry : entries_)
      if (entry.group == at && entry.retired) left_out_.insert(entry.op_id);
    FlightGroup anew;
    anew.name = told_.groups[at].name;
    told_.groups[at] = std::move(anew);
  }

  void issue(const RecordedEvent& one, const collective::Issued& said) {
    if (!at_.try_emplace(said.op_id, entries_.size()).second) return;  // two patterns record it
    FlightEntry entry;
    entry.group = group_at(said.group.view());
    begin_anew_if_ended(entry.group);
    FlightGroup& group = told_.groups[entry.group];
    group.rank = said.rank;
    group.size = said.group_size;
    if (group.backend.empty()) group.backend = said.backend.view();
    entry.op_id = said.op_id;
    entry.op = said.op;
    entry.sequence = static_cast<std::int64_t>(said.sequence);
    entry.created_ns = dump_.realtime_of(one.stamp.time_ns);
    entry.created_monotonic_ns = one.stamp.time_ns;
    entry.thread = said.thread;
    entry.thread_name = one.thread_name;
    const bool sends = said.op.view() == "send";
    entry.is_p2p = is_transfer(said.op.view());
    entry.timeout_ms = std::int64_t{said.timeout_s} * 1000;
    if (entry.is_p2p) {
      entry.transfer = said.p2p_sequence != 0 ? static_cast<std::int64_t>(said.p2p_sequence)
                                              : group.figures.transfers + 1;
      group.figures.transfers = entry.transfer;
      if (said.peer != collective::kNoRank) {  // a batch does not say its members
        entry.from = sends ? said.rank : said.peer;
        entry.to = sends ? said.peer : said.rank;
      }
    } else {
      group.figures.enqueued = std::max(group.figures.enqueued, entry.sequence);
    }
    add_elements(entry.input, said.in_elements, said.dtype);
    add_elements(entry.output, said.out_elements, said.dtype);
    entries_.push_back(entry);
  }
  static bool is_transfer(std::string_view op) {
    return op == "send" || op == "recv" || op == "batch_op_issue";
  }
  void add_elements(FlightTensors& to, std::uint64_t elements, Name dtype) {
    if (elements == 0) return;
    const auto size = static_cast<std::int64_t>(elements);
    std::array<std::int64_t, 2> words{};
    TensorRuns(words).add(dtype, {&size, 1});
    to = {told_.words.size(), 2};
    told_.words.insert(told_.words.end(), words.begin(), words.end());
  }

  void start(FlightEntry& entry, std::int64_t at_ns) {
    if (entry.state != FlightState::scheduled) return;
    entry.state = FlightState::started;
    entry.started_ns = dump_.realtime_of(at_ns);
    if (entry.is_p2p) return;
    std::int64_t& last = told_.groups[entry.group].figures.started;
    last = std::max(last, entry.sequence);
  }
  void complete(FlightEntry& entry, std::int64_t at_ns, std::int64_t duration_ns) {
    entry.state = FlightState::completed;
    entry.completed_ns = dump_.realtime_of(at_ns);
    entry.duration_ns = duration_ns;
    entry.retired = true;
    if (entry.is_p2p) return;
    std::int64_t& last = told_.groups[entry.group].figures.completed;
    last = std::max(last, entry.sequence);
  }

  /// Its beginning was overwritten.
  void add_open(const OpenCollective& one) {
    if (!at_.try_emplace(one.id, entries_.size()).second) return;
    FlightEntry entry;
    entry.group = group_at(one.group);
    entry.op_id = one.id;
    entry.op = Name(one.op);
    entry.sequence = static_cast<std::int64_t>(one.sequence);
    entry.created_ns = dump_.realtime_of(one.time_ns);
    entry.created_monotonic_ns = one.time_ns;
    entry.thread = static_cast<std::int32_t>(one.thread);
    entry.thread_name = one.thread_name;
    entry.is_p2p = is_transfer(one.op);
    entries_.push_back(entry);
  }

  FlightEntry* find(std::uint64_t op_id) {
    const auto found = at_.find(op_id);
    return found == at_.end() ? nullptr : &entries_[found->second];
  }

  const RingDump& dump_;
  FlightSnapshot told_;
  std::vector<FlightEntry> entries_;
  std::unordered_map<std::uint64_t, std::size_t> at_;  // of entries_, by op_id
  /// Their backends were never called, or they are of a group that another has the name of now.
  std::unordered_set<std::uint64_t> left_out_;
  std::unordered_set<std::size_t> ended_;  // groups
  std::unordered_map<std::string, std::size_t> groups_;
};

/// The launcher's, else that of the largest group, which is the world's in a program with one.
std::int64_t rank_of(const RingDump& dump, const FlightSnapshot& operations) {
  const auto& head = dump.file().header;
  const std::string_view launcher(head.launcher.data(),
                                  ::strnlen(head.launcher.data(), head.launcher.size()));
  if (launcher != "none" && !launcher.empty()) return head.rank;
  std::int64_t rank = -1;
  std::int32_t size = 0;
  for (const FlightGroup& group : operations.groups) {
    if (group.rank < 0 || group.size <= size) continue;
    rank = group.rank;
    size = group.size;
  }
  return rank;
}

/// Who is in a group that covers the world needs nobody's word.
void name_members(const RingDump& dump, FlightSnapshot& operations) {
  for (FlightGroup& group : operations.groups) {
    const bool world =
        group.size > 0 && static_cast<std::uint32_t>(group.size) == dump.file().header.world_size;
    if (group.ranks.empty() && !world) group.size = 0;  // a dump then lists none
  }
}

}  // namespace

bool begins_like_a_ring(std::string_view bytes) noexcept {
  const auto& magic = engine::flight::kMagic;
  return bytes.starts_with(std::string_view(magic.data(), magic.size()));
}

Result<RingSnapshot> snapshot_of_ring(const std::string& path, std::uint64_t bytes_max) {
  auto read = RingDump::read(path, bytes_max);
  if (!read) return read.error();
  const RingDump& dump = read.value();
  RingSnapshot told;
  told.operations = RingOperations(dump).take();
  told.rank = rank_of(dump, told.operations);
  name_members(dump, told.operations);
  if (dump.last_ns() != 0) told.alive_ns = dump.realtime_of(dump.last_ns());
  if (const auto& clocks = dump.file().clocks; !clocks.empty()) {
    told.began_ns = clocks.front().realtime_ns;
    told.alive_ns = std::max(told.alive_ns, clocks.back().realtime_ns);
  }
  told.living = dump.file().living == engine::flight::Living::yes;
  return told;
}

}  // namespace ringmain::flight
