#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "adapters/flight/convert.hpp"
#include "adapters/flight/portable_names.hpp"
#include "adapters/flight/transfer_group.hpp"

namespace ringmain::flight {
namespace {

using Kind = Value::Kind;

class Merger {
 public:
  Merger(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
         const MergePlan& plan, const MergeOptions& options)
      : document_(document),
        job_(job),
        dump_(job.dumps[dump]),
        verdict_(verdict),
        plan_(plan),
        options_(options),
        numbers_(dump_.entries.size(), -1),
        transfers_(dump_.entries.size(), nullptr),
        closing_(dump_.entries.size()),
        closes_members_(dump_.entries.size(), false),
        groups_(dump_.groups.size(), nullptr),
        lines_(dump_.groups.size(), nullptr) {
    std::iota(closing_.begin(), closing_.end(), 0u);
    for (const Group& group : verdict_.groups) {
      const auto line = std::find_if(group.lines.begin(), group.lines.end(),
                                     [dump](const Line& one) { return one.dump == dump; });
      if (line == group.lines.end()) continue;
      for (std::size_t i = 0; i < dump_.groups.size(); ++i) {
        const bool unused = line->operations.empty() && line->transfers.empty();
        // Another group of that name, which this rank does not use.
        if (dump_.groups[i].name != group.name || (unused && groups_[i] != nullptr)) continue;
        groups_[i] = &group;
        lines_[i] = &*line;
      }
      for (const Operation& operation : line->operations) number(operation);
      std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;
      for (const Transfer& transfer : line->transfers) {
        if (line->rank != (MergePlan::sends(job_, dump_, transfer) ? transfer.from : transfer.to))
          continue;
        transfers_[transfer.entry] = &transfer;
        close(transfer.entry, transfer.closing);
        numbers_[transfer.entry] = ++counts[{transfer.from, transfer.to}];
      }
    }
  }

  Merged merge() {
    const Value* entries = document_.find(document_.root, "entries");
    if (entries != nullptr)
      all_.assign(document_.items(*entries).begin(), document_.items(*entries).end());
    const Value kept = document_.make(Kind::list);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!keeps(i)) continue;
      rewrite(all_[i], i);
      document_.items_of(kept).push_back(all_[i]);
    }
    document_.set(document_.root, "entries", kept);
    document_.set(document_.root, "rank", Value::of(dump_.rank));
    write_groups();
    return merged_;
  }

 private:
  /// Of two neighbours by one number the analyzer makes a batch, of which it understands none: the
  /// members of one are operations of their own, numbered within it above all others.
  void number(const Operation& operation) {
    const bool closed = operation.is_batch() && is_closing(dump_.entries[operation.last]);
    for (std::uint32_t e = operation.first; e <= operation.last; ++e) {
      numbers_[e] = operation.seq + (e - operation.first) * kMembersFrom;
      close(e, closed ? operation.last : e);
    }
  }
  void close(std::uint32_t entry, std::uint32_t closing) {
    closing_[entry] = closing;
    if (closing != entry) closes_members_[closing] = true;
  }
  [[nodiscard]] bool is_closing(const Entry& entry) const {
    return job_.kept.texts.of(entry.name).ends_with("coalesced");
  }

  bool keeps(std::size_t i) {
    if (closes_members_[i]) return false;  // they are there
    std::size_t Merged::*const why = left_out(i)  ? &Merged::left_out
                                     : trimmed(i) ? &Merged::trimmed
                                     : later(i)   ? &Merged::later
                                                  : nullptr;
    if (why != nullptr) ++(merged_.*why);
    return why == nullptr;
  }

