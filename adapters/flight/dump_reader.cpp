// Makes a Dump of a document, field by field. What is missing though no dump can do without it, and
// what has another type than it should, is refused in a sentence.
#include <charconv>

#include "adapters/flight/dump.hpp"
#include "adapters/flight/limits.hpp"
#include "adapters/flight/portable_names.hpp"
#include "adapters/flight/transfer_group.hpp"

namespace ringmain::flight {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kNumberMax = std::int64_t{1} << 62;  // differences then fit

class DumpReader {
 public:
  DumpReader(const Document& document, Kept& kept) : document_(document), kept_(kept) {}

  bool read(Dump& dump) {
    dump_ = &dump;
    const Value& root = document_.root;
    if (!root.is_dict()) return refuse("it is " + std::string(to_string(root.kind)) + ", no dict");
    if (!read_top(root) || !read_groups(root) || !read_status(root)) return false;
    const Value* entries = document_.find(root, "entries");
    if (entries == nullptr) return true;  // JSON leaves it out if there are none
    if (!entries->is_list()) return refuse("its 'entries' are no list");
    const auto all = document_.items(*entries);
    if (all.size() > kEntriesMax) {
      return refuse("it holds more than " + std::to_string(kEntriesMax) + " entries");
    }
    dump.entries.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      where_ = "entry " + std::to_string(i) + ": ";
      if (!read_entry(all[i], dump.entries[i])) return false;
    }
    return true;
  }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  bool refuse(const std::string& why) {
    fault_ = where_ + why;
    return false;
  }
  bool wrong(std::string_view name, const Value& value, std::string_view wanted) {
    return refuse("'" + std::string(name) + "' is " + std::string(to_string(value.kind)) +
                  ", and not " + std::string(wanted));
  }
  bool missing(std::string_view name) { return refuse("it has no '" + std::string(name) + "'"); }

  bool read_top(const Value& root);
  bool read_groups(const Value& root);
  bool read_status(const Value& root);
  bool read_status_of(const Value& of, GroupStatus& status);
  bool read_entry(const Value& from, Entry& entry);
  bool read_field(std::string_view name, const Value& value, Entry& entry);
  bool read_group(const Value& value, Entry& entry);
  bool read_name(std::string_view text, Entry& entry);
  bool read_two(std::uint32_t name, const Value& of, std::string_view between);
  void settle_two(Entry& entry) const;
  bool read_state(const Value& value, Entry& entry);
  bool read_sizes(std::string_view name, const Value& value, std::uint32_t& made);
  bool read_types(std::string_view name, const Value& value, std::uint32_t& made);
  bool read_frames(const Value& value, Entry& entry);
  bool whole(std::string_view name, const Value& value, std::int64_t& made);

  const Document& document_;
  Kept& kept_;
  Dump* dump_ = nullptr;
  /// What a group of two stands for (transfer_group.hpp).
  struct Two {
    std::uint32_t group = 0;  // its name
    std::int32_t from = -1, to = -1;
  };
  std::unordered_map<std::uint32_t, std::uint32_t> by_name_;  // of dump_->groups
  std::unordered_map<std::uint32_t, Two> twos_;               // by their names
  const Two* two_ = nullptr;                                  // of this entry
  std::string where_;
  std::string fault_;
  std::string scratch_;
  std::string_view thread_name_;
  std::string_view thread_id_;
};

bool DumpReader::read_top(const Value& root) {
  const Value* version = document_.find(root, "version");
  if (version == nullptr) return missing("version");
  if (!version->is_text()) return wrong("version", *version, "text");
  dump_->version = version->str();
  if (!dump_->version.starts_with("2.")) {
    return refuse("it is of version " + dump_->version.substr(0, 20) + ", and 2.x is known");
  }
  if (const Value* library = document_.find(root, "comm_lib_version")) {
    if (library->is_text()) dump_->library_version = library->str();
  }
  const Value* left_out = document_.find(root, "left_out");
  if (left_out != nullptr && left_out->is_whole() && left_out->whole > 0)
    dump_->left_out = left_out->whole;
  const Value* rank = document_.find(root, "rank");
  if (rank == nullptr) return true;
  if (!rank->is_whole() || rank->whole < 0) return wrong("rank", *rank, "a number from 0");
  dump_->rank = rank->whole;
  return true;
}

