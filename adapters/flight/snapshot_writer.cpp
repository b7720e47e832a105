#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "adapters/flight/document_stream.hpp"
#include "adapters/flight/dump_words.hpp"
#include "adapters/flight/fixed_text.hpp"
#include "adapters/flight/of_snapshot.hpp"
#include "adapters/flight/portable_names.hpp"
#include "adapters/flight/snapshot.hpp"
#include "adapters/flight/tensor_runs.hpp"
#include "adapters/flight/transfer_group.hpp"

namespace ringmain::flight {
namespace {

/// What is longer than a pickle's memo takes is cut.
using OneText = FixedText<PickleMemo::kLongest>;

std::string_view text_of(OneText& line, std::int64_t number) noexcept {
  line += number;
  return line.view();
}

class DumpWriter {
 public:
  DumpWriter(const FlightSource& what, const FlightDump& how, ByteSink& to, PickleMemo& memo)
      : what_(what),
        how_(how),
        pickle_(how.format == DumpFormat::pickle),
        out_(to, how.format, memo) {}

  void write() {
    out_.open_dict();
    set("version", "2.10");
    set("comm_lib_version", "");
    if (how_.rank >= 0) set("rank", how_.rank);
    write_groups();
    const bool none = no_entries();
    if (pickle_ || !none) {
      out_.key("entries");
      out_.open_list(none);
      numbers_ = {};
      for (std::size_t i = 0; i < what_.entries(); ++i) {
        const std::int64_t number = number_of(i);
        if (is_written(what_.entry(i))) write_entry(what_.entry(i), number);
      }
      out_.close_list(none);
    }
    if (pickle_) set("left_out", left_out());
    out_.close_dict();
    out_.end();
  }

 private:
  void set(std::string_view key, std::string_view text) {
    out_.key(key);
    out_.text(text);
  }
  void set(std::string_view key, std::int64_t number) {
    out_.key(key);
    out_.whole(number);
  }
  /// What JSON has as text, as PyTorch writes it.
  void set_figure(std::string_view key, std::int64_t number) {
    if (pickle_) return set(key, number);
    OneText line;
    set(key, text_of(line, number));
  }
  void set_flag(std::string_view key, bool is_true) {
    out_.key(key);
    out_.boolean(is_true);
  }
  /// A time that may not be known.
  void set_time(std::string_view key, std::int64_t ns) {
    if (!pickle_ || ns != 0) return set(key, ns);
    out_.key(key);
    out_.none();
  }

  [[nodiscard]] bool is_wanted(const FlightEntry& entry) const {
    const bool over = entry.retired && entry.completed_ns != 0;
    return !over || how_.include_completed;
  }
  [[nodiscard]] bool is_written(const FlightEntry& entry) const {
    return is_wanted(entry) && !name_of(entry).empty();
  }
  /// What closes members that are there is not counted.
  [[nodiscard]] std::int64_t left_out() const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < what_.entries(); ++i) {
      const FlightEntry& entry = what_.entry(i);
      const bool has_members = i > 0 && what_.entry(i - 1).op_id == entry.op_id;
      count += is_wanted(entry) && !has_members && name_of(entry).empty();
    }
    return count;
  }
  [[nodiscard]] bool no_entries() const {
    for (std::size_t i = 0; i < what_.entries(); ++i) {
      if (is_written(what_.entry(i))) return false;
    }
    return true;
  }

  /// Two of one name are the last one of them, at the place of the first.
  [[nodiscard]] bool is_first(std::size_t at) const noexcept {
    std::size_t first = 0;
    while (what_.group(first).name != what_.group(at).name) ++first;
    return first == at;
  }
  [[nodiscard]] const FlightGroup& last_of_name(std::size_t at) const noexcept {
    std::size_t last = what_.groups() - 1;
    while (what_.group(last).name != what_.group(at).name) --last;
    return what_.group(last);
  }

  void write_groups() {
    const bool none = what_.groups() == 0;
    out_.key("pg_config");
    out_.open_dict(none);
    for (std::size_t i = 0; i < what_.groups(); ++i) {
      if (is_first(i)) write_config(last_of_name(i));
    }
    write_transfer_groups();
    out_.close_dict(none);
    out_.key("pg_status");
    out_.open_dict(none);
    for (std::size_t i = 0; i < what_.groups(); ++i) {
      OneText line;
      out_.key(text_of(line, static_cast<std::int64_t>(i)));
      write_figures(what_.figures(i));
    }
    out_.close_dict(none);
  }
  void write_config(const FlightGroup& group) {
    out_.key(group.name);
    out_.open_dict();
    set("name", group.name);
    set("desc", description_of(group));
    out_.key("ranks");
    write_ranks(group);
    out_.close_dict();
  }
  void write_figures(const FlightFigures& figures) {
    out_.open_dict();
    set_figure("last_enqueued_collective", figures.enqueued);
    set_figure("last_started_collective", figures.started);
    set_figure("last_completed_collective", figures.completed);
    set_figure("dropped_entries", figures.dropped);
    set_figure("whole_from_collective", figures.whole_from);
    out_.close_dict();
  }

