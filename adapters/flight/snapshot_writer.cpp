#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "adapters/flight/document_stream.hpp"
#include "adapters/flight/fixed_text.hpp"
#include "adapters/flight/portable_names.hpp"
#include "adapters/flight/snapshot.hpp"
#include "adapters/flight/tensor_runs.hpp"
#include "adapters/flight/transfer_group.hpp"

namespace ringmain::flight {
namespace {

/// PyTorch's words for element types.
std::string_view scalar_type(std::string_view dtype) noexcept {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"float32", "Float"},
      {"float64", "Double"},
      {"float16", "Half"},
      {"bfloat16", "BFloat16"},
      {"int64", "Long"},
      {"int32", "Int"},
      {"int16", "Short"},
      {"int8", "Char"},
      {"uint8", "Byte"},
      {"uint16", "UInt16"},
      {"uint32", "UInt32"},
      {"uint64", "UInt64"},
      {"bool", "Bool"},
      {"complex64", "ComplexFloat"},
      {"complex128", "ComplexDouble"},
      {"float8_e4m3fn", "Float8_e4m3fn"},
      {"float8_e5m2", "Float8_e5m2"},
      {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
      {"float8_e5m2fnuz", "Float8_e5m2fnuz"}};
  const auto* const found = std::find_if(std::begin(kWords), std::end(kWords),
                                         [dtype](const auto& one) { return one.first == dtype; });
  return found == std::end(kWords) ? dtype : found->second;
}

std::string_view word_of(FlightState state) noexcept {
  constexpr std::string_view kWords[] = {"scheduled", "started", "completed"};
  return kWords[static_cast<std::size_t>(state)];
}

/// Before the colon of names: what every release of the analyzer since 2.13 takes.
std::string_view prefix_of(std::string_view backend) noexcept {
  static constexpr std::string_view kKnown[] = {"nccl", "xccl", "ncclx", "gloo",
                                                "hccl", "rccl", "mccl",  "rcclx"};
  const bool known = std::find(std::begin(kKnown), std::end(kKnown), backend) != std::end(kKnown);
  return known ? backend : "nccl";
}

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
      for (std::size_t i = 0; i < what_.entries(); ++i) {
        if (is_written(what_.entry(i))) write_entry(what_.entry(i));
      }
      out_.close_list(none);
    }
    out_.close_dict();
    out_.end();
    const Value entries = document_.make(Kind::list);
    std::int64_t left_out = 0;
    numbers_ = {};
    for (std::size_t i = 0; i < what_.entries.size(); ++i) {
      const FlightEntry& entry = what_.entries[i];
      const std::int64_t number = number_of(i);
      const bool over = entry.retired && entry.completed_ns != 0;
      if (over && !how_.include_completed) continue;
      const std::string_view name = name_of(entry);
      if (name.empty()) {
        const bool has_members = i > 0 && what_.entries[i - 1].op_id == entry.op_id;
        left_out += !has_members;  // else they are there, and it only closes them
        continue;
      }
      const Value made = write_entry(entry, name, number);  // first: it moves containers
      document_.items_of(entries).push_back(made);
    }
    if (pickle_) set(document_.root, "left_out", Value::of(left_out));
    if (pickle_ || !document_.items(entries).empty()) set(document_.root, "entries", entries);
    return pickle_ ? to_pickle(document_) : to_json(document_);
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

  [[nodiscard]] bool is_written(const FlightEntry& entry) const {
    const bool over = entry.retired && entry.completed_ns != 0;
    return (!over || how_.include_completed) && !name_of(entry).empty();
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
    write_transfer_groups(config);
    set(document_.root, "pg_config", config);
    set(document_.root, "pg_status", status);
  }

  /// Is that an operation that a pickle has in a group of its two ranks? (transfer_group.hpp)
  [[nodiscard]] bool is_paired(const FlightEntry& entry) const {
    if (!pickle_ || !TransferNumbers::is_transfer(entry)) return false;
    const FlightGroup& group = what_.groups[entry.group];
    const auto members = static_cast<std::int32_t>(
        group.ranks.empty() ? static_cast<std::size_t>(group.size) : group.ranks.size());
    return entry.from < members && entry.to < members;
  }
  /// Of a transfer, among those between the same two ranks; each entry once, in order.
  std::int64_t number_of(std::size_t at) {
    const auto entry_at = [this](std::size_t i) -> const FlightEntry& { return what_.entries[i]; };
    return is_paired(entry_at(at)) ? numbers_.next(at, entry_at) : 0;
  }
  [[nodiscard]] static std::int32_t in_job(const FlightGroup& group, std::int32_t rank) {
    return group.ranks.empty() ? rank : group.ranks[static_cast<std::size_t>(rank)];
  }
  void write_transfer_groups(const Value& config) {
    numbers_ = {};
    for (std::size_t i = 0; i < what_.entries.size(); ++i) {
      if (number_of(i) != 1) continue;
      const FlightEntry& entry = what_.entries[i];
      const FlightGroup& group = what_.groups[entry.group];
      const std::string name = transfer_group(group.name, entry.from, entry.to);
      std::int32_t low = in_job(group, entry.from), high = in_job(group, entry.to);
      if (high < low) std::swap(low, high);
      const Value one = document_.make(Kind::dict);
      set(one, "name", text(name));
      set(one, "desc", text(description_of(group)));
      set(one, "ranks",
          text("[" + std::to_string(low) + (low == high ? "" : "," + std::to_string(high)) + "]"));
      set(one, kTransfersOf, text(group.name));
      set(one, kBetween, text(between(entry.from, entry.to)));
      document_.set(config, text(name).str(), one);
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
    if (closes) return "coalesced";
    const bool transfer = name == "send" || name == "recv";
    if (transfer && (entry.from < 0 || entry.to < 0)) return "";
    // Into lists of tensors, which the analyzer would take for whole ones.
    if (name == "all_gather_coalesced" && entry.output.sizes.size() != entry.input.sizes.size())
      return "";
    return portable_name(name);
  }

  void write_entry(const FlightEntry& entry) {
    const std::string_view name = name_of(entry);
    const FlightGroup& group = what_.group(entry.group);
    out_.open_dict();
    set("record_id", static_cast<std::int64_t>(entry.record_id));
    set("pg_id", static_cast<std::int64_t>(entry.group));
    out_.key("process_group");
    out_.open_pair();
    out_.text(group.name);
    out_.text(description_of(group));
    out_.close_pair();
    set("collective_seq_id", entry.sequence);
    const std::int64_t from = pickle_ && entry.is_p2p ? kTransfersFrom : 0;
    set("p2p_seq_id", entry.transfer + from);
    set("op_id", static_cast<std::int64_t>(entry.op_id));
    write_profiling_name(entry, group, name);
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
    if (closes) return "";  // its members are there
    if (entry.is_p2p) return TransferNumbers::is_transfer(entry) ? name : "";
    const bool unlike = (name == "all_gather" && !are_alike(entry.output)) ||
                        (name == "reduce_scatter" && !are_alike(entry.input));
    return unlike ? "" : portable_name(name);
  }
  /// Only then is there one tensor for all of them, which the analyzer's rule wants.
  [[nodiscard]] static bool are_alike(const FlightTensors& tensors) {
    const auto& sizes = tensors.sizes;
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](const auto& one) { return one == sizes.front(); });
  }

  /// What is left out has no record id in a pickle either: the analyzer lays the ranks' side by
  /// side.
  std::uint64_t record_id(const FlightEntry& entry) {
    if (!pickle_) return entry.record_id;
    return what_.entries.front().record_id + written_++;
  }

  Value write_entry(const FlightEntry& entry, std::string_view name, std::int64_t number) {
    const FlightGroup& group = what_.groups[entry.group];
    const Value one = document_.make(Kind::dict);
    set(one, "record_id", whole(record_id(entry)));
    set(one, "pg_id", whole(entry.group));
    const Value in = document_.make(pickle_ ? Kind::tuple : Kind::list);
    const bool paired = number != 0;
    document_.items_of(in) = {
        text(paired ? transfer_group(group.name, entry.from, entry.to) : group.name),
        text(description_of(group))};
    set(one, "process_group", in);
    set(one, "collective_seq_id", Value::of(paired ? number : entry.sequence));
    const std::int64_t from = pickle_ && entry.is_p2p ? kTransfersFrom : 0;
    set(one, "p2p_seq_id", Value::of((paired ? number : entry.transfer) + from));
    set(one, "op_id", whole(entry.op_id));
    set(one, "profiling_name", document_.keep(profiling_name(entry, group, name, paired)));
    set(one, "time_created_ns", Value::of(entry.created_ns));
    if (entry.completed_ns != 0)
      set(one, "duration_ms", Value::of(static_cast<double>(entry.duration_ns) / 1e6));
    write_tensors(one, entry, name);
    set(one, "state", Value::of(word_of(entry.state)));
    set(one, "time_discovered_started_ns", time(entry.started_ns));
    set(one, "time_discovered_completed_ns", time(entry.completed_ns));
    set(one, "retired", Value::of(entry.retired));
    set(one, "timeout_ms", Value::of(entry.timeout_ms));
    set(one, "is_p2p", Value::of(entry.is_p2p));
    set(one, "thread_id", document_.keep(std::to_string(entry.thread)));
    set(one, "thread_name", text(entry.thread_name));
    return one;
  }

  void write_profiling_name(const FlightEntry& entry, const FlightGroup& group,
                            std::string_view name) {
    OneText whole;
  std::string profiling_name(const FlightEntry& entry, const FlightGroup& group,
                             std::string_view name, bool paired) const {
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
      whole += " ";
      whole += std::int64_t{sends ? entry.from : entry.to};
      whole += sends ? "->" : "<-";
      whole += std::int64_t{sends ? entry.to : entry.from};
      const WithinTwo ends = paired ? within_two(in_job(group, entry.from), in_job(group, entry.to))
                                    : WithinTwo{entry.from, entry.to};
      whole += " " + std::to_string(sends ? ends.from : ends.to) + (sends ? "->" : "<-") +
               std::to_string(sends ? ends.to : ends.from);
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
  /// More than one, and all of one size: how many. Else 0. Their types may differ.
  static std::size_t alike_in(std::span<const std::int64_t> runs) {
    std::size_t count = 0;
    std::span<const std::int64_t> first;
    bool differ = false;
    each_run(runs, [&](const TensorRun& run) {
      if (count == 0) first = run.sizes;
      differ = differ || !std::ranges::equal(first, run.sizes);
      count += run.count;
    });
    return differ || count < 2 ? 0 : count;
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
  DocumentStream out_;
};

class OfSnapshot final : public FlightSource {
 public:
  explicit OfSnapshot(const FlightSnapshot& of) noexcept : of_(of) {}
  [[nodiscard]] std::size_t groups() const noexcept override { return of_.groups.size(); }
  [[nodiscard]] const FlightGroup& group(std::size_t at) const noexcept override {
    return of_.groups[at];
  }
  [[nodiscard]] const FlightFigures& figures(std::size_t at) const noexcept override {
    return of_.groups[at].figures;
  }
  [[nodiscard]] std::size_t entries() const noexcept override { return of_.entries.size(); }
  [[nodiscard]] const FlightEntry& entry(std::size_t at) const noexcept override {
    return of_.entries[at];
  }
  [[nodiscard]] std::span<const std::int64_t> words() const noexcept override { return of_.words; }

 private:
  const FlightSnapshot& of_;
  std::uint64_t written_ = 0;
  TransferNumbers numbers_;
  Document document_;
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