  /// It has no name that the analyzer knows, or no number by which it could be compared.
  [[nodiscard]] bool left_out(std::size_t i) const {
    const Entry& entry = dump_.entries[i];
    if (entry.is_p2p) return transfers_[i] == nullptr;  // nobody says with whom
    if (numbers_[i] < 0) return true;
    const std::string_view name = job_.kept.texts.of(entry.name);
    if (!options_.rename) return false;
    const bool unlike = (name == "all_gather" && !are_alike(entry.outputs)) ||
                        (name == "reduce_scatter" && !are_alike(entry.inputs));
    return unlike || portable_name(name).empty();
  }
  /// "[[3,4],[3,4]]": only such tensors can be one, as the analyzer's rule wants it.
  [[nodiscard]] bool are_alike(const Tensors& tensors) const {
    std::string_view sizes = job_.kept.texts.of(tensors.sizes);
    if (sizes.size() < 4) return true;
    sizes = sizes.substr(1, sizes.size() - 2);
    const std::string_view first = sizes.substr(0, sizes.find(']') + 1);
    for (std::size_t at = 0; at < sizes.size(); at += first.size() + 1) {
      if (sizes.substr(at, first.size()) != first) return false;
    }
    return true;
  }
  /// What several ranks have no common number for cannot be compared, least of all by the analyzer.
  [[nodiscard]] bool trimmed(std::size_t i) const {
    const Entry& entry = dump_.entries[i];
    if (entry.is_p2p)
      return MergePlan::has_wrapped(dump_) ||
             plan_.of(*groups_[entry.group], *transfers_[i]).wrapped;
    const Line* line = lines_[entry.group];
    const bool whole = line != nullptr && line->blind.empty() && !any_blind(*groups_[entry.group]);
    return !whole || numbers_[i] % kMembersFrom < verdict_.trimmed_to[number_of(entry.group)];
  }
  /// Some dumps were made before it, in a job in which that is no fault.
  [[nodiscard]] bool later(std::size_t i) const {
    const Entry& entry = dump_.entries[i];
    if (entry.is_p2p) return numbers_[i] > plan_.of(*groups_[entry.group], *transfers_[i]).until;
    return numbers_[i] % kMembersFrom >= plan_.until[number_of(entry.group)];
  }
  [[nodiscard]] std::size_t number_of(std::uint32_t group) const {
    return static_cast<std::size_t>(groups_[group] - verdict_.groups.data());
  }
  [[nodiscard]] static bool any_blind(const Group& group) {
    return std::any_of(group.lines.begin(), group.lines.end(),
                       [](const Line& line) { return !line.blind.empty(); });
  }

  void rewrite(const Value& entry, std::size_t i) {
    const Entry& typed = dump_.entries[i];
    document_.set(entry, "record_id", Value::of(static_cast<std::int64_t>(merged_.entries++)));
    document_.set(entry, "collective_seq_id", Value::of(numbers_[i]));
    static constexpr std::string_view kLists[] = {"input_sizes", "input_dtypes", "output_sizes",
                                                  "output_dtypes"};
    for (const std::string_view key : kLists) {
      if (document_.find(entry, key) == nullptr)
        document_.set(entry, key, document_.make(Kind::list));
    }
    if (document_.find(entry, "is_p2p") == nullptr)
      document_.set(entry, "is_p2p", Value::of(false));
    for (const std::string_view key : {"p2p_seq_id", "time_created_ns"}) {
      if (document_.find(entry, key) == nullptr)
        document_.set(entry, key, Value::of(std::int64_t{0}));
    }
    if (closing_[i] != i) copy_state(entry, all_[closing_[i]]);
    if (typed.is_p2p) {
      make_comparable(entry, typed, i);
    } else if (options_.rename) {
      rename(entry, typed);
    }
  }

  /// Of a batch only the entry that closes it is followed to its end.
  void copy_state(const Value& entry, const Value& closing) {
    static constexpr std::string_view kState[] = {"state", "retired", "duration_ms",
                                                  "time_discovered_started_ns",
                                                  "time_discovered_completed_ns"};
    for (const std::string_view key : kState) {
      if (const Value* of = document_.find(closing, key)) document_.set(entry, key, Value(*of));
    }
  }

  /// A send or receive lies in the group of its two ranks.
  void make_comparable(const Value& entry, const Entry& typed, std::size_t i) {
    const Transfer& transfer = *transfers_[i];
    const Group& group = *groups_[typed.group];
    const std::string name = transfer_group(job_.kept.texts.of(group.name), typed.from, typed.to);
    twos_.emplace(name, &transfer);
    document_.set(entry, "p2p_seq_id", Value::of(numbers_[i] + kTransfersFrom));
    const Value in = document_.make(document_.find(entry, "process_group")->kind);
    const Value both[] = {document_.keep(name), Value::of(job_.kept.texts.of(group.desc))};
    document_.items_of(in).assign(std::begin(both), std::end(both));
    document_.set(entry, "process_group", in);
    const WithinTwo ends = within_two(transfer.from, transfer.to);
    const auto from = std::to_string(ends.from), to = std::to_string(ends.to);
    const std::string backend =
        options_.rename ? options_.backend : std::string(job_.kept.texts.of(typed.backend));
    const bool sent = MergePlan::sends(job_, dump_, transfer);
    document_.set(entry, "profiling_name",
                  document_.keep(backend + (sent ? ":send " + from + "->" + to
                                                 : ":recv " + to + "<-" + from)));
  }

  void rename(const Value& entry, const Entry& typed) {
    const std::string_view name = portable_name(job_.kept.texts.of(typed.name));
    document_.set(entry, "profiling_name",
                  document_.keep(options_.backend + ":" + std::string(name)));
    if (name == "all_gather") flatten(entry, "output_sizes", "output_dtypes");
    if (name == "reduce_scatter") flatten(entry, "input_sizes", "input_dtypes");
    if (name == "reduce") mirror(entry);
  }

