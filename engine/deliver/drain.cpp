#include "engine/deliver/drain.hpp"

#include <algorithm>
#include <climits>

#include "engine/publish/queue_ops.hpp"
#include "engine/publish/segments.hpp"
#include "engine/subscribe/worker_calls.hpp"

namespace ringmain::engine {
namespace {

/// False: the feeder is putting a newer event in its place. It is as if it were not there yet.
bool claim(Lane& lane, std::uint64_t slot) noexcept {
  std::uint8_t queued = Lane::kQueued;
  return lane.owner_slots.claims[slot].compare_exchange_strong(
      queued, Lane::kTaken, std::memory_order_acquire, std::memory_order_relaxed);  // k.claim
}

std::uint64_t written(const std::byte* slot) noexcept {
  auto& word = const_cast<std::uint64_t&>(reinterpret_cast<const SlotHeader*>(slot)->sequence);
  return AtomicRef<std::uint64_t>(word).load(std::memory_order_acquire);  // e.published
}

/// Of a ring, or segments: where the event with that index lies. nullptr: its segment is not there
/// yet.
const std::byte* slot_of(Lane& lane, std::uint64_t index) noexcept {
  if (!step_on(lane, index)) return nullptr;
  return lane.owner_slots.ring + (index & lane.owner_slots.mask) * lane.slot_bytes;
}

/// True for a ring, or segments, in which nothing waits. A look that finds nothing costs no more
/// than this. `glances`: nullptr unless it is the only lane.
bool is_empty_ring(Lane& lane, Glances* glances) noexcept {
  if (lane.owner_slots.ring == nullptr) return false;
  const std::byte* const slot = slot_of(
      lane, lane.consumed.load(std::memory_order_relaxed));  // relaxed: our own, by the lease
  const std::uint64_t last = lane.last_sequence;
  if (slot != nullptr && written(slot) > last) return false;
  if (!lane.was_empty) lane.was_empty = true;
  if (slot == nullptr || glances == nullptr) return true;
  while (glances->again()) {
    if (written(slot) > last) return false;
  }
  return true;
}

/// Takes events into `run`. After an empty look it takes one: looking for a second would touch a
/// cache line that another core may own, while the first event waits.
void take_from_ring(Lane& lane, std::uint64_t consumed, std::size_t max, Run& run) noexcept {
  const std::byte* slot = slot_of(lane, consumed);
  if (slot == nullptr) return;
  run.first = slot;
  const std::uint64_t at = consumed & lane.owner_slots.mask;
  // Behind the end of a segment are the slots of its first events, which end a run by themselves.
  std::size_t contiguous =
      lane.was_empty ? 1 : std::min<std::size_t>(max, lane.owner_slots.mask + 1 - at);
  // Copied to locals: the loop writes to the lane, so the compiler would read them anew each time.
  const bool claims = lane.owner_slots.claims != nullptr;
  // Keys that are queued again while this run is taken belong to the next run. A run that took them
  // too could fill the ring with one key, and leave no room for the newest event of another.
  if (claims) contiguous = std::min<std::size_t>(contiguous, lane.published() - consumed);
  const std::uint32_t slot_bytes = lane.slot_bytes;
  std::uint64_t last = lane.last_sequence;
  std::uint32_t taken = 0;
  for (; taken < contiguous; ++taken, slot += slot_bytes) {
    const std::uint64_t sequence = written(slot);
    if (sequence <= last) break;  // of the last lap: the slot is not written yet
    if (claims && !claim(lane, at + taken)) break;
    last = sequence;
  }
  lane.last_sequence = last;
  lane.was_empty = false;
  run.count = taken;
}

[[gnu::noinline]] void measure_all(Histogram* latency, ChannelCore& channel, const Lane& lane,
                                   const Run& run, std::uint64_t consumed) noexcept {
  const std::uint64_t every = channel.options().latency_every;
  const std::size_t mask = marks_count(lane.options.room(), every) - 1;
  for (std::uint64_t i = (consumed + every - 1) / every * every; i < consumed + run.count;
       i += every) {
    // Relaxed: written before the slot, whose e.published we have passed. 0: published before
    // anybody measured.
    const std::uint64_t mark = lane.owner_marks[(i / every) & mask].load(std::memory_order_relaxed);
    if (mark != 0) latency->add(run.taken() - static_cast<std::int64_t>(mark));
  }
}

void measure(ChannelCore& channel, const Lane& lane, const Run& run,
             std::uint64_t consumed) noexcept {
  Histogram* latency = channel.owner_latency();
  if (latency == nullptr || lane.owner_marks == nullptr) return;
  measure_all(latency, channel, lane, run, consumed);
}

/// A destructor of captures is user code: a worker must not wait there either.
[[gnu::noinline, gnu::cold]] void destroy_in_callback(Subscriber& subscriber) noexcept {
  const CallbackScope scope;
  destroy_captures(subscriber);
}

void hand_to(Drainer& drainer, Subscriber& subscriber, const Run& run) noexcept {
  subscriber.count(subscriber.offered, run.count);
  const Entered entered = enter_call(subscriber, drainer.shown);
  if (entered != Entered::refused) [[likely]] {
    const CallbackScope scope;
    drainer.calling.store(call_word(++drainer.turns, subscriber.watch_id),
                          std::memory_order_relaxed);  // relaxed: looked at now and then
    subscriber.call(subscriber, run);
    drainer.calling.store(0, std::memory_order_relaxed);  // relaxed: as above
  } else {
    subscriber.count(subscriber.skipped, run.count);
  }
  if (leave_call(subscriber, drainer.shown, entered)) destroy_in_callback(subscriber);
}

const Snapshot* current_snapshot(Drainer& drainer, const ChannelCore& channel) noexcept {
  // What this thread already shows as read needs no second announcement.
  const Snapshot* now = channel.snapshot().load(std::memory_order_acquire);  // n.snapshot
  if (now == drainer.reading.load(std::memory_order_relaxed)) return now;  // relaxed: our own word
  return protect(channel.snapshot(), drainer.reading);
}

/// Says how much room the lane of a run has, for whoever waits after it: none where its publisher
/// pushes events out, or where more of them wait than the drainer has room for. While its channel's
/// lease is held.
void note_room(Drainer& drainer, const Run& run) noexcept {
  const Lane& lane = *run.lane;
  const bool did_not_fit =
      lane.owner_slots.ring == nullptr && run.count < Drainer::kBatchMax &&
      (std::size_t{run.count} + 1) * lane.slot_bytes > std::size_t{Drainer::kRoomBytes};
  const bool overrun = lane.run_max != ~0u;
  const std::uint32_t room =
      overrun || did_not_fit
          ? 0
          : lane.tenure.capacity.load(std::memory_order_relaxed);  // relaxed: e.published
  drainer.least_room = std::min(drainer.least_room, room);
}

/// Wakes the threads that wait for `consumed`, or for the end of a run.
void tell(ChannelCore& channel, Lane& lane, std::uint64_t consumed) noexcept {
  asymmetric_fence_light_or_full();  // l.waiting
  // Relaxed: asymmetric_fence_heavy() on the waiters' side comes between their store and their look
  // at consumed.
  if (consumed >= lane.when_full.wake_at.load(std::memory_order_relaxed)) {
    lane.when_full.room_key.fetch_add(1, std::memory_order_release);  // e.consumed
    futex_wake(lane.when_full.room_key, INT_MAX);
  }
  channel.host().consumed_something();
}

void advance(ChannelCore& channel, Lane& lane, std::uint64_t consumed) noexcept {
  lane.consumed.store(consumed, std::memory_order_release);  // e.consumed
  tell(channel, lane, consumed);
}

/// Takes no more than fit into `room`, whatever `max` is. A ring's events stay where they are.
Run take_what_is_there(Lane& lane, std::span<std::byte> room, std::size_t max) noexcept {
  Run run;
  const std::uint64_t consumed =
      lane.consumed.load(std::memory_order_relaxed);  // relaxed: our own while we hold the lease
  if (lane.owner_slots.ring != nullptr) {
    take_from_ring(lane, consumed, max, run);
  } else {
    const std::size_t fits = std::min<std::size_t>(max, room.size() / lane.slot_bytes);
    run.count = static_cast<std::uint32_t>(
        lane.owner_ops->take(lane.owner_slots.queue, *lane.owner_slots.token, room.data(), fits));
    run.first = room.data();
  }
  if (run.count == 0) return run;
  run.stride = lane.slot_bytes;
  run.payload_offset = lane.payload_offset;
  run.publisher = lane.tenure.publisher.load(
      std::memory_order_relaxed);  // relaxed: before its first event, e.published
  run.first_sequence =
      lane.tenure.first_sequence.load(std::memory_order_relaxed);  // relaxed: as above
  run.source = lane.source;
  run.lane = &lane;
  run.source_time = lane.tenure.source_time.load(std::memory_order_relaxed);  // relaxed: as above
  return run;
}

void evict(Lane& lane, Run& run, std::uint32_t count) noexcept {
  // Relaxed: the owner's count; e.consumed of the store after it makes it visible.
  lane.undelivered.evicted.store(lane.undelivered.evicted.load(std::memory_order_relaxed) + count,
                                 std::memory_order_relaxed);
  run.first += std::size_t{count} * run.stride;
  run.count -= count;
  // At once, not after the callbacks of the rest: the publisher waits for this room.
  advance(*lane.channel, lane,
          lane.consumed.load(std::memory_order_relaxed) + count);  // relaxed: our own
}

/// For a lane whose publisher has gone, or soon may go, past its capacity: of what was published by
/// now, only the last `capacity` events stay in the run.
[[gnu::noinline, gnu::cold]] void leave_out_the_oldest(Lane& lane, std::span<std::byte> room,
                                                       std::size_t max, Run& run) noexcept {
  enum : std::uint32_t { kRunsPerCapacity = 16 };
  // Relaxed: our own, and written before the events that we took, e.published.
  std::uint64_t consumed = lane.consumed.load(std::memory_order_relaxed);
  const std::uint64_t capacity = lane.tenure.capacity.load(std::memory_order_relaxed);
  // Events that are being heard cannot be pushed out. Runs are short so that what is heard is
  // young.
  lane.run_max = std::max(1u, static_cast<std::uint32_t>(capacity) / kRunsPerCapacity);
  const std::uint64_t published = std::max(lane.published(), consumed + run.count);
  const std::uint64_t below = published > capacity ? published - capacity : 0;
  while (consumed < below) {
    const auto due =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(run.count, below - consumed));
    evict(lane, run, due);
    consumed += due;
    if (run.count != 0) return;
    // What is published meanwhile is left to the next run: at most `capacity` more are looked
    // through.
    const std::size_t rest = std::min<std::size_t>(max, lane.run_max);
    run = take_what_is_there(lane, room,
                             std::min<std::size_t>(Drainer::kBatchMax, below - consumed + rest));
    if (run.count == 0) return;  // moodycamel's queue may say so wrongly: the counters decide
  }
}

}  // namespace

