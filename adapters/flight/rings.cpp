#include "adapters/flight/rings.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "engine/flight/recording.hpp"

#include "bus/core/schema_text.hpp"
#include "bus/pattern.hpp"

#include "events/collective.hpp"

namespace ringmain::flight {

namespace raw = engine::flight;

Result<RingDump> RingDump::read(const std::string& path, std::uint64_t bytes_max) {
  RingDump dump;
  dump.path_ = path;
  dump.file_ = raw::read_flight(path, bytes_max);
  if (!dump.file_.refusal.empty()) return Error{Error::Code::refused, dump.file_.refusal};
  dump.index();
  dump.decode_rings();
  dump.decode_operations();
  dump.mark_groups();
  dump.count_patterns();
  return dump;
}

void RingDump::index() {
  for (std::size_t i = 0; i < file_.text.size(); ++i)
    text_.emplace(std::pair{static_cast<std::uint32_t>(file_.text[i].kind), file_.text[i].id}, i);
}

const RingDump::TextRead* RingDump::text(raw::TextKind kind, std::uint64_t id) const {
  const auto found = text_.find({static_cast<std::uint32_t>(kind), id});
  return found == text_.end() ? nullptr : &file_.text[found->second];
}

const Schema* RingDump::schema_with(std::uint64_t hash) {
  const auto [known, first] = schemas_.try_emplace(hash, nullptr);
  if (first) {
    const TextRead* const said = text(raw::TextKind::schema, hash);
    if (said != nullptr) known->second = detail::schema_of(said->text, hash);
  }
  return known->second;
}

Name RingDump::name_with(std::uint32_t id) {
  if (id == 0) return {};
  const auto [known, first] = names_.try_emplace(id);
  if (first) {
    const TextRead* const said = text(raw::TextKind::name, id);
    known->second =
        Name(said != nullptr ? said->text : "(name " + std::to_string(id) + " is not in the file)");
  }
  return known->second;
}

void RingDump::name_thread(std::uint64_t source, std::string_view& name,
                           std::uint32_t& thread) const {
  const TextRead* const said = text(raw::TextKind::source, source);
  if (said == nullptr) return;
  name = said->text;
  thread = said->source.thread;
}

void RingDump::decode(const raw::TrackRead& track, RecordedRing& to) {
  to.written += track.written;
  to.overwritten += track.overwritten;
  to.unreadable += track.unreadable;
  to.under_way += track.under_way ? 1 : 0;
  for (const raw::RecordRead& record : track.records) {
    RecordedEvent one;
    one.stamp = {record.head.time_ns, record.head.sequence, 0, TimeFrom::publisher};
    one.code = record.head.code;
    one.bytes = record.payload_bytes;
    one.event = track.payloads.data() + record.payload_at;
    name_thread(record.head.source, one.thread_name, one.thread);
    if (const TextRead* const source = text(raw::TextKind::source, record.head.source)) {
      one.stamp.publisher = source->source.publisher;
      if (const TextRead* const of = text(raw::TextKind::channel, source->source.channel))
        one.channel = of->text;
    }
    one.schema = schema_with(record.head.schema);
    if (one.schema != nullptr && one.schema->bytes != one.bytes) one.schema = nullptr;
    if (one.schema != nullptr) {
      auto copy = std::make_unique<std::byte[]>(one.bytes);
      std::memcpy(copy.get(), one.event, one.bytes);
      for (const FieldSchema& field : one.schema->fields) {
        if (field.kind != Kind::name) continue;
        std::uint32_t id = 0;
        std::memcpy(&id, copy.get() + field.offset, sizeof id);
        const Name name = name_with(id);
        std::memcpy(copy.get() + field.offset, &name, sizeof name);
      }
      one.event = copy.get();
      events_.push_back(std::move(copy));
    }
    last_ns_ = std::max(last_ns_, one.stamp.time_ns);
    to.events.push_back(one);
  }
}

void RingDump::decode_rings() {
  for (const raw::RingRead& ring : file_.rings) {
    RecordedRing to;
    if (const TextRead* const pattern = text(raw::TextKind::pattern, ring.pattern))
      to.pattern = pattern->text;
    to.ended = ring.state == raw::RingState::ended;
    to.missed = ring.missed;
    decode(ring.ring, to);
    decode(ring.annex, to);
    std::stable_sort(to.events.begin(), to.events.end(), [](const auto& a, const auto& b) {
      return a.stamp.time_ns < b.stamp.time_ns;
    });
    rings_.push_back(std::move(to));
  }
}

void RingDump::decode_operations() {
  for (const raw::OpenOperation& one : file_.operations) {
    OpenCollective open;
    open.op = name_with(one.kind).view();
    open.group = name_with(static_cast<std::uint32_t>(one.group)).view();
    open.id = one.id;
    open.sequence = one.sequence;
    open.bytes = one.bytes;
    open.time_ns = one.time_ns;
    name_thread(one.source, open.thread_name, open.thread);
    last_ns_ = std::max(last_ns_, one.time_ns);
    open_.push_back(open);
  }
  std::sort(open_.begin(), open_.end(),
            [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
}

void RingDump::mark_groups() {
  for (const RecordedRing& ring : rings_) {
    for (const RecordedEvent& one : ring.events) {
      const auto* const issued =
          one.schema == nullptr ? nullptr : one.view().as<collective::Issued>();
      // A hash can be forged.
      if (issued == nullptr || one.bytes != sizeof *issued) continue;
      collective::Issued copy;
      std::memcpy(static_cast<void*>(&copy), issued, sizeof copy);
      const auto [at, first] = groups_.try_emplace(std::string(copy.group.view()));
      GroupMarks& marks = at->second;
      marks.low = first ? copy.sequence : std::min(marks.low, copy.sequence);
      marks.high = std::max(marks.high, copy.sequence);
      ++marks.records;
    }
  }
}

std::int64_t RingDump::realtime_of(std::int64_t monotonic_ns) const noexcept {
  const raw::ClockPair* nearest = nullptr;
  const auto distance = [monotonic_ns](const raw::ClockPair& pair) {
    const auto a = static_cast<std::uint64_t>(pair.monotonic_ns);
    const auto b = static_cast<std::uint64_t>(monotonic_ns);
    return pair.monotonic_ns > monotonic_ns ? a - b : b - a;
  };
  for (const raw::ClockPair& pair : file_.clocks) {
    if (nearest == nullptr || distance(pair) < distance(*nearest)) nearest = &pair;
  }
  if (nearest == nullptr) return 0;
  // In unsigned numbers, which may go round: a damaged file's times are any.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(nearest->realtime_ns) +
                                   static_cast<std::uint64_t>(monotonic_ns) -
                                   static_cast<std::uint64_t>(nearest->monotonic_ns));
}

void RingDump::count_patterns() {
  // No recording has more, and a longer list would be work without a bound; so would a pattern
  // that none would have been made with.
  while (patterns_.size() < raw::Recording::kPatternsMax) {
    const TextRead* const one = text(raw::TextKind::pattern, patterns_.size() + 1);
    if (one == nullptr) break;
    RecordedPattern pattern{one->text};
    for (const raw::RingRead& ring : file_.rings) pattern.rings += ring.pattern == one->id ? 1 : 0;
    patterns_.push_back(pattern);
  }
  std::vector<RecordedPattern*> sound;
  for (RecordedPattern& one : patterns_) {
    if (fault_of_pattern(one.pattern).empty()) sound.push_back(&one);
  }
  for (const TextRead& channel : file_.text) {
    if (channel.kind != raw::TextKind::channel) continue;
    const auto by = std::find_if(sound.begin(), sound.end(), [&channel](const auto* one) {
      return pattern_matches(one->pattern, channel.text);
    });
    if (by != sound.end()) ++(*by)->channels;
  }
}

}  // namespace ringmain::flight
