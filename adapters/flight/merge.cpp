#include <algorithm>

#include "adapters/flight/convert.hpp"
#include "adapters/flight/portable_names.hpp"

namespace ringmain::flight {
namespace {

using Kind = Value::Kind;

class Merger {
 public:
  Merger(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
         const MergeOptions& options)
      : document_(document),
        job_(job),
        dump_(job.dumps[dump]),
        verdict_(verdict),
        options_(options),
        numbers_(dump_.entries.size(), -1),
        groups_(dump_.groups.size(), nullptr),
        lines_(dump_.groups.size(), nullptr) {
    for (const Group& group : verdict_.groups) {
      const auto line = std::find_if(group.lines.begin(), group.lines.end(),
                                     [dump](const Line& one) { return one.dump == dump; });
      if (line == group.lines.end()) continue;
      for (std::size_t i = 0; i < dump_.groups.size(); ++i) {
        if (dump_.groups[i].name != group.name) continue;
        groups_[i] = &group;
        lines_[i] = &*line;
      }
      for (const Operation& operation : line->operations) {
        for (std::uint32_t e = operation.first; e <= operation.last; ++e)
          numbers_[e] = operation.seq;
      }
    }
  }

  Merged merge() {
    const Value* entries = document_.find(document_.root, "entries");
    const std::vector<Value> all = entries == nullptr
                                       ? std::vector<Value>()
                                       : std::vector<Value>(document_.items(*entries).begin(),
                                                            document_.items(*entries).end());
    const Value kept = document_.make(Kind::list);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!keeps(i)) continue;
      rewrite(all[i], i);
      document_.items_of(kept).push_back(all[i]);
    }
    document_.set(document_.root, "entries", kept);
    document_.set(document_.root, "rank", Value::of(dump_.rank));
    write_groups();
    return merged_;
  }

 private:
  bool keeps(std::size_t i) {
    const Entry& entry = dump_.entries[i];
    const Line* line = lines_[entry.group];
    const bool wrapped = dump_.entries.front().record_id > 0;
    // What several ranks have no common number for cannot be compared, least of all by the
    // analyzer.
    const bool whole = line != nullptr && line->blind.empty() && !any_blind(*groups_[entry.group]);
    const bool trimmed =
        entry.is_p2p ? wrapped : !whole || (numbers_[i] >= 0 && numbers_[i] < from(entry.group));
    if (trimmed) {
      ++merged_.trimmed;
      return false;
    }
    const bool named = !portable_name(job_.kept.texts.of(entry.name)).empty();
    const bool numbered = entry.is_p2p ? entry.from >= 0 || is_closing(entry) : numbers_[i] >= 0;
    if ((options_.rename && !named) || !numbered) {
      ++merged_.left_out;
      return false;
    }
    return true;
  }

  [[nodiscard]] bool is_closing(const Entry& entry) const {
    return job_.kept.texts.of(entry.name).ends_with("coalesced");
  }
  [[nodiscard]] static bool any_blind(const Group& group) {
    return std::any_of(group.lines.begin(), group.lines.end(),
                       [](const Line& line) { return !line.blind.empty(); });
  }
  [[nodiscard]] std::int64_t from(std::uint32_t group) const {
    return verdict_.trimmed_to[static_cast<std::size_t>(groups_[group] - verdict_.groups.data())];
  }

  void rewrite(const Value& entry, std::size_t i) {
    const Entry& typed = dump_.entries[i];
    document_.set(entry, "record_id", Value::of(static_cast<std::int64_t>(merged_.entries++)));
    if (typed.is_p2p) {
      document_.set(entry, "p2p_seq_id", Value::of(typed.p2p_seq + kTransfersFrom));
    } else {
      document_.set(entry, "collective_seq_id", Value::of(numbers_[i]));
    }
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
    if (options_.rename) rename(entry, typed);
  }

  void rename(const Value& entry, const Entry& typed) {
    const std::string_view name = portable_name(job_.kept.texts.of(typed.name));
    std::string whole = options_.backend + ":" + std::string(name);
    const bool sends = name == "send";
    if (typed.from >= 0) {
      whole += " " + std::to_string(sends ? typed.from : typed.to) + (sends ? "->" : "<-") +
               std::to_string(sends ? typed.to : typed.from);
    }
    document_.set(entry, "profiling_name", document_.keep(std::move(whole)));
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
    document_.set(document_.root, "pg_config", config);
  }

  Document& document_;
  const Job& job_;
  const Dump& dump_;
  const Verdict& verdict_;
  const MergeOptions& options_;
  std::vector<std::int64_t> numbers_;
  std::vector<const Group*> groups_;  // of the job, by the dump's own number
  std::vector<const Line*> lines_;
  Merged merged_;
};

}  // namespace

Merged make_comparable(Document& document, const Job& job, std::size_t dump, const Verdict& verdict,
                       const MergeOptions& options) {
  return Merger(document, job, dump, verdict, options).merge();
}

}  // namespace ringmain::flight