Run take_run(Lane& lane, std::span<std::byte> room, std::size_t max) noexcept {
  Run run = take_what_is_there(lane, room, std::min<std::size_t>(max, lane.run_max));
  if (run.count == 0) return run;
  // Looked at after the take: the lane's next publisher sets it before its first event. Relaxed:
  // e.published.
  if (lane.consumed.load(std::memory_order_relaxed) <
      lane.when_full.overrun.load(std::memory_order_relaxed)) [[unlikely]] {
    leave_out_the_oldest(lane, room, max, run);
  } else {
    lane.run_max = ~0u;
  }
  return run;
}

void finish_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept {
  advance(channel, lane,
          lane.consumed.load(std::memory_order_relaxed) + run.count);  // relaxed: our own
}

namespace {

void count_discarded(Lane& lane, const Run& run) noexcept {
  // Relaxed: the owner's count, which e.consumed makes visible, as `consumed` is raised after it.
  lane.undelivered.discarded.store(
      lane.undelivered.discarded.load(std::memory_order_relaxed) + run.count,
      std::memory_order_relaxed);
}

/// Reads the snapshot after the run was taken: it has every subscriber that came before an event of
/// the run was published.
void hand_to_all(Drainer& drainer, const ChannelCore& channel, const Run& run) noexcept {
  if (const Snapshot* snapshot = current_snapshot(drainer, channel)) {
    for (Subscriber* s : snapshot->subscribers) hand_to(drainer, *s, run);
  }
}

Lane& next_lane(ChannelCore& channel, std::uint32_t lanes) noexcept {
  if (++channel.last_lane >= lanes) channel.last_lane = 0;
  return channel.lane(channel.last_lane);
}

}  // namespace

