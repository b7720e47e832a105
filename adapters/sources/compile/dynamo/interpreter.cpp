#include "adapters/sources/compile/dynamo/interpreter.hpp"

#include <algorithm>

#include "adapters/sources/compile/dynamo/text.hpp"
#include "adapters/sources/compile/ids.hpp"

namespace ringmain::compile {
namespace {

constexpr std::size_t kNamesMost = 512;
constexpr std::size_t kNameBytesMost = 128;
/// Keys that every record may have; the one that is none of them is its kind.
constexpr std::string_view kShared[] = {"rank",
                                        "compiled_autograd_id",
                                        "frame_id",
                                        "severity",
                                        "frame_compile_id",
                                        "attempt",
                                        "stack",
                                        "timestamp",
                                        "pathname",
                                        "thread",
                                        "subgraph_name",
                                        "has_payload"};

void count(std::map<std::string, std::uint64_t>& counts, std::string_view name) {
  std::string key(name.substr(0, kNameBytesMost));
  const auto known = counts.find(key);
  if (known != counts.end()) {
    ++known->second;
  } else {
    ++counts[counts.size() < kNamesMost ? std::move(key) : "(others)"];
  }
}

std::uint64_t key_of(const Id& id) noexcept {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(id.frame)) << 32) |
         static_cast<std::uint32_t>(id.recompile);
}

/// As PyTorch writes it.
Name text_of(const Id& id) {
  std::string text = id.autograd < 0 ? "" : "!" + std::to_string(id.autograd);
  if (id.frame >= 0) {
    if (!text.empty()) text += '/';
    text += std::to_string(id.frame) + "/" + std::to_string(id.recompile);
  }
  return Name(text.empty() ? "None" : text);
}

}  // namespace

void Interpreter::read(const TraceRecord& record, std::vector<Timed>& out) {
  ++counts_.read;
  if (!record.payload.empty()) ++counts_.with_payload;
  if (record.metadata.size() > TraceTap::kBytesMax) return count_skipped(TraceSkip::too_large);
  simdjson::dom::element parsed;
  const auto error =
      metadata_parser_.parse(record.metadata.data(), record.metadata.size(), true).get(parsed);
  if (error == simdjson::MEMALLOC) return count_skipped(TraceSkip::no_memory);
  if (error != simdjson::SUCCESS) return count_skipped(TraceSkip::bad_json);
  const Json metadata(parsed);
  if (!metadata) return count_skipped(TraceSkip::not_an_object);
  const std::size_t before = out.size();
  switch (dispatch(metadata, record, out)) {
    case Read::mapped:
      ++counts_.mapped;
      break;
    case Read::passed:
      ++counts_.passed;
      break;
    case Read::no_kind:
      count_skipped(TraceSkip::no_kind);
      break;
    case Read::bad_record:
      count_skipped(TraceSkip::bad_record);
      break;
    case Read::bad_payload:
      count_skipped(record.payload.size() > TraceTap::kBytesMax ? TraceSkip::too_large
                                                                : TraceSkip::bad_payload);
      break;
  }
  counts_.events += out.size() - before;
}

Interpreter::Read Interpreter::dispatch(const Json& metadata, const TraceRecord& record,
                                        std::vector<Timed>& out) {
  for (const auto& [key, value] : metadata.object()) {
    if (std::find(std::begin(kShared), std::end(kShared), key) != std::end(kShared)) continue;
    count(kinds_, key);
    Here here{record, key, value, id_of(metadata), time_of(record), out};
    const TraceKind* const kind = find_kind(key);
    return kind == nullptr ? Read::passed : (this->*kind->handle)(here);
  }
  return Read::no_kind;
}

Id Interpreter::id_of(const Json& metadata) noexcept {
  Id id;
  id.frame = metadata.integer<std::int32_t>("frame_id", -1);
  id.recompile = metadata.integer<std::int32_t>("frame_compile_id", -1);
  id.autograd = metadata.integer<std::int32_t>("compiled_autograd_id", -1);
  id.attempt = metadata.integer<std::uint32_t>("attempt", 0);
  if (id.frame < 0 || id.recompile < 0) id.frame = id.recompile = -1;
  id.autograd = std::max(id.autograd, -1);
  id.reset = epochs_.current();
  return id;
}

std::int64_t Interpreter::time_of(const TraceRecord& record) noexcept {
  if (!recorded_) return record.time_ns;
  // Lines are stamped to the millisecond, some payloads to the nanosecond: no step back for that.
  latest_ns_ = std::max(latest_ns_, record.time_ns + clock_offset_ns_);
  return latest_ns_;
}

/// Lines say month, day and local time, some payloads the time since the epoch: the first of these
/// tells what is between them, to a quarter of an hour, as time zones go.
void Interpreter::learn_clock(std::int64_t line_ns, std::int64_t event_ns) noexcept {
  constexpr std::int64_t kQuarter = std::int64_t{15} * 60 * 1'000'000'000;
  if (!recorded_) return;
  if (!clock_known_) {
    const std::int64_t apart = event_ns - line_ns;
    clock_offset_ns_ = (apart + (apart < 0 ? -kQuarter : kQuarter) / 2) / kQuarter * kQuarter;
    clock_known_ = true;
  }
  const std::int64_t line = line_ns + clock_offset_ns_;
  // A time that is far from its line's is not believed.
  if (event_ns - line < 2'000'000'000 && line - event_ns < 2'000'000'000) {
    latest_ns_ = std::max(latest_ns_, event_ns);
  }
}

