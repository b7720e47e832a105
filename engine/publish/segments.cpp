#include "engine/publish/segments.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "engine/publish/segment_size.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {
namespace {

enum : std::uint64_t { kLineNs = 52 };  // beyond it a longer way round is of no use

Segment* make(std::uint64_t slots, std::uint32_t slot_bytes) noexcept {
  const std::size_t bytes = sizeof(Segment) + slots * slot_bytes;
  void* room = std::aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
  if (room == nullptr) return nullptr;
  auto* made = ::new (room) Segment;
  made->mask = slots - 1;
  // Sequence 0: never written. Later laps need nothing, as sequences only grow.
  for (std::uint64_t i = 0; i < slots; ++i) {
    ::new (made->slots() + i * slot_bytes) SlotHeader{0, 0};
  }
  return made;
}

void free_one(Segment* one) noexcept {
  std::destroy_at(one);
  std::free(one);  // NOLINT: the pair of aligned_alloc
}

void free_all(Segment* first) noexcept {
  while (first != nullptr) {
    Segment* const next = first->next.load(std::memory_order_relaxed);  // relaxed: we are the last
    free_one(first);
    first = next;
  }
}

/// The first of the lane's segments, if the owner has left it; else nullptr. At the end of a
/// segment the owner may still look for the next one, so it is left only when an event after it is
/// consumed.
Segment* come_back(Segments& all, std::uint64_t consumed) noexcept {
  if (all.oldest == all.writing || all.oldest->end >= consumed) return nullptr;
  return std::exchange(all.oldest,
                       all.oldest->next.load(std::memory_order_relaxed));  // relaxed: our own
}

/// Of one that is made for the event with this index: as many as the last one has, or twice as
/// many. One that begins at a multiple of its size does not wrap, so runs are longer.
std::uint64_t slots_of_next(const Segments& all, const Lane& lane, std::uint64_t index) noexcept {
  const std::uint64_t slots = all.writing->mask + 1;
  return 2 * slots <= slots_at_most(lane.slot_bytes) && index % (2 * slots) == 0 ? 2 * slots
                                                                                 : slots;
}

/// The one that follows the last. nullptr: out of memory.
Segment* make_next(Segments& all, const Lane& lane, std::uint64_t index) noexcept {
  const std::uint64_t slots = slots_of_next(all, lane, index);
  Segment* const made = make(slots, lane.slot_bytes);
  if (made != nullptr) all.slots += slots;
  return made;
}

/// Shall the lane get one more though events would find room without it? Where the way round is
/// shorter than the cache of the owner's core, each line comes back from there, at a quarter of the
/// pace. So a publisher that went all the way round at a pace above that one, with a worker behind
/// it, goes a longer way, within the lane's capacity.
bool streams(Segments& all, const Lane& lane, std::uint64_t index, std::uint64_t waiting) noexcept {
  const std::int64_t now = now_ns();
  const std::uint64_t slots = all.writing->mask + 1;
  if (now - std::exchange(all.extended_ns, now) >=
      static_cast<std::int64_t>(slots * lane.slot_bytes * kLineNs / kLineBytes)) {
    all.streamed = 0;
    return false;
  }
  if (waiting < slots / 2) return false;
  all.streamed += slots;
  const std::uint64_t more = all.slots + slots_of_next(all, lane, index);
  return all.streamed > all.slots && more <= lane.options.capacity &&
         more * lane.slot_bytes <= kStreamBytes;
}

}  // namespace

bool give_segments(Lane& lane) noexcept {
  auto* all = new (std::nothrow) Segments;
  lane.slots.queue = all;
  if (all == nullptr) return false;
  const std::uint64_t slots = slots_of_first(lane.slot_bytes);
  Segment* const first = make(slots, lane.slot_bytes);
  all->oldest = all->writing = first;
  if (first == nullptr) return false;
  first->end = slots;
  // As one that ended before the first event, it comes back once that is heard: with two of them a
  // lane in which nothing waits never needs more memory.
  Segment* const before = make(slots, lane.slot_bytes);
  if (before == nullptr) return false;
  before->next.store(first, std::memory_order_relaxed);  // relaxed: not listed yet
  all->oldest = before;
  all->slots = 2 * slots;
  lane.slots.ring = first->slots();
  lane.slots.mask = first->mask;
  lane.owner_slots = lane.slots;
  lane.owner_slots.queue = first;
  return true;
}

void free_segments(Lane& lane) noexcept {
  auto* all = static_cast<Segments*>(lane.slots.queue);
  if (all == nullptr) return;
  free_all(all->oldest);
  delete all;
}

bool extend(Lane& lane, std::uint64_t index) noexcept {
  auto& all = *static_cast<Segments*>(lane.slots.queue);
  const std::uint64_t consumed = lane.consumed.load(std::memory_order_acquire);  // e.consumed
  Segment* to = streams(all, lane, index, index - consumed) ? make_next(all, lane, index) : nullptr;
  if (to == nullptr) to = come_back(all, consumed);
  if (to == nullptr) to = make_next(all, lane, index);
  if (to == nullptr) return false;
  to->next.store(nullptr, std::memory_order_relaxed);  // relaxed: s.linked below
  to->end = index + to->mask + 1;
  all.writing->next.store(to, std::memory_order_release);  // s.linked
  all.writing = to;
  lane.slots.ring = to->slots();
  lane.slots.mask = to->mask;
  return true;
}

}  // namespace ringmain::engine
