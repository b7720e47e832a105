// What does a program mark through NVTX? Ranges and marks, with the text, category, colour and
// number that it gave them.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::nvtx {

/// Which payload field holds what the program gave. `extended`: a structure of its own, not read.
enum class Payload : std::uint8_t { none, u64, i64, f64, u32, i32, f32, extended };

/// In place: programs make messages anew for each step, and interned text is never freed.
using Message = Text<160>;

/// What the program gave with a range or a mark. At most one payload field is not 0.
struct Given {
  std::uint64_t payload_unsigned = 0;
  std::int64_t payload_signed = 0;
  double payload_float = 0;
  std::uint32_t category = 0;  // 0: none
  Name category_name;          // as the program had named it before
  std::uint32_t color = 0;     // 0xAARRGGBB; 0: none
  Payload payload = Payload::none;
  Message message;
};

enum class Edge : std::uint8_t { begin, end };
/// A pushed range ends in its thread, innermost first; a started one in any thread, at any time.
enum class Shape : std::uint8_t { pushed, started };

/// `nvtx.range`. The end repeats the message, if its begin was heard.
struct Range : Given {
  std::uint64_t id = 0;      // the same at begin and end, and not used again in this process
  std::int64_t took_ns = 0;  // at the end: since its begin, if that was heard; CLOCK_MONOTONIC
  Name domain;               // "" for the default one
  std::uint32_t thread = 0;  // Linux's id of the calling thread
  std::uint32_t depth = 0;   // in how many pushed ranges of its thread and domain it is
  Edge edge = Edge::begin;
  Shape shape = Shape::pushed;
};

/// `nvtx.mark`: a moment.
struct Mark : Given {
  Name domain;
  std::uint32_t thread = 0;
};

constexpr auto describe(EventOf<Range>) {
  using E = Range;
  return event("nvtx.range", field<&E::message>("message"), field<&E::edge>("edge", "begin,end"),
               field<&E::shape>("shape", "pushed,started"), field<&E::domain>("domain"),
               field<&E::id>("id", Unit::id), field<&E::thread>("thread", Unit::id),
               field<&E::depth>("depth", Unit::count), field<&E::took_ns>("took_ns", Unit::ns),
               field<&E::category>("category", Unit::id), field<&E::category_name>("category_name"),
               field<&E::color>("color"),
               field<&E::payload>("payload", "none,u64,i64,f64,u32,i32,f32,extended"),
               field<&E::payload_unsigned>("payload_unsigned"),
               field<&E::payload_signed>("payload_signed"),
               field<&E::payload_float>("payload_float"));
}
constexpr auto describe(EventOf<Mark>) {
  using E = Mark;
  return event("nvtx.mark", field<&E::message>("message"), field<&E::domain>("domain"),
               field<&E::thread>("thread", Unit::id), field<&E::category>("category", Unit::id),
               field<&E::category_name>("category_name"), field<&E::color>("color"),
               field<&E::payload>("payload", "none,u64,i64,f64,u32,i32,f32,extended"),
               field<&E::payload_unsigned>("payload_unsigned"),
               field<&E::payload_signed>("payload_signed"),
               field<&E::payload_float>("payload_float"));
}

}  // namespace ringmain::nvtx
