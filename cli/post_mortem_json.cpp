#include <algorithm>
#include <array>
#include <string>

#include "adapters/formats/json_line.hpp"
#include "adapters/formats/json_text.hpp"

#include "cli/post_mortem.hpp"

namespace ringmain::cli {
namespace {

namespace raw = engine::flight;
using flight::RecordedEvent;
using flight::RecordedRing;
using flight::RingDump;

/// Members of one object, one after the other.
class Object {
 public:
  explicit Object(std::string& to) : to_(to) { to_ += '{'; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { to_ += '}'; }
  void text(std::string_view key, std::string_view value) {
    name(key);
    formats::append_json_string(to_, value);
  }
  template <class N>
  void number(std::string_view key, N value) {
    name(key);
    to_ += std::to_string(value);
  }
  void flag(std::string_view key, bool value) {
    name(key);
    to_ += value ? "true" : "false";
  }
  std::string& name(std::string_view key) {
    if (!first_) to_ += ',';
    first_ = false;
    formats::append_json_string(to_, key);
    return to_ += ':';
  }

 private:
  std::string& to_;
  bool first_ = true;
};

template <class All, class F>
void list(std::string& to, const All& all, F one) {
  to += '[';
  bool first = true;
  for (const auto& each : all) {
    if (!first) to += ',';
    first = false;
    one(each);
  }
  to += ']';
}

void add_event(std::string& to, const RecordedEvent& one) {
  Object object(to);
  object.text("channel", one.channel);
  object.number("time_ns", one.stamp.time_ns);
  object.number("publisher", one.stamp.publisher);
  object.number("sequence", one.stamp.sequence);
  object.text("code", to_string(one.code));
  object.number("thread", one.thread);
  object.text("thread_name", one.thread_name);
  if (one.schema == nullptr) return object.number("undecoded_bytes", one.bytes);
  std::string& event = object.name("event");
  Object fields(event);
  for (const FieldSchema& field : one.schema->fields)
    formats::append_json_field(fields.name(field.name), field, one.event);
}

void add_ring(std::string& to, const RecordedRing& ring, std::size_t events) {
  Object object(to);
  object.text("pattern", ring.pattern);
  object.flag("thread_ended", ring.ended);
  object.number("written", ring.written);
  object.number("readable", ring.events.size());
  object.number("overwritten", ring.overwritten);
  object.number("unreadable", ring.unreadable);
  object.number("under_way", ring.under_way);
  object.number("missed", ring.missed);
  const auto from =
      ring.events.end() - static_cast<std::ptrdiff_t>(std::min(events, ring.events.size()));
  std::string& last = object.name("events");
  list(last, std::vector<RecordedEvent>(from, ring.events.end()),
       [&last](const RecordedEvent& one) { add_event(last, one); });
}

void add_process(std::string& to, const RingDump& dump) {
  const raw::FixedHeader& head = dump.file().header;
  Object object(to);
  object.text("host", text_of(head.host));
  object.number("pid", head.pid);
  object.text("program", text_of(head.program));
  object.number("rank", head.rank);
  object.number("world_size", head.world_size);
  object.number("local_rank", head.local_rank);
  object.text("job", text_of(head.job));
  object.text("launcher", text_of(head.launcher));
  const raw::Living living = dump.file().living;
  object.text("state", living == raw::Living::yes  ? "alive"
                       : living == raw::Living::no ? "dead"
                                                   : "unknown");
  object.flag("closed", dump.file().counts.closed != 0);
}

}  // namespace

std::string post_mortem_json(const RingDump& dump, std::size_t events) {
  std::string to;
  {
    Object object(to);
    object.text("file", dump.path());
    add_process(object.name("process"), dump);
    object.text("damage", dump.file().damage);
    object.number("last_ns", dump.last_ns());
    object.number("last_realtime_ns", dump.realtime_of(dump.last_ns()));
    object.number("unrecorded", dump.file().counts.unrecorded);
    object.number("text_left_out", dump.file().counts.text_left_out);
    object.number("operations_left_out", dump.file().counts.operations_left_out);
    std::string& open = object.name("open_operations");
    list(open, dump.open(), [&open](const flight::OpenCollective& one) {
      Object operation(open);
      operation.number("op_id", one.id);
      operation.text("op", one.op);
      operation.text("group", one.group);
      operation.number("sequence", one.sequence);
      operation.number("bytes", one.bytes);
      operation.number("time_ns", one.time_ns);
      operation.number("thread", one.thread);
      operation.text("thread_name", one.thread_name);
    });
    std::string& groups = object.name("groups");
    list(groups, dump.groups(), [&groups](const auto& one) {
      Object group(groups);
      group.text("group", one.first);
      group.number("low_sequence", one.second.low);
      group.number("high_sequence", one.second.high);
      group.number("readable", one.second.records);
    });
    std::string& rings = object.name("rings");
    list(rings, dump.rings(), [&](const RecordedRing& one) { add_ring(rings, one, events); });
    std::string& patterns = object.name("patterns");
    list(patterns, dump.patterns(), [&patterns](const flight::RecordedPattern& one) {
      Object pattern(patterns);
      pattern.text("pattern", one.pattern);
      pattern.number("channels", one.channels);
      pattern.number("rings", one.rings);
    });
  }
  return to += '\n';
}

}  // namespace ringmain::cli
