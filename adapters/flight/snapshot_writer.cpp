#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "adapters/flight/document_writer.hpp"
#include "adapters/flight/portable_names.hpp"
#include "adapters/flight/snapshot.hpp"

namespace ringmain::flight {
namespace {

using Kind = Value::Kind;

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

class DumpWriter {
 public:
  DumpWriter(const FlightSnapshot& what, const FlightDump& how)
      : what_(what), how_(how), pickle_(how.format == DumpFormat::pickle) {}

  std::string write() {
    document_.root = document_.make(Kind::dict);
    set(document_.root, "version", text("2.10"));
    set(document_.root, "comm_lib_version", text(""));
    if (how_.rank >= 0) set(document_.root, "rank", Value::of(how_.rank));
    write_groups();
    const Value entries = document_.make(Kind::list);
    for (const FlightEntry& entry : what_.entries) {
      const bool over = entry.retired && entry.completed_ns != 0;
      if (over && !how_.include_completed) continue;
      const std::string_view name = name_of(entry);
      if (name.empty()) continue;
      const Value made = write_entry(entry, name);  // first: it moves containers
      document_.items_of(entries).push_back(made);
    }
    if (pickle_ || !document_.items(entries).empty()) set(document_.root, "entries", entries);
    return pickle_ ? to_pickle(document_) : to_json(document_);
  }

 private:
  void set(const Value& dict, std::string_view key, const Value& value) {
    document_.items_of(dict).push_back(Value::of(key));  // each key is set once
    document_.items_of(dict).push_back(value);
  }
  Value text(std::string_view words) { return document_.keep(std::string(words)); }
  /// What JSON has as text, as PyTorch writes it.
  Value figure(std::int64_t number) {
    return pickle_ ? Value::of(number) : document_.keep(std::to_string(number));
  }
  /// A time that may not be known.
  Value time(std::int64_t ns) const { return pickle_ && ns == 0 ? Value() : Value::of(ns); }

  void write_groups() {
    const Value config = document_.make(Kind::dict);
    const Value status = document_.make(Kind::dict);
    for (std::size_t i = 0; i < what_.groups.size(); ++i) {
      const FlightGroup& group = what_.groups[i];
      const Value one = document_.make(Kind::dict);
      set(one, "name", text(group.name));
      set(one, "desc", text(description_of(group)));
      set(one, "ranks", document_.keep(ranks_of(group)));
      document_.set(config, group.name, one);
      const Value came = document_.make(Kind::dict);
      set(came, "last_enqueued_collective", figure(group.enqueued));
      set(came, "last_started_collective", figure(group.started));
      set(came, "last_completed_collective", figure(group.completed));
      set(came, "dropped_entries", figure(group.dropped));
      set(came, "whole_from_collective", figure(group.whole_from));
      const Value number = document_.keep(std::to_string(i));
      document_.items_of(status).push_back(number);
      document_.items_of(status).push_back(came);
    }
    set(document_.root, "pg_config", config);
    set(document_.root, "pg_status", status);
  }

  /// torchcomms puts the backend there where nobody gave a description.
  static std::string_view description_of(const FlightGroup& group) noexcept {
    return group.description.empty() ? group.backend : group.description;
  }
  static std::string ranks_of(const FlightGroup& group) {
    std::string all = "[";
    const auto add = [&all](std::int32_t rank) {
      all += (all.size() > 1 ? "," : "") + std::to_string(rank);
    };
    if (group.ranks.empty()) {
      for (std::int32_t rank = 0; rank < group.size; ++rank) add(rank);
    } else {
      std::for_each(group.ranks.begin(), group.ranks.end(), add);
    }
    return all + "]";
  }

  /// "" for what the analyzer does not know, which a pickle leaves out.
  [[nodiscard]] std::string_view name_of(const FlightEntry& entry) const {
    const std::string_view name = entry.op.view();
    const bool closes = name == "batch_op_issue";
    if (!pickle_) return closes ? "coalesced" : name;
    if (closes) return "coalesced";
    const bool transfer = name == "send" || name == "recv";
    if (transfer && (entry.from < 0 || entry.to < 0)) return "";
    return portable_name(name);
  }

