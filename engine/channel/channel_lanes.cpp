// A channel's lanes: whom may an old one serve, and where does a new one get its slots?
#include <algorithm>
#include <bit>
#include <new>
#include <type_traits>

#include "engine/channel/ahead.hpp"
#include "engine/channel/channel_core.hpp"
#include "engine/publish/mpmc_queue.hpp"
#include "engine/publish/queue_ops.hpp"
#include "engine/publish/ring_memory.hpp"
#include "engine/publish/segments.hpp"
#include "engine/system/assert.hpp"

namespace ringmain::engine {
namespace {

Atomic<std::uint32_t> last_publisher{0};

/// May a lane made for `had` serve a publisher that wants `wants`? Its memory decides.
bool serves(const LaneOptions& had, const LaneOptions& wants,
            std::uint32_t latency_every) noexcept {
  if (had.kind != wants.kind || had.realtime != wants.realtime || had.coalesce != wants.coalesce)
    return false;
  if (wants.kind == LaneKind::ring && std::bit_ceil(had.room()) != std::bit_ceil(wants.room()))
    return false;
  return latency_every == 0 ||
         marks_count(had.room(), latency_every) == marks_count(wants.room(), latency_every);
}

}  // namespace

Lane* ChannelCore::take_lane(const LaneOptions& wanted, const ChannelCore& source,
                             const Lane* fed_by) noexcept {
  if (inert()) return nullptr;
  LaneOptions options = wanted;
  // Runs that end in any order do not say which segments are over. What a user drains is taken into
  // memory of the user's, in one run of as many as there are.
  if ((options_.parallel || options_.for_its_user()) && options.kind == LaneKind::segments)
    options.kind = LaneKind::moodycamel;
  const std::lock_guard lock(mutex_);
  const std::uint32_t count = lane_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    Lane& old = lane(i);
    if (old.source != &source || (fed_by != nullptr && old.ordered.fed_by != fed_by) ||
        old.tenure.live.load(std::memory_order_relaxed) != 0 ||
        !serves(old.options, options, options_.latency_every))
      continue;
    if (old.tenure.live.exchange(1, std::memory_order_acquire) != 0) continue;  // e.lane_free
    if (old.published() == old.consumed.load(std::memory_order_acquire)) {      // e.consumed
      old.options = options;  // the owner looks at them next after e.published of the first event
      if (ticket_wishes_ != 0 && !give_tickets(old)) return give_lane(old), nullptr;
      if (!options.touched_later) touch_ring(old);
      start_lane(old);
      return &old;
    }
    old.tenure.live.store(0, std::memory_order_release);  // e.lane_free: not drained yet
  }
  if (count >= options_.lanes_max) return nullptr;
  Lane* made = make_lane(options, source, fed_by);
  if (made == nullptr) return nullptr;
  const ChunkPlace at = ChunkPlace::of(count);
  if (at.chunk >= ChunkPlace::kChunks) return free_lane(made), nullptr;
  if (chunks_[at.chunk] == nullptr) {
    chunks_[at.chunk].reset(new (std::nothrow) Lane*[ChunkPlace::size(at.chunk)]);
    if (chunks_[at.chunk] == nullptr) return free_lane(made), nullptr;
  }
  if (had_inline_) inline_list_.for_each([count](Subscriber& s) { s.cells.make(count + 1); });
  chunks_[at.chunk][at.place] = made;
  made->index = count;
  made->tenure.live.store(1, std::memory_order_relaxed);  // relaxed: not listed yet
  start_lane(*made);
  lane_count_.store(count + 1,
                    std::memory_order_release);  // e.listed: a thread that counts it finds it whole
  if (options.realtime)
    realtime_lanes_.fetch_add(1, std::memory_order_relaxed);  // relaxed: read at every poll
  if (options.realtime) host_->watch_realtime();
  if (made->untouched.load(std::memory_order_relaxed) != 0)  // relaxed: our own
    host_->inbox().note_news(true);
  return made;
}

void ChannelCore::start_lane(Lane& lane) noexcept {
  const std::uint64_t published =
      lane.word.load(std::memory_order_relaxed) >> 1;  // relaxed: nobody publishes here
  // Looks at room there first.
  lane.word_limit =
      2 * std::min(published + (std::uint64_t{lane.options.capacity} + 1) / 2, end_of_slots(lane));
  lane.before.published = published;
  lane.tenure.source_time.store(
      lane.options.source_time,
      std::memory_order_relaxed);  // relaxed: e.published of the first event
  lane.when_full.overrun.store(0, std::memory_order_relaxed);  // relaxed: as above
  lane.tenure.capacity.store(lane.options.capacity,
                             std::memory_order_relaxed);  // relaxed: as above
  lane.before.evicted =
      lane.undelivered.evicted.load(std::memory_order_relaxed);        // relaxed: as above
  lane.before.refused = lane.refused.load(std::memory_order_relaxed);  // relaxed: as above
  lane.before.observed =
      lane.unqueued.observed.load(std::memory_order_relaxed);  // relaxed: as above
  lane.before.discarded =
      lane.undelivered.discarded.load(std::memory_order_relaxed);  // relaxed: as above
  lane.tenure.first_sequence.store(
      published + lane.before.refused,
      std::memory_order_relaxed);  // relaxed: e.published of the first event
  lane.tenure.publisher.store(
      last_publisher.fetch_add(1, std::memory_order_relaxed) + 1,  // relaxed: a number, no more
      std::memory_order_relaxed);
  name_sources(lane);
}

