#include "engine/publish/room.hpp"

#include <algorithm>

#include "engine/channel/channel_core.hpp"
#include "engine/publish/push.hpp"
#include "engine/publish/segments.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {
namespace {

/// Publishing goes on to `end` without a look at the owner, or to the end of the segment.
bool admit(Lane& lane, std::uint64_t word, std::uint64_t end) noexcept {
  lane.word_limit = 2 * std::min(end, end_of_slots(lane));
  return word < 2 * end;
}

/// Looks at how far the owner is, and wakes a resting worker if the lane is half full. False: there
/// is still no room for the event after `word`.
bool has_room(Lane& lane, std::uint64_t word) noexcept {
  const std::uint64_t consumed = lane.consumed.load(std::memory_order_acquire);  // e.consumed
  if (lane.channel->patient.load(std::memory_order_relaxed)) {  // relaxed: a rest ends by itself
    if (admit(lane, word, consumed + lane.options.capacity / 2)) return true;
    lane.channel->host().end_rests();
  }
  if (admit(lane, word, consumed + lane.options.capacity)) return true;
  if (lane.options.overflow != Overflow::drop_oldest) return false;
  const std::uint64_t end = consumed + lane.options.room();
  // Relaxed: written before the event, whose e.published comes after it. Written on change only.
  if (lane.when_full.overrun.load(std::memory_order_relaxed) != end)
    lane.when_full.overrun.store(end, std::memory_order_relaxed);
  return admit(lane, word, end);
}

/// For an event for which there is room: a slot too. A lane that is not extended is no longer busy.
Pushed find_slot(Lane& lane, std::uint64_t word) noexcept {
  if (word < lane.word_limit) return Pushed::accepted;
  if (!extend(lane, word >> 1)) return end(lane, word, 0), Pushed::no_memory;
  (void)has_room(lane, word);  // up to the end of that segment
  return Pushed::accepted;
}

/// Waits, while the lane is not busy, until half of it is free, so that one wake-up serves many
/// events.
Pushed wait_for_room(Lane& lane, const Deadline& deadline) noexcept {
  if (in_callback()) return Pushed::would_deadlock;
  if (lane.channel->manual()) return Pushed::full;  // no other thread makes room
  lane.underway.waiting = true;  // a handler that waited too would take the wake-up
  order_for_handlers();
  const std::uint64_t word = lane.word.load(std::memory_order_relaxed);  // relaxed: our own
  const std::uint64_t published = word >> 1;
  const std::uint64_t half = std::max<std::uint64_t>(1, lane.options.capacity / 2);
  lane.when_full.wake_at.store(published - std::min(published, half),
                               std::memory_order_seq_cst);  // l.waiting
  asymmetric_fence_heavy();                                 // l.waiting
  Pushed result = Pushed::full;
  for (;;) {
    const std::uint32_t key =
        lane.when_full.room_key.load(std::memory_order_acquire);  // e.consumed
    if (has_room(lane, word)) result = Pushed::accepted;
    if (lane.line->closing()) result = Pushed::closed;
    if (result != Pushed::full) break;
    if (lane.line->leased.load(std::memory_order_relaxed) == 0)
      notify(lane);  // relaxed: asymmetric_fence_heavy() came before
    const std::int64_t left = deadline.left_ns();
    if (left == 0) break;
    futex_wait(lane.when_full.room_key, key, left);
  }
  lane.when_full.wake_at.store(~std::uint64_t{0},
                               std::memory_order_relaxed);  // relaxed: a late wake-up harms nobody
  order_for_handlers();
  lane.underway.waiting = false;
  return result;
}

}  // namespace

Pushed begin_with_room(Lane& lane, std::uint64_t& word) noexcept {
  if ((word = begin(lane)) == 0) return Pushed::too_deep;
  if (word < lane.word_limit || has_room(lane, word)) return find_slot(lane, word);
  end(lane, word, 0);
  if (lane.options.overflow != Overflow::block) return Pushed::full;
  const Deadline deadline(lane.options.block_ns_max);
  for (;;) {
    const Pushed waited = wait_for_room(lane, deadline);
    if (waited != Pushed::accepted) return waited;
    if ((word = begin(lane)) == 0) return Pushed::too_deep;
    if (has_room(lane, word)) return find_slot(lane, word);
    end(lane, word, 0);  // a handler has taken the room
  }
}

}  // namespace ringmain::engine
