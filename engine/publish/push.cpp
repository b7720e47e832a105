#include "engine/publish/push.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "engine/channel/channel_core.hpp"
#include "engine/publish/inline_phase.hpp"
#include "engine/publish/leave_record.hpp"
#include "engine/publish/missed.hpp"
#include "engine/publish/queue_ops.hpp"
#include "engine/publish/room.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {
namespace {

Atomic<std::uint64_t>& count_of(Lane& lane, Pushed why) noexcept {
  switch (why) {
    case Pushed::closed:
      return lane.unqueued.closed;
    case Pushed::no_memory:
      return lane.unqueued.no_memory;
    case Pushed::too_deep:
      return lane.unqueued.too_deep;
    case Pushed::vetoed:
      return lane.unqueued.vetoed;
    default:
      return lane.unqueued.full;  // full and would_deadlock
  }
}

Pushed forked(std::uint32_t state) noexcept {
  miss(state);
  return Pushed::forked;
}

Pushed refuse(Lane& lane, Pushed why) noexcept {
  // A signal handler may refuse in the middle of this; then each of them adds one. A thread that
  // checks the ledger meanwhile sees with `settling` what came before it in this thread.
  const std::uint32_t outer =
      lane.unqueued.settling.load(std::memory_order_relaxed);  // relaxed: our own
  lane.unqueued.settling.store(outer + 1,
                               std::memory_order_relaxed);  // relaxed: a.refusals of the next count
  count_one(lane.refused);                                  // a.refusals
  count_one(count_of(lane, why));                           // a.refusals
  lane.unqueued.settling.store(outer, std::memory_order_release);  // a.refusals
  return why;
}

bool write(Lane& lane, std::uint64_t word, const SlotHeader& header, BuildFn* build,
           void* from) noexcept {
  if (lane.slots.ring == nullptr) {
    return lane.owner_ops->put(lane.slots.queue, *lane.slots.token, header, build, from,
                               lane.payload_offset);
  }
  std::byte* slot = lane.slots.ring + ((word >> 1) & lane.slots.mask) * lane.slot_bytes;
  auto* to = reinterpret_cast<SlotHeader*>(slot);
  build(slot + lane.payload_offset, from);
  to->time_ns = header.time_ns;
  if (lane.slots.claims != nullptr)  // relaxed: e.published after it
    lane.slots.claims[(word >> 1) & lane.slots.mask].store(Lane::kQueued,
                                                           std::memory_order_relaxed);
  AtomicRef<std::uint64_t>(to->sequence)
      .store(header.sequence, std::memory_order_release);  // e.published
  return true;
}

void mark(Lane& lane, std::uint64_t index) noexcept {
  const std::uint64_t every = lane.channel->options().latency_every;
  if (every == 0 || lane.marks == nullptr || index % every != 0) return;
  const std::size_t mask = marks_count(lane.options.room(), every) - 1;
  // Relaxed: the slot's e.published comes after it.
  lane.marks[(index / every) & mask].store(static_cast<std::uint64_t>(now_ns()),
                                           std::memory_order_relaxed);
}

/// After "busy", so that a merge that finds the lane idle knows that later events get later
/// tickets.
void write_ticket(Lane& lane, std::uint64_t index, std::uint64_t ticket) noexcept {
  // The thread that wants tickets has given the lane room for them before it said so.
  (void)lane.line->state.load(std::memory_order_acquire);                   // t.wanted
  Tickets* tickets = lane.ordered.tickets.load(std::memory_order_acquire);  // t.wanted
  if (tickets == nullptr) return;
  tickets->of[index & tickets->mask] =
      ticket == kNoTicket ? lane.channel->host().take_ticket() : ticket;
}

}  // namespace

bool replace(Lane& lane, std::uint64_t index, BuildFn* build, void* from,
             std::int64_t time_ns) noexcept {
  const std::uint64_t published =
      lane.word.load(std::memory_order_relaxed) >> 1;         // relaxed: our own
  if (published > index + lane.slots.mask + 1) return false;  // the slot holds another one by now
  Atomic<std::uint8_t>& claim = lane.slots.claims[index & lane.slots.mask];
  std::uint8_t queued = Lane::kQueued;
  if (!claim.compare_exchange_strong(queued, Lane::kReplacing,
                                     std::memory_order_acquire,  // k.claim
                                     std::memory_order_relaxed)) {
    return false;
  }
  std::byte* slot = lane.slots.ring + (index & lane.slots.mask) * lane.slot_bytes;
  build(slot + lane.payload_offset, from);
  reinterpret_cast<SlotHeader*>(slot)->time_ns = time_ns;
  claim.store(Lane::kQueued, std::memory_order_release);  // k.claim
  count_one(lane.unqueued.coalesced);
  return true;
}

Pushed undo(Lane& lane, std::uint64_t word, Pushed why) noexcept {
  end(lane, word + 1, 0);
  return refuse(lane, why);
}