void discard_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept {
  count_discarded(lane, run);
  finish_run(channel, lane, run);
}

void hand_out(Drainer& drainer, ChannelCore& channel, Lane& lane, const Run& run) noexcept {
  if (channel.manual()) run.taken_ns = channel.stamp_ns();
  measure(channel, lane, run, lane.consumed.load(std::memory_order_relaxed));  // relaxed: our own
  hand_to_all(drainer, channel, run);
  note_room(drainer, run);
  channel.dispatched.add(run.count, Writers::one);
  finish_run(channel, lane, run);
}

namespace {

/// Takes one run, passes the lease on, then hands the run out: meanwhile the next worker may take
/// another. Runs end in any order, so `consumed` says how many events are over and not which.
/// Model: parallel_flush.pml.
std::size_t drain_apart(Drainer& drainer, ChannelCore& channel, Lane& lane, const Run& run) {
  // Relaxed: words of this thread, and of the lane whose lease it holds.
  const std::uint64_t apart = drainer.apart.load(std::memory_order_relaxed);
  const std::uint64_t first = lane.taken.load(std::memory_order_relaxed);
  drainer.apart.store(apart + 1, std::memory_order_release);       // p.runs: before `taken` says so
  lane.taken.store(first + run.count, std::memory_order_release);  // p.taken
  if (channel.manual()) run.taken_ns = channel.stamp_ns();
  const bool abort = channel.host().aborting();
  if (abort) {
    count_discarded(lane, run);
  } else {
    measure(channel, lane, run, first);
    note_room(drainer, run);
  }
  drainer.before_callbacks(channel);
  if (!abort) {
    hand_to_all(drainer, channel, run);
    channel.dispatched.add(run.count, Writers::many);
  }
  const std::uint64_t consumed =
      lane.consumed.fetch_add(run.count, std::memory_order_acq_rel) + run.count;  // e.consumed
  drainer.apart.store(apart + 2, std::memory_order_release);                      // p.runs
  tell(channel, lane, consumed);
  return run.count;
}

[[gnu::noinline]] std::size_t drain_parallel(Drainer& drainer, ChannelCore& channel,
                                             std::size_t quantum) noexcept {
  const std::uint32_t lanes = channel.lane_count();
  for (std::uint32_t i = 0; i < lanes; ++i) {
    Lane& lane = next_lane(channel, lanes);
    const Run run =
        take_run(lane, drainer.room, std::min<std::size_t>(quantum, Drainer::kBatchMax));
    if (run.count != 0) return drain_apart(drainer, channel, lane, run);
  }
  return 0;
}

/// The last run ended where slots do, and not where events do: more of them may lie in one piece.
bool was_cut(const Lane& lane) noexcept {
  // By the owner's own words: what the publisher asked for is on its line, and another's by now.
  if (lane.owner_slots.ring == nullptr || lane.owner_slots.queue == nullptr) return false;
  const std::uint64_t consumed = lane.consumed.load(std::memory_order_relaxed);  // relaxed: our own
  return (consumed & lane.owner_slots.mask) == 0 ||
         consumed == static_cast<const Segment*>(lane.owner_slots.queue)->end;
}

}  // namespace