  /// A list of tensors becomes one, as PyTorch records it: [count, sizes of each].
  void flatten(const Value& entry, std::string_view sizes_key, std::string_view types_key) {
    const Value sizes = *document_.find(entry, sizes_key);
    const auto tensors = document_.items(sizes);
    if (tensors.size() < 2) return;
    const auto first = document_.items(tensors[0]);
    std::vector<Value> made{Value::of(static_cast<std::int64_t>(tensors.size()))};
    for (const Value& tensor : tensors) {
      const auto mine = document_.items(tensor);
      const bool alike =
          std::equal(mine.begin(), mine.end(), first.begin(), first.end(),
                     [](const Value& a, const Value& b) { return a.whole == b.whole; });
      if (!alike) return;  // of different sizes: there is no one tensor for them
    }
    made.insert(made.end(), first.begin(), first.end());
    const Value tensor = document_.make(Kind::list);
    document_.items_of(tensor) = std::move(made);
    const Value list = document_.make(Kind::list);
    document_.items_of(list).push_back(tensor);
    document_.set(entry, sizes_key, list);
    const auto types = document_.items(*document_.find(entry, types_key));
    if (types.size() < 2) return;
    const Value type = types[0];
    const Value one = document_.make(Kind::list);
    document_.items_of(one).push_back(type);
    document_.set(entry, types_key, one);
  }

  /// The analyzer wants both sides of a reduce on all ranks.
  void mirror(const Value& entry) {
    const bool no_output = document_.items(*document_.find(entry, "output_sizes")).empty();
    const bool no_input = document_.items(*document_.find(entry, "input_sizes")).empty();
    if (no_output == no_input) return;
    for (const std::string_view what : {"_sizes", "_dtypes"}) {
      const std::string full = (no_output ? "input" : "output") + std::string(what);
      const std::string empty = (no_output ? "output" : "input") + std::string(what);
      const Value copied = *document_.find(entry, full);
      document_.set(entry, empty, copied);
    }
  }

  void write_groups() {
    const Value config = document_.make(Kind::dict);
    for (const Group* group : groups_) {
      if (group == nullptr) continue;
      const Value one = document_.make(Kind::dict);
      document_.set(one, "name", Value::of(job_.kept.texts.of(group->name)));
      document_.set(one, "desc", Value::of(job_.kept.texts.of(group->desc)));
      std::string ranks;
      for (const std::int64_t rank : group->members) {
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
      }
      document_.set(one, "ranks", document_.keep("[" + ranks + "]"));
      document_.set(config, job_.kept.texts.of(group->name), one);
    }
    for (const auto& [name, transfer] : twos_) write_two(config, name, *transfer);
    document_.set(document_.root, "pg_config", config);
  }
  void write_two(const Value& config, const std::string& name, const Transfer& transfer) {
    const Entry& entry = dump_.entries[transfer.entry];
    const Group& group = *groups_[entry.group];
    const std::int64_t low = std::min(transfer.from, transfer.to);
    const std::int64_t high = std::max(transfer.from, transfer.to);
    const Value one = document_.make(Kind::dict);
    const Value text = document_.keep(name);
    document_.set(one, "name", text);
    document_.set(one, "desc", Value::of(job_.kept.texts.of(group.desc)));
    document_.set(one, "ranks",
                  document_.keep("[" + std::to_string(low) +
                                 (low == high ? "" : ", " + std::to_string(high)) + "]"));
    document_.set(one, kTransfersOf, Value::of(job_.kept.texts.of(group.name)));
    document_.set(one, kBetween, document_.keep(between(entry.from, entry.to)));
    document_.set(config, text.str(), one);
  }

  Document& document_;
  const Job& job_;
  const Dump& dump_;
  const Verdict& verdict_;
  const MergePlan& plan_;
  const MergeOptions& options_;
  std::vector<Value> all_;                       // the entries
  std::vector<std::int64_t> numbers_;            // of each entry, in its group or its direction
  std::vector<const Transfer*> transfers_;       // by entry
  std::vector<std::uint32_t> closing_;           // the entry whose state counts
  std::vector<bool> closes_members_;             // of a batch, which are there
  std::map<std::string, const Transfer*> twos_;  // groups of two that are written, one of theirs
  std::vector<const Group*> groups_;             // of the job, by the dump's own number
  std::vector<const Line*> lines_;
  Merged merged_;
};

}  // namespace

Merged make_comparable(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
                       const MergePlan& plan, const MergeOptions& options) {
  return Merger(document, job, dump, verdict, plan, options).merge();
}

}  // namespace ringmain::flight