Lane* ChannelCore::make_lane(const LaneOptions& options, const ChannelCore& source,
                             const Lane* fed_by) noexcept {
  const std::size_t envelope = options_.mailbox ? sizeof(Envelope) : 0;
  const unsigned size = slot_class(source.options_.payload_bytes + envelope);
  auto* made = new (std::nothrow) Lane;
  if (made == nullptr) return nullptr;
  made->line = &line;
  made->channel = this;
  made->source = &source;
  if (fed_by != nullptr) made->ordered.fed_by = fed_by;
  made->options = options;
  made->slot_bytes = slot_bytes(size);
  made->payload_offset = static_cast<std::uint32_t>(sizeof(SlotHeader) + envelope);
  bool whole = options_.queueless || give_slots(*made, size);
  if (whole && options_.latency_every != 0) {
    made->marks = new (std::nothrow)
        Atomic<std::uint64_t>[marks_count(options.room(), options_.latency_every)]();
    made->owner_marks = made->marks;
    whole = made->marks != nullptr;
  }
  whole = whole && (ticket_wishes_ == 0 || give_tickets(*made)) &&
          (!options_.merged || give_ahead(*made));
  if (whole) return made;
  free_lane(made);
  return nullptr;
}

/// The lane has no publisher, or its publisher keeps its capacity.
bool ChannelCore::give_tickets(Lane& lane) noexcept {
  Tickets* had =
      lane.ordered.tickets.load(std::memory_order_relaxed);  // relaxed: changed under our lock
  if (had != nullptr && had->mask + 1 >= lane.options.room()) return true;
  Tickets* made = make_tickets(lane.options.room(), lane.options.realtime);
  if (made == nullptr) return false;
  lane.ordered.tickets.store(made, std::memory_order_release);  // t.wanted
  free_tickets(had);
  return true;
}

bool ChannelCore::want_tickets() noexcept {
  if (inert()) return false;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < lane_count(); ++i) {
    if (!give_tickets(lane(i))) return false;
  }
  if (ticket_wishes_++ != 0) return true;
  tickets_since_.store(host_->tickets_taken(),
                       std::memory_order_relaxed);  // relaxed: t.wanted below
  line.state.fetch_or(ChannelLine::kTicketed, std::memory_order_seq_cst);  // t.wanted
  return true;
}

void ChannelCore::unwant_tickets() noexcept {
  if (inert()) return;
  const std::lock_guard lock(mutex_);
  RINGMAIN_ASSERT(ticket_wishes_ > 0);  // each wish is taken back once
  if (--ticket_wishes_ == 0)
    line.state.fetch_and(~ChannelLine::kTicketed, std::memory_order_seq_cst);  // t.wanted
}

void ChannelCore::touch_lanes() noexcept {
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) touch_ring(lane(i));
}

bool ChannelCore::give_slots(Lane& lane, unsigned slot_class) noexcept {
  if (lane.options.kind == LaneKind::segments) return give_segments(lane);
  const bool given =
      lane.options.kind == LaneKind::ring ? give_ring(lane) : give_queue(lane, slot_class);
  lane.owner_slots = lane.slots;
  return given;
}

bool ChannelCore::give_queue(Lane& lane, unsigned slot_class) noexcept {
  const QueueOps& ops = queue_ops(slot_class);
  if (queues_[slot_class] == nullptr) queues_[slot_class] = ops.make();
  if (queues_[slot_class] == nullptr) return false;
  lane.slots.queue = queues_[slot_class];
  lane.slots.token = ops.make_token(lane.slots.queue);
  lane.owner_ops = &ops;
  return lane.slots.token != nullptr;
}

void ChannelCore::free_lane(Lane* lane) noexcept {
  if (lane->options.kind == LaneKind::segments) {
    free_segments(*lane);
  } else {
    free_ring(*lane);
  }
  free_tickets(
      lane->ordered.tickets.load(std::memory_order_relaxed));  // relaxed: nobody has the lane
  free_ahead(*lane);
  delete lane->slots.token;
  delete[] lane->marks;
  delete[] lane->slots.claims;
  delete lane;
}

void ChannelCore::give_lane(Lane& lane) noexcept {
  lane.tenure.live.store(0, std::memory_order_release);  // e.lane_free: the next publisher
                                                         // continues where this one stopped
}

void ChannelCore::count_refused(Pushed why) noexcept {
  static_assert(std::extent_v<decltype(refused_)> > static_cast<std::size_t>(Pushed::forked));
  refused_[static_cast<std::size_t>(why)].fetch_add(1,
                                                    std::memory_order_relaxed);  // relaxed: a count
}

bool ChannelCore::anything_left() const noexcept {
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    const Lane& one = lane(i);
    // With parallel delivery, runs that other workers hand out are not left to do.
    const Atomic<std::uint64_t>& gone = options_.parallel ? one.taken : one.consumed;
    // Signed: a ring's slot is seen before its lane's word.
    const auto left = static_cast<std::int64_t>(
        (one.word.load(std::memory_order_relaxed) >> 1) -  // relaxed: asymmetric_fence_heavy()
        gone.load(std::memory_order_relaxed));             // came before
    if (left > 0) return true;
  }
  return false;
}

bool ChannelCore::fed() const noexcept {
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    if (lane(i).tenure.live.load(std::memory_order_acquire) != 0) return true;  // e.lane_free
  }
  return false;
}

}  // namespace ringmain::engine
