// What is published for a record of a trace that has no channel of its own? A slice, an instant, a
// counter, a flow or a piece of metadata: the five shapes of the Chrome trace format.
//
// The time of each is its stamp's time. Processes and threads are Names because traces hold both
// numbers and words there. Fields that a record does not have read 0, device -1, stream kNoStream.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"

namespace ringmain::replay {

constexpr std::uint64_t kNoStream = ~std::uint64_t{0};  // 0 is CUDA's default stream
constexpr std::int32_t kNoDevice = -1;

/// Something that lasts: an operator, a kernel, an annotation.
struct Slice {
  std::int64_t duration_ns = 0;  // 0 for begin and end
  std::uint64_t id = 0;          // pairs begin and end where slices overlap (async)
  std::uint64_t correlation = 0;
  std::uint64_t external_id = 0;  // joins operators and the GPU work that they launched
  std::uint64_t stream = kNoStream;
  std::uint64_t bytes = 0;  // of copies and fills
  Name name;
  Name category;
  Name process;
  Name thread;
  std::int32_t device = kNoDevice;
  enum class Phase : std::uint8_t { complete, begin, end } phase = Phase::complete;
};

/// Something that happened at a point in time. Allocator records fill the last four fields.
struct Instant {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  // negative if freed
  std::int64_t allocated_bytes = 0;
  std::int64_t reserved_bytes = 0;
  Name name;
  Name category;
  Name process;
  Name thread;
  Name letter;  // the record's phase as written: i, n, O …
  std::int32_t device = kNoDevice;
};

/// One series of one counter record.
struct Counter {
  double value = 0;
  Name name;
  Name series;
  Name category;
  Name process;
  Name thread;
};

/// An arrow from one slice to another, as its two or more ends.
struct Flow {
  std::uint64_t id = 0;
  Name name;
  Name category;
  Name process;
  Name thread;
  enum class Phase : std::uint8_t { start, step, end } phase = Phase::start;
};

/// A name, a label or a rank in the display, of a process or thread.
struct Metadata {
  Name name;   // process_name, thread_name, process_labels …
  Name value;  // as text
  Name process;
  Name thread;
};

constexpr auto describe(EventOf<Slice>) {
  using E = Slice;
  return event("replay.slice", field<&E::name>("name"), field<&E::category>("category"),
               field<&E::phase>("phase", "complete,begin,end"),
               field<&E::duration_ns>("duration_ns", Unit::ns), field<&E::process>("process"),
               field<&E::thread>("thread"), field<&E::device>("device", Unit::device),
               field<&E::stream>("stream", Unit::stream), field<&E::bytes>("bytes", Unit::bytes),
               field<&E::correlation>("correlation", Unit::id),
               field<&E::external_id>("external_id", Unit::id), field<&E::id>("id", Unit::id));
}
constexpr auto describe(EventOf<Instant>) {
  using E = Instant;
  return event("replay.instant", field<&E::name>("name"), field<&E::category>("category"),
               field<&E::letter>("letter"), field<&E::process>("process"),
               field<&E::thread>("thread"), field<&E::device>("device", Unit::device),
               field<&E::address>("address", Unit::address), field<&E::bytes>("bytes", Unit::bytes),
               field<&E::allocated_bytes>("allocated_bytes", Unit::bytes),
               field<&E::reserved_bytes>("reserved_bytes", Unit::bytes));
}
constexpr auto describe(EventOf<Counter>) {
  using E = Counter;
  return event("replay.counter", field<&E::name>("name"), field<&E::series>("series"),
               field<&E::value>("value"), field<&E::category>("category"),
               field<&E::process>("process"), field<&E::thread>("thread"));
}
constexpr auto describe(EventOf<Flow>) {
  using E = Flow;
  return event("replay.flow", field<&E::name>("name"), field<&E::category>("category"),
               field<&E::phase>("phase", "start,step,end"), field<&E::id>("id", Unit::id),
               field<&E::process>("process"), field<&E::thread>("thread"));
}
constexpr auto describe(EventOf<Metadata>) {
  using E = Metadata;
  return event("replay.metadata", field<&E::name>("name"), field<&E::value>("value"),
               field<&E::process>("process"), field<&E::thread>("thread"));
}

static_assert(sizeof(Slice) <= 72 && sizeof(Instant) <= 72);

}  // namespace ringmain::replay