/// Flattened, but for what is rare: for an event that comes alone the frames of ten functions were
/// a seventh of its instructions (bench/instructions, delivered manually).
[[gnu::flatten]] std::size_t drain(Drainer& drainer, ChannelCore& channel,
                                   std::size_t quantum) noexcept {
  drainer.glances.made = 0;
  if (channel.options().parallel) [[unlikely]]
    return drain_parallel(drainer, channel, quantum);
  if (LaneOrder* order = channel.lane_order()) [[unlikely]]
    return order->drain(drainer, quantum);
  const std::uint32_t lanes = channel.lane_count();
  Glances* const alone = lanes == 1 ? &drainer.glances : nullptr;
  std::size_t taken = 0;
  for (std::uint32_t i = 0; taken < quantum; ++i) {
    if (i >= lanes) {
      // Looking at many lanes takes as long as a whole look.
      if (taken != 0 || lanes == 0 || lanes > Glances::kLanesMax || !drainer.glances.again()) break;
      i = 0;
    }
    Lane& lane = next_lane(channel, lanes);
    if (is_empty_ring(lane, alone)) continue;
    // A lane's turn is a batch of it, in as many runs as its slots lie in pieces: who waits in
    // another lane waits for as many events of each kind of lane, and a short turn means that
    // nothing is left (WaitStrategy::worked).
    const std::size_t end = std::min<std::size_t>(quantum, taken + Drainer::kBatchMax);
    do {
      const Run run = take_run(lane, drainer.room, end - taken);
      if (run.count == 0) break;
      if (taken == 0) drainer.before_callbacks(channel);
      taken += run.count;
      if (channel.host().aborting()) {
        discard_run(channel, lane, run);
      } else {
        hand_out(drainer, channel, lane, run);
      }
    } while (taken < end && was_cut(lane));
  }
  return taken;
}

}  // namespace ringmain::engine
