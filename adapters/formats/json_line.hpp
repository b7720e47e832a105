// What does an event look like as a line of JSON? Its stamp, then its fields by their names. The
// page for readers is docs/json-lines.md.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "../../bus/event.hpp"
#include "../../bus/origin.hpp"

#include "json_text.hpp"

namespace ringmain::formats {

namespace detail {

template <class T>
void append_number(std::string& to, const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  append_json_number(to, value);
}

}  // namespace detail

/// One field of an event: numbers exact, enumerations by their words, names and text as strings.
inline void append_json_field(std::string& to, const FieldSchema& field, const std::byte* event) {
  const std::byte* at = event + field.offset;
  switch (field.kind) {
    case Kind::u8:
      return detail::append_number<std::uint8_t>(to, at);
    case Kind::u16:
      return detail::append_number<std::uint16_t>(to, at);
    case Kind::u32:
      return detail::append_number<std::uint32_t>(to, at);
    case Kind::u64:
      return detail::append_number<std::uint64_t>(to, at);
    case Kind::i8:
      return detail::append_number<std::int8_t>(to, at);
    case Kind::i16:
      return detail::append_number<std::int16_t>(to, at);
    case Kind::i32:
      return detail::append_number<std::int32_t>(to, at);
    case Kind::i64:
      return detail::append_number<std::int64_t>(to, at);
    case Kind::f32:
      return detail::append_number<float>(to, at);
    case Kind::f64:
      return detail::append_number<double>(to, at);
    case Kind::boolean:
      to += *at == std::byte{0} ? "false" : "true";
      return;
    case Kind::enumeration: {
      std::uint64_t value = 0;
      std::memcpy(&value, at,
                  field.bytes < 8 ? field.bytes : 8);  // little-endian, as all we run on
      std::string_view words = field.enumerators;
      for (std::uint64_t i = 0; i < value && !words.empty(); ++i) {
        const std::size_t comma = words.find(',');
        words = comma == words.npos ? std::string_view() : words.substr(comma + 1);
      }
      if (words.empty()) {
        to += std::to_string(value);
      } else {
        append_json_string(to, words.substr(0, words.find(',')));
      }
      return;
    }
    case Kind::name: {
      Name name;
      std::memcpy(&name, at, sizeof name);
      return append_json_string(to, name.view());
    }
    case Kind::text: {  // Text<N>: its size, then its bytes
      std::uint16_t size = 0;
      std::memcpy(&size, at, sizeof size);
      // A size that is wrong, from C for instance, does not lead past the field.
      const std::size_t held = std::min<std::size_t>(size & 0x7fffu, field.bytes - sizeof size);
      return append_json_string(to, {reinterpret_cast<const char*>(at) + sizeof size, held});
    }
  }
}

/// The keys in front of an event's own fields.
constexpr std::array<std::string_view, 9> kLineWords = {
    "channel", "time_ns",  "publisher",      "sequence",      "origin",
    "in_step", "in_phase", "in_micro_batch", "origin_process"};

/// Which process's lines these are, once for all of them.
inline void append_json_origin(std::string& to, const Origin& origin) {
  const RankIdentity& me = origin.process;
  const auto text = [&to](std::string_view key, std::string_view value) {
    to += key;
    append_json_string(to, value);
  };
  const auto number = [&to](std::string_view key, auto value) {
    to += key;
    to += std::to_string(value);
  };
  text("{\"host\":", me.host);
  number(",\"pid\":", me.pid);
  text(",\"program\":", origin.program);
  number(",\"rank\":", me.rank);
  number(",\"world_size\":", me.world_size);
  number(",\"local_rank\":", me.local_rank);
  number(",\"local_world_size\":", me.local_world_size);
  text(",\"job\":", me.job);
  number(",\"attempt\":", me.attempt);
  text(",\"launcher\":", me.launcher);
  number(",\"monotonic_ns\":", origin.monotonic_ns);
  number(",\"realtime_ns\":", origin.realtime_ns);
  to += '}';
}

/// Appends the event, and where it comes from, as one line with its line end. A field with the name
/// of one of the keys in front (collective.issued has a sequence of its own) gets "event_" before
/// its name, since names must be unique. The step, phase and micro-batch of the event are there
/// where they are known. `origin` is there where it is not empty, and in full where `introduce` is
/// true.
inline void append_json_line(std::string& to, const EventView& event,
                             const Origin* origin = nullptr, bool introduce = false) {
  const Stamp& stamp = event.stamp();
  to += "{\"channel\":";
  append_json_string(to, event.channel());
  to += ",\"time_ns\":" + std::to_string(stamp.time_ns);
  to += ",\"publisher\":" + std::to_string(stamp.publisher);
  to += ",\"sequence\":" + std::to_string(stamp.sequence);
  if (origin != nullptr) {
    ((to += ",\"origin\":\"") += origin->id) += '"';
    if (introduce) {
      to += ",\"origin_process\":";
      append_json_origin(to, *origin);
    }
  }
  if (const StepPlace in = event.in_step(); in.inside) {
    to += ",\"in_step\":" + std::to_string(in.step);
    if (in.phase != Name{}) {
      to += ",\"in_phase\":";
      append_json_string(to, in.phase.view());
    }
    if (in.micro_batch != 0) to += ",\"in_micro_batch\":" + std::to_string(in.micro_batch);
  }
  for (const FieldSchema& field : event.schema().fields) {
    const bool taken =
        std::find(kLineWords.begin(), kLineWords.end(), field.name) != kLineWords.end();
    to += ',';
    append_json_string(to, (taken ? "event_" : "") + std::string(field.name));
    to += ':';
    append_json_field(to, field, event.bytes().data());
  }
  to += "}\n";
}

}  // namespace ringmain::formats