bool DumpReader::read_groups(const Value& root) {
  const Value* config = document_.find(root, "pg_config");
  if (config == nullptr) return missing("pg_config");
  if (!config->is_dict()) return wrong("pg_config", *config, "a dict");
  const auto items = document_.items(*config);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const Value* desc = document_.find(items[i + 1], "desc");
    const Value* ranks = document_.find(items[i + 1], "ranks");
    if (!items[i].is_text() || !desc || !desc->is_text() || !ranks || !ranks->is_text()) {
      return refuse("a group of its 'pg_config' lacks the texts 'desc' and 'ranks'");
    }
    const auto members = kept_.members.read(ranks->str());
    if (!members) return refuse("the ranks of a group are no list such as \"[0, 1]\"");
    const std::uint32_t name = kept_.texts.number(items[i].str());
    const Value* of = document_.find(items[i + 1], kTransfersOf);
    const Value* ends = document_.find(items[i + 1], kBetween);
    if (of != nullptr && ends != nullptr) {
      if (!of->is_text() || !ends->is_text() || !read_two(name, *of, ends->str()))
        return refuse("a group of its 'pg_config' has no two ranks 'between' which it is");
      continue;
    }
    by_name_[name] = static_cast<std::uint32_t>(dump_->groups.size());
    dump_->groups.push_back({name, kept_.texts.number(desc->str()), *members});
  }
  return true;
}

bool DumpReader::read_two(std::uint32_t name, const Value& of, std::string_view between) {
  Two two{kept_.texts.number(of.str())};
  const char* const end = between.data() + between.size();
  const auto [arrow, bad] = std::from_chars(between.data(), end, two.from);
  if (bad != std::errc() || end - arrow < 3 || std::string_view(arrow, 2) != "->") return false;
  if (std::from_chars(arrow + 2, end, two.to).ptr != end) return false;
  if (two.from < 0 || two.to < 0) return false;
  twos_[name] = two;
  return true;
}

/// Its group is the one in which it was called, and so are the ranks and its own count.
void DumpReader::settle_two(Entry& entry) const {
  if (two_ == nullptr || entry.from < 0) return;
  entry.of_two = true;
  entry.from = two_->from;
  entry.to = two_->to;
  if (entry.p2p_seq > kTransfersFrom) entry.p2p_seq -= kTransfersFrom;
}

bool DumpReader::read_status(const Value& root) {
  const Value* all = document_.find(root, "pg_status");
  if (all == nullptr || !all->is_dict()) return true;
  const auto items = document_.items(*all);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    GroupStatus status;
    status.pg_id = items[i].is_text() ? items[i].str() : std::to_string(items[i].whole);
    if (!read_status_of(items[i + 1], status)) return false;
    dump_->status.push_back(std::move(status));
  }
  return true;
}

/// Numbers in a pickle, texts of numbers in JSON.
bool DumpReader::read_status_of(const Value& of, GroupStatus& status) {
  const auto items = document_.items(of);
  for (std::size_t i = 0; i + 1 < items.size() && of.is_dict(); i += 2) {
    const std::string_view name = items[i].is_text() ? items[i].str() : "";
    std::int64_t* to = name == "last_enqueued_collective"    ? &status.enqueued
                       : name == "last_started_collective"   ? &status.started
                       : name == "last_completed_collective" ? &status.completed
                                                             : nullptr;
    if (to == nullptr) continue;
    const Value& value = items[i + 1];
    const std::string_view digits = value.is_text() ? value.str() : "";
    if (value.is_whole()) {
      *to = value.whole;
    } else if (std::from_chars(digits.data(), digits.data() + digits.size(), *to).ec !=
               std::errc()) {
      return wrong(name, value, "a whole number");
    }
  }
  return true;
}

