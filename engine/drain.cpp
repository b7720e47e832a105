#include "ringmain/engine/drain.hpp"

#include <algorithm>
#include <climits>

#include "ringmain/engine/queue_ops.hpp"
#include "ringmain/engine/workers.hpp"

namespace ringmain::engine {
namespace {

std::uint32_t take_from_ring(Lane& lane, std::uint64_t consumed, std::size_t max) noexcept {
  const std::uint64_t at = consumed & lane.owner_mask;
  const std::size_t contiguous = std::min<std::size_t>(max, lane.owner_mask + 1 - at);
  const std::byte* slot = lane.owner_ring + at * lane.slot_bytes;
  std::uint32_t taken = 0;
  for (; taken < contiguous; ++taken, slot += lane.slot_bytes) {
    auto& word = const_cast<std::uint64_t&>(reinterpret_cast<const SlotHeader*>(slot)->sequence);
    const std::uint64_t sequence =
        AtomicRef<std::uint64_t>(word).load(std::memory_order_acquire);  // E2
    if (sequence <= lane.last_sequence) break;  // the last lap's: not written yet
    lane.last_sequence = sequence;
  }
  return taken;
}

void measure(ChannelCore& channel, const Lane& lane, const Run& run,
             std::uint64_t consumed) noexcept {
  Histogram* latency = channel.owner_latency();
  if (latency == nullptr || lane.owner_marks == nullptr) return;
  const std::uint64_t every = channel.options().latency_every;
  const std::size_t mask = marks_count(lane.options.capacity, every) - 1;
  for (std::uint64_t i = (consumed + every - 1) / every * every; i < consumed + run.count;
       i += every) {
    // Relaxed: written before the slot, whose E2 we have passed. 0: published before anybody
    // measured.
    const std::uint64_t mark = lane.owner_marks[(i / every) & mask].load(std::memory_order_relaxed);
    if (mark != 0) latency->add(run.taken() - static_cast<std::int64_t>(mark));
  }
}

void hand_to(Drainer& drainer, Subscriber& subscriber, const Run& run) noexcept {
  subscriber.offered.add(run.count);
  if (subscriber.gate.enter()) {
    const CallbackScope scope;
    drainer.running.store(subscriber.name_id + 1,
                          std::memory_order_relaxed);  // relaxed: for stop()'s report
    subscriber.call(subscriber, run);
    drainer.running.store(0, std::memory_order_relaxed);  // relaxed: as above
  } else {
    subscriber.skipped.add(run.count);
  }
  if (subscriber.gate.leave()) {
    const CallbackScope scope;  // captures are the user's code: a worker must not wait in it either
    destroy_captures(subscriber);
  }
}

const Snapshot* current_snapshot(Drainer& drainer, const ChannelCore& channel) noexcept {
  // What we already show as read needs no second announcement.
  const Snapshot* now = channel.snapshot().load(std::memory_order_acquire);  // N1
  if (now == drainer.reading.load(std::memory_order_relaxed)) return now;  // relaxed: our own word
  return protect(channel.snapshot(), drainer.reading);
}

void advance(ChannelCore& channel, Lane& lane, std::uint64_t consumed) noexcept {
  lane.consumed.store(consumed, std::memory_order_release);  // E1
  light_or_fence();                                          // L3
  // Relaxed: heavy() on the waiters' side comes between their store and their look at consumed.
  if (consumed >= lane.wake_at.load(std::memory_order_relaxed)) {
    lane.room_key.fetch_add(1, std::memory_order_release);  // E1
    futex_wake(lane.room_key, INT_MAX);
  }
  channel.workers().consumed_something();
}

}  // namespace

Run take_run(Lane& lane, std::byte* room, std::size_t max) noexcept {
  Run run;
  const std::uint64_t consumed =
      lane.consumed.load(std::memory_order_relaxed);  // relaxed: our own while we hold the lease
  if (lane.owner_ring != nullptr) {
    run.count = take_from_ring(lane, consumed, max);
    run.first = lane.owner_ring + (consumed & lane.owner_mask) * lane.slot_bytes;
  } else {
    const std::size_t fits = std::min<std::size_t>(max, Drainer::kRoomBytes / lane.slot_bytes);
    run.count = static_cast<std::uint32_t>(
        lane.owner_ops->take(lane.owner_queue, *lane.owner_token, room, fits));
    run.first = room;
  }
  if (run.count == 0) return run;
  run.stride = lane.slot_bytes;
  run.payload_offset = lane.payload_offset;
  run.publisher =
      lane.publisher.load(std::memory_order_relaxed);  // relaxed: before its first event, E2
  run.first_sequence = lane.first_sequence.load(std::memory_order_relaxed);  // relaxed: as above
  run.source = lane.source;
  run.source_time = lane.owner_source_time.load(std::memory_order_relaxed);  // relaxed: as above
  return run;
}

void finish_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept {
  advance(channel, lane,
          lane.consumed.load(std::memory_order_relaxed) + run.count);  // relaxed: our own
}

void discard_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept {
  // Relaxed: the owner's count; E1 of the store behind it makes it visible.
  lane.discarded.store(lane.discarded.load(std::memory_order_relaxed) + run.count,
                       std::memory_order_relaxed);
  finish_run(channel, lane, run);
}

std::size_t drain(Drainer& drainer, ChannelCore& channel, std::size_t quantum) noexcept {
  const std::uint32_t lanes = channel.lane_count();
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < lanes && taken < quantum; ++i) {
    if (++channel.rota >= lanes) channel.rota = 0;
    Lane& lane = channel.lane(channel.rota);
    const Run run =
        take_run(lane, drainer.room, std::min<std::size_t>(quantum - taken, Drainer::kBatchMax));
    if (run.count == 0) continue;
    if (taken == 0) drainer.before_callbacks(channel);
    taken += run.count;
    if (channel.workers().aborting()) {
      discard_run(channel, lane, run);
      continue;
    }
    if (channel.by_hand()) run.taken_ns = channel.stamp_ns();
    measure(channel, lane, run, lane.consumed.load(std::memory_order_relaxed));  // relaxed: our own
    // After the run is taken: whoever subscribed before an event was published is in this snapshot.
    if (const Snapshot* snapshot = current_snapshot(drainer, channel)) {
      for (Subscriber* s : snapshot->subscribers) hand_to(drainer, *s, run);
    }
    channel.dispatched.add(run.count);
    finish_run(channel, lane, run);
  }
  return taken;
}

}  // namespace ringmain::engine