  /// Is that an operation that a pickle has in a group of its two ranks? (transfer_group.hpp)
  [[nodiscard]] bool is_paired(const FlightEntry& entry) const {
    if (!pickle_ || !TransferNumbers::is_transfer(entry)) return false;
    const FlightGroup& group = what_.group(entry.group);
    const auto members = static_cast<std::int32_t>(
        group.ranks.empty() ? static_cast<std::size_t>(group.size) : group.ranks.size());
    return entry.from < members && entry.to < members;
  }
  /// Of a transfer, among those between the same two ranks; each entry once, in order.
  std::int64_t number_of(std::size_t at) {
    const auto entry_at = [this](std::size_t i) -> const FlightEntry& { return what_.entry(i); };
    return is_paired(entry_at(at)) ? numbers_.next(at, entry_at) : 0;
  }
  [[nodiscard]] static std::int32_t in_job(const FlightGroup& group, std::int32_t rank) {
    return group.ranks.empty() ? rank : group.ranks[static_cast<std::size_t>(rank)];
  }
  static OneText transfer_group_of(const FlightEntry& entry, const FlightGroup& group) {
    OneText name;
    name += group.name;
    name += " ";
    add_between(name, entry.from, entry.to);
    return name;
  }
  void write_transfer_groups() {
    numbers_ = {};
    for (std::size_t i = 0; i < what_.entries(); ++i) {
      if (number_of(i) != 1) continue;
      const FlightEntry& entry = what_.entry(i);
      const FlightGroup& group = what_.group(entry.group);
      const OneText name = transfer_group_of(entry, group);
      out_.key(name.view());
      out_.open_dict();
      set("name", name.view());
      set("desc", description_of(group));
      std::int64_t low = in_job(group, entry.from), high = in_job(group, entry.to);
      if (high < low) std::swap(low, high);
      OneText ranks, ends;
      ranks += "[";
      ranks += low;
      if (low != high) {
        ranks += ",";
        ranks += high;
      }
      ranks += "]";
      set("ranks", ranks.view());
      set(kTransfersOf, group.name);
      add_between(ends, entry.from, entry.to);
      set(kBetween, ends.view());
      out_.close_dict();
    }
  }

  /// torchcomms puts the backend there where nobody gave a description.
  static std::string_view description_of(const FlightGroup& group) noexcept {
    return group.description.empty() ? group.backend : group.description;
  }

  /// The text "[0,1,3]", piece by piece.
  template <class F>
  static void each_piece_of_ranks(const FlightGroup& group, F take) {
    const bool told = !group.ranks.empty();
    const std::size_t count = told ? group.ranks.size() : static_cast<std::size_t>(group.size);
    take("[");
    for (std::size_t i = 0; i < count; ++i) {
      OneText line;
      if (i != 0) line += ",";
      line += told ? std::int64_t{group.ranks[i]} : static_cast<std::int64_t>(i);
      take(line.view());
    }
    take("]");
  }
  void write_ranks(const FlightGroup& group) {
    std::size_t bytes = 0;
    each_piece_of_ranks(group, [&](std::string_view piece) { bytes += piece.size(); });
    if (bytes <= PickleMemo::kLongest) {
      OneText line;
      each_piece_of_ranks(group, [&](std::string_view piece) { line += piece; });
      return out_.text(line.view());
    }
    out_.open_text(bytes);
    each_piece_of_ranks(group, [&](std::string_view piece) { out_.add_to_text(piece); });
    out_.close_text();
  }

  /// "" for what the analyzer does not know, which a pickle leaves out.
  [[nodiscard]] std::string_view name_of(const FlightEntry& entry) const {
    const std::string_view name = entry.op.view();
    const bool closes = name == "batch_op_issue";
    if (!pickle_) return closes ? "coalesced" : name;
    if (closes) return "";  // its members are there
    if (entry.is_p2p) return TransferNumbers::is_transfer(entry) ? name : "";
    // Into lists of tensors, which the analyzer would take for whole ones.
    if (name == "all_gather_coalesced" &&
        tensors_in(what_.runs(entry.output)) != tensors_in(what_.runs(entry.input)))
      return "";
    // Only of tensors that are alike there is one for all of them, which the analyzer's rule wants.
    const bool unlike = (name == "all_gather" && differ_in(what_.runs(entry.output))) ||
                        (name == "reduce_scatter" && differ_in(what_.runs(entry.input)));
    return unlike ? "" : portable_name(name);
  }

  /// What is left out has no record id in a pickle either: the analyzer lays the ranks' side by
  /// side.
  std::uint64_t record_id(const FlightEntry& entry) {
    return pickle_ ? what_.entry(0).record_id + written_++ : entry.record_id;
  }

