#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "adapters/formats/json_line.hpp"
#include "adapters/formats/json_text.hpp"

#include "cli/post_mortem.hpp"
#include "cli/terminal.hpp"

namespace ringmain::cli {
namespace {

namespace raw = engine::flight;
using flight::RecordedEvent;
using flight::RecordedRing;
using flight::RingDump;

std::string_view living_words(const RingDump& dump) {
  switch (dump.file().living) {
    case raw::Living::yes:
      return "alive";
    case raw::Living::no:
      return dump.file().counts.closed != 0 ? "ended, its record closed in order" : "dead";
    case raw::Living::unknown:
      break;
  }
  return "not known whether it lives";
}

std::string time_of_day(std::int64_t realtime_ns) {
  if (realtime_ns <= 0) return "(no time of day)";
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm parts{};
  char text[64] = {};
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return "(no time of day)";
  char whole[96] = {};
  std::snprintf(whole, sizeof whole, "%s.%06lldZ", text,
                static_cast<long long>(realtime_ns % 1'000'000'000 / 1000));
  return whole;
}

/// How long before the last thing that is known.
std::string before_last(const RingDump& dump, std::int64_t time_ns) {
  return duration_text(static_cast<double>(dump.last_ns()) - static_cast<double>(time_ns)) +
         " before its last record";
}

std::string thread_words(std::string_view name, std::uint32_t thread) {
  if (thread == 0) return "a thread that is not known";
  return "thread " + std::to_string(thread) + (name.empty() ? "" : " (" + shown(name) + ")");
}

void add_event(std::string& to, const RingDump& dump, const RecordedEvent& one) {
  to += "    " + time_of_day(dump.realtime_of(one.stamp.time_ns)) + "  ";
  to += one.channel.empty() ? std::string("(channel not in the file)") : shown(one.channel);
  to += " #" + std::to_string(one.stamp.sequence);
  if (one.code != PublishCode::accepted) to += " [" + std::string(to_string(one.code)) + "]";
  if (one.schema == nullptr) {
    to += "  " + std::to_string(one.bytes) + " bytes of a type that is not in the file\n";
    return;
  }
  for (const FieldSchema& field : one.schema->fields) {
    (to += "  " + shown(field.name)) += '=';
    formats::append_json_field(to, field, one.event);
  }
  to += '\n';
}

void add_ring(std::string& to, const RingDump& dump, const RecordedRing& ring, std::size_t events) {
  to += "\n  ring of '" + shown(ring.pattern) + "'";
  if (!ring.events.empty())
    to += ", last " + thread_words(ring.events.back().thread_name, ring.events.back().thread);
  if (ring.ended) to += ", which has ended";
  to += "\n    " + with_commas(ring.written) + " written = " + with_commas(ring.events.size()) +
        " readable + " + with_commas(ring.overwritten) + " overwritten";
  if (ring.unreadable != 0) to += " + " + with_commas(ring.unreadable) + " damaged";
  if (ring.under_way != 0) to += "; " + with_commas(ring.under_way) + " more begun and not whole";
  if (ring.missed != 0) to += "; " + with_commas(ring.missed) + " of signal handlers missed";
  to += '\n';
  const std::size_t from = ring.events.size() - std::min(events, ring.events.size());
  if (from != 0)
    to += "    … " + with_commas(from) + " older (--last " + std::to_string(ring.events.size()) +
          " shows them)\n";
  for (std::size_t i = from; i < ring.events.size(); ++i) add_event(to, dump, ring.events[i]);
}

void add_open(std::string& to, const RingDump& dump) {
  const raw::Counts& counts = dump.file().counts;
  to += "\n  operations that were issued and had not ended: " + with_commas(dump.open().size());
  if (counts.operations_left_out != 0)
    to += "; " + with_commas(counts.operations_left_out) + " more found no room in the table";
  if (dump.file().operations_unreadable != 0)
    to += "; " + with_commas(dump.file().operations_unreadable) + " unreadable";
  to += '\n';
  for (const flight::OpenCollective& one : dump.open()) {
    to += "    " + shown(one.op) + " of group '" + shown(one.group) + "' #" +
          std::to_string(one.sequence) + ", " + bytes_text(one.bytes) + ", issued " +
          before_last(dump, one.time_ns) + " by " + thread_words(one.thread_name, one.thread) +
          '\n';
  }
}

/// Those without a ring: the person asked for them, and looks for them.
void add_patterns(std::string& to, const RingDump& dump) {
  for (const flight::RecordedPattern& one : dump.patterns()) {
    if (one.rings != 0) continue;
    const std::string pattern = "'" + shown(one.pattern) + "'";
    to += one.channels == 0 ? "\n  nothing matched " + pattern + '\n'
                            : "\n  nothing was recorded by " + pattern + ", which matched " +
                                  plural(one.channels, "channel") + '\n';
  }
}

}  // namespace

std::string post_mortem_text(const RingDump& dump, std::size_t events) {
  const raw::FixedHeader& head = dump.file().header;
  const std::string rank = rank_of(head);
  std::string to = (rank.empty() ? "no rank" : rank) + ": " + shown(text_of(head.program)) +
                   ", pid " + std::to_string(head.pid) + " on " + shown(text_of(head.host)) + ": " +
                   std::string(living_words(dump)) + "\n  " + dump.path() + '\n';
  if (!dump.file().damage.empty()) to += "  damaged: " + dump.file().damage + '\n';
  if (dump.last_ns() != 0)
    to += "  its last record is of " + time_of_day(dump.realtime_of(dump.last_ns())) + '\n';
  const raw::Counts& counts = dump.file().counts;
  if (counts.unrecorded != 0)
    to += "  " + with_commas(counts.unrecorded) + " events had no ring and are not recorded\n";
  if (counts.text_left_out != 0)
    to += "  " + with_commas(counts.text_left_out) + " names, types or sources found no room\n";
  add_open(to, dump);
  for (const auto& [group, marks] : dump.groups()) {
    to += "  group '" + shown(group) + "': #" + std::to_string(marks.low) + " to #" +
          std::to_string(marks.high) + " readable, " + plural(marks.records, "operation") + '\n';
  }
  for (const RecordedRing& ring : dump.rings()) add_ring(to, dump, ring, events);
  add_patterns(to, dump);
  return to;
}

}  // namespace ringmain::cli