void Interpreter::begins(Here& here, Epochs::Sign sign) {
  if (epochs_.begins(here.id, sign)) {
    Reset said;
    said.reset = epochs_.current();
    said.inferred = true;
    here.publish(said);
  }
  here.id.reset = epochs_.current();
}

OpenCompile& Interpreter::open(Start start, std::int64_t now_ns, std::vector<Timed>& out) {
  OpenCompile forgotten;
  bool gave_way = false;
  OpenCompile& one = open_.open(start, now_ns, forgotten, gave_way);
  if (gave_way) {
    End said;
    static_cast<Span&>(said) = forgotten.start;
    said.took_ns = now_ns - forgotten.began_ns;
    said.outermost = false;
    out.push_back({said, now_ns});
  }
  out.push_back({one.start, now_ns});
  return one;
}

/// `fields`: what is known of how it ended.
void Interpreter::close(OpenCompile& compile, End fields, std::int64_t now_ns,
                        std::vector<Timed>& out) {
  End said = open_.close(compile, now_ns);
  said.attempt = std::max(said.attempt, fields.attempt);
  if (fields.took_ns > 0) said.took_ns = fields.took_ns;
  if (said.outcome == Outcome::unknown) {
    said.outcome = fields.outcome;
    said.exception = fields.exception;
    said.reason = fields.reason;
  }
  if (said.outcome == Outcome::failed) breaks_.failed(said);
  out.push_back({said, now_ns});
}

/// A backward says no place, but its forward, which has the same id, did.
void Interpreter::place_like_forward(const Id& id, Start& start) const noexcept {
  const auto known = last_starts_.find(key_of(id));
  if (known == last_starts_.end() || !same_compile(known->second, id)) return;
  start.function = known->second.function;
  start.file = known->second.file;
  start.line = known->second.line;
}

void Interpreter::open_from_trace(Here& here, Start start) {
  static_cast<Id&>(start) = here.id;
  if (start.trigger == Trigger::dynamo) {
    if (last_starts_.size() >= kStartsMost) last_starts_.clear();
    last_starts_[key_of(here.id)] = start;
  } else {
    place_like_forward(here.id, start);
  }
  OpenCompile* known = open_.find(here.id, start.trigger);
  if (known != nullptr && known->traced) {  // whose end was lost
    close(*known, {}, here.time_ns, here.out);
    known = nullptr;
  }
  if (known == nullptr) {
    start.thread = here.record.thread;
    start.text = text_of(here.id);
    known = &open(start, here.time_ns, here.out);
  }
  known->traced = true;  // or a callback had opened it
}

void Interpreter::end_from_trace(Here& here, Trigger trigger, const Json& metrics) {
  OpenCompile* const known = open_.find(here.id, trigger);
  if (known == nullptr) return;
  End fields;
  fields.attempt = here.id.attempt;
  fields.took_ns = metrics.scaled("duration_us", 1000);
  fields.exception = metrics.name("fail_type");
  fields.reason = metrics.name("fail_reason");
  fields.outcome = fields.exception == Name{} ? Outcome::completed : Outcome::failed;
  close(*known, fields, here.time_ns, here.out);
}

std::uint64_t Interpreter::started(Trigger trigger, std::string_view id, const TraceRecord& now,
                                   std::vector<Timed>& out) {
  Here here{now, {}, {}, parse_id(id).value_or(Id{}), now.time_ns, out};
  here.id.reset = epochs_.current();
  OpenCompile* known = open_.find(here.id, trigger);
  if (known == nullptr || known->announced) {
    if (trigger == Trigger::dynamo) begins(here, Epochs::Sign::callback);
    Start start;
    static_cast<Id&>(start) = here.id;
    start.trigger = trigger;
    start.thread = now.thread;
    start.text = Name(id.substr(0, 64));
    place_like_forward(here.id, start);
    known = &open(start, now.time_ns, out);
  }
  known->announced = true;
  return known->start.span;
}

/// Callbacks tell of the outermost pair only, and the end may name another compile than the start:
/// what they alone had opened is over.
void Interpreter::ended(const TraceRecord& now, std::vector<Timed>& out) {
  while (OpenCompile* const over = open_.announced_only()) close(*over, {}, now.time_ns, out);
}

void Interpreter::reset(std::int64_t now_ns, std::vector<Timed>& out) {
  epochs_.reset();
  Reset said;
  said.reset = epochs_.current();
  out.push_back({said, now_ns});
}

void Interpreter::finish(std::int64_t now_ns, std::vector<Timed>& out) {
  const std::int64_t at = recorded_ ? latest_ns_ : now_ns;
  while (OpenCompile* const last = open_.newest()) close(*last, {}, at, out);
}

void Interpreter::veto(std::uint64_t span, Name why) noexcept {
  if (OpenCompile* const known = open_.by_span(span)) {
    known->vetoed = true;
    known->why = why;
  }
}

PublishResult Interpreter::verdict(std::uint64_t span) noexcept {
  const OpenCompile* const known = open_.by_span(span);
  if (known == nullptr || !known->vetoed) return {PublishCode::accepted, {}};
  return {PublishCode::vetoed, known->why};
}

void Interpreter::file_named(std::int64_t number, std::string_view path) {
  if (files_.size() < kFilesMost || files_.contains(number)) files_[number] = Name(path);
}

Name Interpreter::file_of(const Json& frame) const noexcept {
  const auto known = files_.find(frame.integer<std::int64_t>("filename", -1));
  // Before files had numbers they stood there by name.
  return known != files_.end() ? known->second : frame.name("filename");
}

}  // namespace ringmain::compile