  /// `number`: of a transfer between its two ranks, else 0.
  void write_entry(const FlightEntry& entry, std::int64_t number) {
    const std::string_view name = name_of(entry);
    const FlightGroup& group = what_.group(entry.group);
    const bool paired = number != 0;
    out_.open_dict();
    set("record_id", static_cast<std::int64_t>(record_id(entry)));
    set("pg_id", static_cast<std::int64_t>(entry.group));
    out_.key("process_group");
    out_.open_pair();
    if (paired) {
      out_.text(transfer_group_of(entry, group).view());
    } else {
      out_.text(group.name);
    }
    out_.text(description_of(group));
    out_.close_pair();
    set("collective_seq_id", paired ? number : entry.sequence);
    const std::int64_t from = pickle_ && entry.is_p2p ? kTransfersFrom : 0;
    set("p2p_seq_id", (paired ? number : entry.transfer) + from);
    set("op_id", static_cast<std::int64_t>(entry.op_id));
    write_profiling_name(entry, group, name, paired);
    set("time_created_ns", entry.created_ns);
    if (entry.completed_ns != 0) {
      out_.key("duration_ms");
      out_.real(static_cast<double>(entry.duration_ns) / 1e6);
    }
    write_tensors(entry, name);
    set("state", word_of(entry.state));
    set_time("time_discovered_started_ns", entry.started_ns);
    set_time("time_discovered_completed_ns", entry.completed_ns);
    set_flag("retired", entry.retired);
    set("timeout_ms", entry.timeout_ms);
    set_flag("is_p2p", entry.is_p2p);
    OneText thread;
    set("thread_id", text_of(thread, entry.thread));
    set("thread_name", entry.thread_name.view());
    out_.close_dict();
  }

  void write_profiling_name(const FlightEntry& entry, const FlightGroup& group,
                            std::string_view name, bool paired) {
    OneText whole;
    // A colon would end it for the analyzer, which knows few backends.
    std::string_view backend = how_.backend.empty() ? prefix_of(group.backend) : how_.backend;
    for (std::size_t colon; (colon = backend.find(':')) != backend.npos;
         backend.remove_prefix(colon + 1)) {
      whole += backend.substr(0, colon);
      whole += "_";
    }
    whole += backend;
    whole += ":";
    whole += name;
    const bool sends = name == "send";
    if ((sends || name == "recv") && entry.from >= 0 && entry.to >= 0) {
      const WithinTwo ends = paired ? within_two(in_job(group, entry.from), in_job(group, entry.to))
                                    : WithinTwo{entry.from, entry.to};
      whole += " ";
      whole += sends ? ends.from : ends.to;
      whole += sends ? "->" : "<-";
      whole += sends ? ends.to : ends.from;
    }
    set("profiling_name", whole.view());
  }

  /// In a pickle lists of tensors of one size are one tensor, and a reduce has both sides.
  void write_tensors(const FlightEntry& entry, std::string_view name) {
    auto input = what_.runs(entry.input);
    auto output = what_.runs(entry.output);
    if (pickle_ && name == "reduce") {
      if (output.empty()) output = input;
      if (input.empty()) input = output;
    }
    const bool flat_in = pickle_ && name == "reduce_scatter";
    const bool flat_out = pickle_ && name == "all_gather";
    write_side("input_sizes", "input_dtypes", input, flat_in);
    write_side("output_sizes", "output_dtypes", output, flat_out);
  }

  void write_side(std::string_view sizes_key, std::string_view types_key,
                  std::span<const std::int64_t> runs, bool flat) {
    const std::size_t alike = flat ? alike_in(runs) : 0;
    out_.key(sizes_key);
    each_tensor(runs, alike, [&](const TensorRun& run) {
      out_.open_list(run.sizes.empty() && alike == 0);
      if (alike != 0) out_.whole(static_cast<std::int64_t>(alike));
      for (const std::int64_t size : run.sizes) out_.whole(size);
      out_.close_list(run.sizes.empty() && alike == 0);
    });
    out_.key(types_key);
    each_tensor(runs, alike,
                [&](const TensorRun& run) { out_.text(scalar_type(run.dtype.view())); });
  }
  /// A list of what `write` makes of each; of the first alone where they are as good as one.
  template <class F>
  void each_tensor(std::span<const std::int64_t> runs, std::size_t alike, F write) {
    out_.open_list(runs.empty());
    bool first = true;
    each_run(runs, [&](const TensorRun& run) {
      for (std::size_t i = 0; i < run.count && (first || alike == 0); ++i, first = false)
        write(run);
    });
    out_.close_list(runs.empty());
  }

  const FlightSource& what_;
  const FlightDump& how_;
  const bool pickle_;
  std::uint64_t written_ = 0;
  TransferNumbers numbers_;
  DocumentStream out_;
};

}  // namespace

void write_flight_dump(const FlightSource& what, const FlightDump& how, ByteSink& to,
                       PickleMemo& memo) {
  DumpWriter(what, how, to, memo).write();
}

std::string write_flight_dump(const FlightSource& what, const FlightDump& how) {
  StringSink to;
  const auto memo = std::make_unique<PickleMemo>();
  write_flight_dump(what, how, to, *memo);
  return std::move(to.text);
}

std::string write_flight_dump(const FlightSnapshot& what, const FlightDump& how) {
  return write_flight_dump(OfSnapshot(what), how);
}

}  // namespace ringmain::flight