bool DumpReader::read_entry(const Value& from, Entry& entry) {
  if (!from.is_dict()) return refuse("it is " + std::string(to_string(from.kind)) + ", no dict");
  static constexpr std::string_view kNeeded[] = {"record_id", "process_group", "collective_seq_id",
                                                 "profiling_name", "state"};
  for (const std::string_view name : kNeeded) {
    if (document_.find(from, name) == nullptr) return missing(name);
  }
  thread_name_ = thread_id_ = "";
  two_ = nullptr;
  const auto items = document_.items(from);
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i].is_text() && !read_field(items[i].str(), items[i + 1], entry)) return false;
  }
  settle_two(entry);
  entry.collective_seq %= kMembersFrom;  // a batch's members have one number
  if (thread_name_.empty() && thread_id_.empty()) return true;
  scratch_.assign(thread_name_).append(" (").append(thread_id_).append(")");
  entry.thread = kept_.texts.number(scratch_);
  return true;
}

bool DumpReader::whole(std::string_view name, const Value& value, std::int64_t& made) {
  if (!value.is_whole()) return wrong(name, value, "a whole number");
  made = value.whole;
  // Those that are counted and compared; -1 is what is unknown, or the id of "finalize".
  const bool id = name == "pg_id" || name == "op_id";
  if (id || (made >= 0 && made <= kNumberMax)) return true;
  return refuse("'" + std::string(name) + "' is " + std::to_string(made) + ", out of range");
}

bool DumpReader::read_field(std::string_view name, const Value& value, Entry& entry) {
  struct Whole {
    std::string_view name;
    std::int64_t Entry::*to;
  };
  static constexpr Whole kWhole[] = {{"record_id", &Entry::record_id},
                                     {"pg_id", &Entry::pg_id},
                                     {"collective_seq_id", &Entry::collective_seq},
                                     {"p2p_seq_id", &Entry::p2p_seq},
                                     {"op_id", &Entry::op_id},
                                     {"time_created_ns", &Entry::created_ns},
                                     {"timeout_ms", &Entry::timeout_ms}};
  for (const Whole& field : kWhole) {
    if (field.name == name) return whole(name, value, entry.*field.to);
  }
  if (name == "process_group") return read_group(value, entry);
  if (name == "profiling_name") {
    return value.is_text() ? read_name(value.str(), entry) : wrong(name, value, "text");
  }
  if (name == "state") return read_state(value, entry);
  if (name == "input_sizes") return read_sizes(name, value, entry.inputs.sizes);
  if (name == "output_sizes") return read_sizes(name, value, entry.outputs.sizes);
  if (name == "input_dtypes") return read_types(name, value, entry.inputs.types);
  if (name == "output_dtypes") return read_types(name, value, entry.outputs.types);
  if (name == "frames") return read_frames(value, entry);
  const bool started = name == "time_discovered_started_ns";
  if (started || name == "time_discovered_completed_ns") {
    if (value.kind == Kind::none) return true;  // not discovered; JSON has 0
    return whole(name, value, started ? entry.started_ns : entry.completed_ns);
  }
  if (name == "is_p2p" || name == "retired") {
    if (value.kind != Kind::boolean) return wrong(name, value, "true or false");
    (name == "retired" ? entry.retired : entry.is_p2p) = value.boolean;
  } else if (name == "duration_ms" && value.kind != Kind::none) {
    if (!value.is_whole() && value.kind != Kind::real) return wrong(name, value, "a number");
    entry.duration_ms = value.is_whole() ? static_cast<double>(value.whole) : value.real;
  } else if (name == "thread_name" && value.is_text()) {
    thread_name_ = value.str();
  } else if (name == "thread_id" && value.is_text()) {
    thread_id_ = value.str();
  }
  return true;  // a field of a later version, which analysis does not need
}

bool DumpReader::read_group(const Value& value, Entry& entry) {
  const auto pair = document_.items(value);
  if (!value.is_list() || pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text()) {
    return wrong("process_group", value, "a pair of two texts");
  }
  std::uint32_t name = kept_.texts.number(pair[0].str());
  if (const auto two = twos_.find(name); two != twos_.end()) {
    two_ = &two->second;
    name = two_->group;
  }
  const std::uint32_t desc = kept_.texts.number(pair[1].str());
  const auto next = static_cast<std::uint32_t>(dump_->groups.size());
  const auto [place, added] = by_name_.emplace(name, next);
  if (added) dump_->groups.push_back({name, desc, 0});  // it is not in pg_config
  entry.group = place->second;
  return true;
}