void notify(Lane& lane) noexcept {
  if (lane.options.realtime) return;  // never a system call: workers look by themselves
  if (lane.channel->options().pulled) {
    tell_reader(lane.channel->pull);
    return;
  }
  lane.channel->host().signal(*lane.channel, lane.woke);
}

namespace {

/// Which sequence number the event got, for the record of it; and where there is none.
struct Sequence {
  std::uint64_t number = 0;
  void is(std::uint64_t given) noexcept { number = given; }
};
struct NoSequence {
  static void is(std::uint64_t) noexcept {}
};

/// By the state looked at last.
template <class Number = NoSequence>
Pushed enqueue(Lane& lane, std::uint32_t state, BuildFn* build, void* from, std::int64_t time_ns,
               std::uint64_t ticket, Number&& number = {}) noexcept {
  std::uint64_t word = 0;
  const Pushed may = begin_with_room(lane, word);
  if (may != Pushed::accepted) return refuse(lane, may);
  asymmetric_fence_light_or_full();  // l.closing
  if (lane.line->closing()) return undo(lane, word - 1, Pushed::closed);
  if ((state & ChannelLine::kStamped) != 0 && !lane.options.source_time)
    time_ns = lane.channel->stamp_ns();
  if ((state & ChannelLine::kTicketed) != 0) write_ticket(lane, word >> 1, ticket);
  mark(lane, word >> 1);
  const std::uint64_t sequence =
      (word >> 1) + lane.refused.load(std::memory_order_relaxed) + 1;  // relaxed: our own
  if (!write(lane, word, {sequence, time_ns}, build, from))
    return undo(lane, word - 1, Pushed::no_memory);
  number.is(sequence);
  end(lane, word, 1);
  asymmetric_fence_light_or_full();  // l.attended
  if (lane.line->leased.load(std::memory_order_relaxed) == 0) notify(lane);
  return Pushed::accepted;
}

/// For an event that only has inline subscribers, which have seen it: accepted and delivered at
/// once.
Pushed observe(Lane& lane) noexcept {
  const std::uint64_t word = begin(lane);
  if (word == 0) return refuse(lane, Pushed::too_deep);
  asymmetric_fence_light_or_full();  // l.closing
  if (lane.line->closing()) return undo(lane, word - 1, Pushed::closed);
  count_one(lane.refused);
  count_one(lane.unqueued.observed);
  end(lane, word, 0);  // stop() counts what is after it
  return Pushed::accepted;
}

/// An event on the stack, for all that look at it before it is queued.
struct Built {
  alignas(16) std::byte bytes[kPayloadBytesMax];
  std::size_t size;
  static void copy(void* to, void* from) noexcept {
    const auto& built = *static_cast<const Built*>(from);
    std::memcpy(to, built.bytes, built.size);
  }
};
static_assert(sizeof Built::bytes + sizeof(SlotHeader) + sizeof(Envelope) == slot_sizes().back());

/// From here on it is published, or refused. `level`: of inline phases.
template <class Number>
[[gnu::always_inline]] inline PushResult push_shown(Lane& lane, std::uint32_t level, Built& event,
                                                    std::int64_t time_ns,
                                                    Number&& number) noexcept {
  ChannelHost& host = lane.channel->host();
  const InlinePhase phase = show_inline(
      lane.channel->inline_snapshot(),
      {lane.inlined.readings[level], lane.inlined.shown[level], ChunkPlace::of(lane.index)},
      host.retire_list(), event.bytes, !lane.options.realtime);
  --lane.inlined.phases;
  if (phase.retired && !lane.options.realtime) host.wake_reclaimer();
  const std::uint32_t state =
      lane.line->state.load(std::memory_order_relaxed);           // relaxed: looked at again below
  if ((state & ChannelLine::kForked) != 0) return forked(state);  // an inline callback forked
  if (phase.judgement.veto) return {refuse(lane, Pushed::vetoed), phase.judgement.why};
  if ((state & ChannelLine::kClosing) != 0) return refuse(lane, Pushed::closed);
  if ((state & ChannelLine::kHeard) == 0 || (state & ChannelLine::kUnqueued) != 0)
    return observe(lane);
  return enqueue(lane, state, &Built::copy, &event, time_ns, kNoTicket,
                 std::forward<Number>(number));
}

/// Shows the event to inline subscribers, then goes on as if there were none. The lane is not busy
/// meanwhile: they may publish on it, and what they publish comes before this event. Not inlined,
/// to keep its stack frame out of the caller's.
[[gnu::noinline]] PushResult push_inline(Lane& lane, BuildFn* build, void* from,
                                         std::int64_t time_ns) noexcept {
  const InlineDepth depth;
  if (depth.level() >= Lane::kInlineDepthMax) return refuse(lane, Pushed::too_deep);
  Built event;
  event.size = lane.source->options().payload_bytes;
  ++lane.inlined.phases;
  lane.underway.building = true;
  build(event.bytes, from);
  lane.underway.building = false;
  return push_shown(lane, depth.level(), event, time_ns, NoSequence{});
}

enum : std::uint32_t {
  kOnlyRecorded = ChannelLine::kHeard | ChannelLine::kUnqueued | ChannelLine::kRecorded
};

/// As push_slowly(), of a recorded channel.
[[gnu::noinline]] PushResult push_recorded(Lane& lane, std::uint32_t state, BuildFn* build,
                                           void* from, std::int64_t time_ns,
                                           std::uint64_t ticket) noexcept {
  const bool nested = begun(lane) || lane.underway.building || lane.underway.waiting;
  const InlineDepth depth;
  Built event;
  event.size = lane.source->options().payload_bytes;
  const bool building = lane.underway.building;
  ++lane.inlined.phases;  // what builds the event may publish elsewhere
  lane.underway.building = true;
  build(event.bytes, from);
  lane.underway.building = building;
  flight::RecordHead head;
  head.time_ns = lane.channel->stamp_ns();
  if (lane.channel->opens_operations()) open_operation(lane, head, event.bytes);
  Sequence sequence;
  PushResult result;
  const bool shown =
      !nested && (state & (ChannelLine::kInline | ChannelLine::kClosing)) == ChannelLine::kInline;
  if (shown && depth.level() < Lane::kInlineDepthMax) {
    result = push_shown(lane, depth.level(), event, time_ns, sequence);
  } else {
    --lane.inlined.phases;
    if ((state & ChannelLine::kClosing) != 0)
      result = refuse(lane, Pushed::closed);
    else if (nested || shown)
      result = refuse(lane, Pushed::too_deep);
    else if ((state & ChannelLine::kUnqueued) != 0)
      result = observe(lane);
    else
      result = enqueue(lane, state, &Built::copy, &event, time_ns, ticket, sequence);
  }
  if (result == Pushed::forked) return result;
  head.code = result;
  head.sequence = sequence_of(lane, sequence.number != 0 ? sequence.number : number_unqueued(lane));
  leave_record(lane, head, event.bytes, event.size);
  return result;
}

PushResult push_otherwise(Lane& lane, std::uint32_t state, BuildFn* build, void* from,
                          std::int64_t time_ns, std::uint64_t ticket) noexcept;

/// The same where nobody but a recording hears it: as observe(), built in between.
[[gnu::noinline]] PushResult push_only_recorded(Lane& lane, BuildFn* build, void* from) noexcept {
  const std::uint64_t word = begin(lane);
  if (word == 0) return push_recorded(lane, kOnlyRecorded, build, from, 0, kNoTicket);
  asymmetric_fence_light();  // l.closing
  if (lane.line->closing()) [[unlikely]] {
    end(lane, word, 0);
    return push_otherwise(lane, lane.line->look(), build, from, 0, kNoTicket);
  }
  alignas(16) std::byte event[kPayloadBytesMax];
  build(event, from);
  flight::RecordHead head;
  head.time_ns = lane.channel->stamp_ns();
  count_one(lane.refused);
  count_one(lane.unqueued.observed);
  head.sequence = sequence_of(lane, (word >> 1) + lane.refused.load(std::memory_order_relaxed));
  if (lane.channel->opens_operations()) [[unlikely]]
    open_operation(lane, head, event);
  end(lane, word, 0);  // stop() counts what is after it
  leave_record(lane, head, event, lane.source->options().payload_bytes);
  return Pushed::accepted;
}

/// In a forked child, of a channel that closes, or of one that is recorded.
[[gnu::noinline]] PushResult push_otherwise(Lane& lane, std::uint32_t state, BuildFn* build,
                                            void* from, std::int64_t time_ns,
                                            std::uint64_t ticket) noexcept {
  if ((state & ChannelLine::kForked) != 0) return forked(state);  // in a child no lane counts
  if (state == kOnlyRecorded) [[likely]]
    return push_only_recorded(lane, build, from);
  if ((state & ChannelLine::kRecorded) != 0)
    return push_recorded(lane, state, build, from, time_ns, ticket);
  return refuse(lane, Pushed::closed);
}

}  // namespace

PushResult push_slowly(Lane& lane, BuildFn* build, void* from, std::int64_t time_ns,
                       std::uint64_t ticket) noexcept {
  const std::uint32_t state =
      lane.line->state.load(std::memory_order_relaxed);  // relaxed: looked at again below
  enum : std::uint32_t {
    kOtherwise = ChannelLine::kForked | ChannelLine::kClosing | ChannelLine::kRecorded
  };
  if ((state & kOtherwise) != 0) [[unlikely]]
    return push_otherwise(lane, state, build, from, time_ns, ticket);
  if ((state & ChannelLine::kHeard) == 0) return Pushed::unheard;
  // In the middle of a publish on this lane: by the function that builds its event, or a signal
  // handler.
  if (begun(lane) || lane.underway.building || lane.underway.waiting)
    return refuse(lane, Pushed::too_deep);
  if ((state & ChannelLine::kInline) != 0) return push_inline(lane, build, from, time_ns);
  return enqueue(lane, state, build, from, time_ns, ticket);
}

}  // namespace ringmain::engine
