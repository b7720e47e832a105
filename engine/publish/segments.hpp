// How does a lane hold as many events as there are, and no more memory than they need?
//
// Segments of slots, linked as they are filled. The publisher writes the last one, the owner reads
// the first; inside a segment both go by the rules of a ring. A segment comes back to the publisher
// once the owner has consumed an event of a later one: the ledger says so, and nothing else is
// stored for it. What came back first is used first: its lines have left the owner's cache, from
// which the publisher would have to fetch each of those that were just read.
//
// A lane that changes its publisher keeps its segments: the next one finds them by e.lane_free.
// Model: tests/model/segments.pml, edge s.linked by the same name here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "lane.hpp"

namespace ringmain::engine {

/// The slots follow it in memory. Event `i` is in slot `i & mask`: a segment begins at any index,
/// and so wraps once.
struct alignas(kLineBytes) Segment {
  // Written before it is linked.
  std::uint64_t end = 0;   // the index after its last event
  std::uint64_t mask = 0;  // its slots - 1
  // Written by the publisher. On a line of its own, as the owner reads `end` at every look.
  alignas(kLineBytes) Atomic<Segment*> next{nullptr};

  [[nodiscard]] std::byte* slots() noexcept {
    return reinterpret_cast<std::byte*>(this) + sizeof(Segment);
  }
};

/// The publisher's side of a lane's segments.
struct Segments {
  Segment* writing = nullptr;  // the last one
  Segment* oldest = nullptr;   // the first one, by `next`
  std::uint64_t slots = 0;     // of all
  // A stream: events that were published one right after the other, and when they last were.
  std::uint64_t streamed = 0;
  std::int64_t extended_ns = 0;
};

/// Gives a new lane its first two. False: out of memory; free_segments() all the same.
[[nodiscard]] bool give_segments(Lane& lane) noexcept;
void free_segments(Lane& lane) noexcept;

/// Links a segment for the event with this index, which is the end of the one that is written.
/// False: out of memory, and nothing has changed. Threads: the lane's publisher, while it is busy.
[[nodiscard]] bool extend(Lane& lane, std::uint64_t index) noexcept;

/// The index after the last event for which there is a slot; without segments more than there ever
/// are, half of the largest number, as words are twice an index.
[[nodiscard]] inline std::uint64_t end_of_slots(const Lane& lane) noexcept {
  if (lane.options.kind != LaneKind::segments || lane.slots.queue == nullptr)
    return ~std::uint64_t{0} >> 1;
  return static_cast<const Segments*>(lane.slots.queue)->writing->end;
}

/// Goes on to the segment of the event with this index, if that is not in the one that is read.
/// False: it is not there yet. Threads: the holder of the channel's lease.
[[gnu::always_inline]] inline bool step_on(Lane& lane, std::uint64_t index) noexcept {
  auto* reading = static_cast<Segment*>(lane.owner_slots.queue);
  if (reading == nullptr || index != reading->end) [[likely]]
    return true;
  Segment* const next = reading->next.load(std::memory_order_acquire);  // s.linked
  if (next == nullptr) return false;
  lane.owner_slots.queue = next;
  lane.owner_slots.ring = next->slots();
  lane.owner_slots.mask = next->mask;
  return true;
}

}  // namespace ringmain::engine