  Value write_entry(const FlightEntry& entry, std::string_view name) {
    const FlightGroup& group = what_.groups[entry.group];
    const Value one = document_.make(Kind::dict);
    set(one, "record_id", whole(entry.record_id));
    set(one, "pg_id", whole(entry.group));
    const Value in = document_.make(pickle_ ? Kind::tuple : Kind::list);
    document_.items_of(in) = {text(group.name), text(description_of(group))};
    set(one, "process_group", in);
    set(one, "collective_seq_id", Value::of(entry.sequence));
    const std::int64_t from = pickle_ && entry.is_p2p ? kTransfersFrom : 0;
    set(one, "p2p_seq_id", Value::of(entry.transfer + from));
    set(one, "op_id", whole(entry.op_id));
    set(one, "profiling_name", document_.keep(profiling_name(entry, group, name)));
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
  static Value whole(std::uint64_t number) { return Value::of(static_cast<std::int64_t>(number)); }

  std::string profiling_name(const FlightEntry& entry, const FlightGroup& group,
                             std::string_view name) const {
    // A colon would end it for the analyzer, which knows few backends.
    std::string whole(how_.backend.empty() ? prefix_of(group.backend)
                                           : std::string_view(how_.backend));
    std::replace(whole.begin(), whole.end(), ':', '_');
    whole += ":" + std::string(name);
    const bool sends = name == "send";
    if ((sends || name == "recv") && entry.from >= 0 && entry.to >= 0) {
      whole += " " + std::to_string(sends ? entry.from : entry.to) + (sends ? "->" : "<-") +
               std::to_string(sends ? entry.to : entry.from);
    }
    return whole;
  }

  /// In a pickle lists of tensors of one size are one tensor, and a reduce has both sides.
  void write_tensors(const Value& one, const FlightEntry& entry, std::string_view name) {
    const FlightTensors* input = &entry.input;
    const FlightTensors* output = &entry.output;
    if (pickle_ && name == "reduce") {
      if (output->sizes.empty()) output = input;
      if (input->sizes.empty()) input = output;
    }
    const bool flat_in = pickle_ && name == "reduce_scatter";
    const bool flat_out = pickle_ && name == "all_gather";
    write_side(one, "input_sizes", "input_dtypes", *input, flat_in);
    write_side(one, "output_sizes", "output_dtypes", *output, flat_out);
  }

  void write_side(const Value& one, std::string_view sizes_key, std::string_view types_key,
                  const FlightTensors& tensors, bool flat) {
    const auto& sizes = tensors.sizes;
    const bool alike =
        !sizes.empty() &&
        std::all_of(sizes.begin(), sizes.end(), [&](const auto& s) { return s == sizes.front(); });
    flat = flat && alike && sizes.size() > 1;
    const Value all = document_.make(Kind::list), types = document_.make(Kind::list);
    for (std::size_t i = 0; i < (flat ? 1 : sizes.size()); ++i) {
      const Value tensor = document_.make(Kind::list);
      if (flat) add_whole(tensor, static_cast<std::int64_t>(sizes.size()));
      for (const std::int64_t size : sizes[i]) add_whole(tensor, size);
      document_.items_of(all).push_back(tensor);
      document_.items_of(types).push_back(Value::of(scalar_type(tensors.dtypes[i].view())));
    }
    set(one, sizes_key, all);
    set(one, types_key, types);
  }
  void add_whole(const Value& list, std::int64_t number) {
    document_.items_of(list).push_back(Value::of(number));
  }

  const FlightSnapshot& what_;
  const FlightDump& how_;
  const bool pickle_;
  Document document_;
};

}  // namespace

std::string write_flight_dump(const FlightSnapshot& what, const FlightDump& how) {
  return DumpWriter(what, how).write();
}

}  // namespace ringmain::flight