/// "nccl:all_reduce", "nccl:send 0->1", "nccl:recv 1<-0".
bool DumpReader::read_name(std::string_view text, Entry& entry) {
  const std::size_t colon = text.find(':');
  if (colon != text.npos) {
    entry.backend = kept_.texts.number(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  const std::size_t space = text.find(' ');
  entry.name = kept_.texts.number(text.substr(0, space));
  const bool send = text.starts_with("send ");
  if (!send && !text.starts_with("recv ")) return true;
  text.remove_prefix(5);
  std::int32_t left = -1;
  std::int32_t right = -1;
  const char* const end = text.data() + text.size();
  const auto [arrow, bad] = std::from_chars(text.data(), end, left);
  if (bad != std::errc() || end - arrow < 3) return true;  // "?": a receive from anybody
  if (std::string_view(arrow, 2) != (send ? "->" : "<-")) return true;
  if (std::from_chars(arrow + 2, end, right).ec != std::errc()) return true;
  entry.from = send ? left : right;
  entry.to = send ? right : left;
  return true;
}

bool DumpReader::read_state(const Value& value, Entry& entry) {
  if (!value.is_text()) return wrong("state", value, "text");
  for (const EntryState state :
       {EntryState::scheduled, EntryState::started, EntryState::completed}) {
    if (to_string(state) != value.str()) continue;
    entry.state = state;
    return true;
  }
  return refuse("the state '" + std::string(value.str().substr(0, 40)) +
                "' is none of scheduled, started and completed");
}

bool DumpReader::read_sizes(std::string_view name, const Value& value, std::uint32_t& made) {
  const auto tensors = document_.items(value);
  if (!value.is_list()) return wrong(name, value, "a list of lists");
  if (tensors.size() > kTensorsMax) return refuse("it has too many tensors");
  scratch_ = "[";
  for (const Value& tensor : tensors) {
    if (!tensor.is_list()) return wrong(name, tensor, "a list of lists");
    scratch_ += scratch_.size() > 1 ? ",[" : "[";
    bool first = true;
    for (const Value& size : document_.items(tensor)) {
      if (!size.is_whole() || size.whole < 0) return wrong(name, size, "a number from 0");
      if (!first) scratch_ += ',';
      scratch_ += std::to_string(size.whole);
      first = false;
    }
    scratch_ += ']';
  }
  scratch_ += ']';
  made = kept_.texts.number(scratch_);
  return true;
}

bool DumpReader::read_types(std::string_view name, const Value& value, std::uint32_t& made) {
  const auto types = document_.items(value);
  if (!value.is_list()) return wrong(name, value, "a list of texts");
  if (types.size() > kTensorsMax) return refuse("it has too many tensors");
  scratch_.clear();
  for (const Value& type : types) {
    if (!type.is_text()) return wrong(name, type, "text");
    if (!scratch_.empty()) scratch_ += ',';
    scratch_ += type.str();
  }
  made = kept_.texts.number(scratch_);
  return true;
}

/// The innermost frame that is the program's: PyTorch's own files say nothing about who called.
bool DumpReader::read_frames(const Value& value, Entry& entry) {
  if (!value.is_list()) return wrong("frames", value, "a list");
  for (const Value& frame : document_.items(value)) {
    const Value* file = document_.find(frame, "filename");
    const Value* line = document_.find(frame, "line");
    const Value* name = document_.find(frame, "name");
    if (!file || !file->is_text() || !line || !line->is_whole() || !name || !name->is_text()) {
      return refuse("a frame lacks 'filename', 'line' or 'name'");
    }
    if (file->str().find("/torch/") != file->str().npos) continue;
    scratch_.assign(file->str()).append(":").append(std::to_string(line->whole));
    scratch_.append(" ").append(name->str());
    entry.where = kept_.texts.number(scratch_);
    return true;
  }
  return true;
}

}  // namespace

Result<Dump> read_dump(const Document& document, Kept& kept) {
  Dump dump;
  DumpReader reader(document, kept);
  if (!reader.read(dump)) return Error{Error::Code::refused, reader.fault()};
  return dump;
}

}  // namespace ringmain::flight
