// Lanes: how does an event get from a publishing thread to a worker without a shared write?
//
// A lane belongs to one live publishing thread and one channel. Its queue has one writer and, at
// any time, one reader: the holder of the channel's lease. Its ledger is three single-writer words:
//   word      2 * published + busy     publisher
//   refused   offered and not queued   publisher
//   consumed  callbacks finished       owner
// so offered = published + refused, in flight = published - consumed, exactly, with no shared
// counter.
//
// A lane that drops its oldest has room for twice its capacity. Its publisher never dequeues: past
// the capacity it moves `overrun`, once for as many events as the capacity, and whoever drains
// leaves out all but the last `capacity` of what was published. Model: tests/model/eviction.pml.
//
// A signal handler that publishes on a lane in the middle of a publish on it is refused: begin().
// Model: tests/model/signal_handler.pml.
//
// A publish whose channel is attended: two looks at the channel's state, one at its lease, two
// stores to the lane's word, one slot. No read-modify-write, no fence, no system call. Protocol:
// tests/model/lane_protocol.md, edges L1, L2, E1, E2, E5 by the same names here.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "../channel/channel_line.hpp"
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "mpmc_queue.hpp"
#include "overflow.hpp"
#include "slot.hpp"

namespace ringmain::engine {

class ChannelCore;
struct QueueOps;
struct Snapshot;
struct Ahead;

/// How a publish on a lane ended. The bus says the same to its users as PublishCode.
enum class Pushed : std::uint8_t {
  accepted,
  unheard,
  full,
  closed,
  would_deadlock,
  no_memory,
  too_deep,
  vetoed,
  forked
};
/// The same with a veto's reason (a name's id, or 0). One word, so that no publish takes it apart.
class PushResult {
 public:
  PushResult() = default;
  constexpr PushResult(Pushed code) noexcept  // NOLINT(google-explicit-constructor): most are
      : bits_(static_cast<std::uint64_t>(code)) {}
  constexpr PushResult(Pushed code, std::uint32_t why) noexcept
      : bits_(static_cast<std::uint64_t>(code) | std::uint64_t{why} << 32) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as above
  constexpr operator Pushed() const noexcept { return static_cast<Pushed>(bits_); }
  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(PushResult) == 8);

struct LaneOptions {
  std::uint32_t capacity = 65536;
  bool ring = false;
  bool realtime = false;
  bool source_time = false;
  bool coalesce = false;  // a ring whose queued events may be replaced: replace()
  Overflow overflow = Overflow::drop_newest;
  std::int64_t block_ns_max = 0;
  /// In flight at most: those to be evicted stay until the owner comes by.
  [[nodiscard]] constexpr std::size_t room() const noexcept {
    return overflow == Overflow::drop_oldest ? 2 * std::size_t{capacity} : capacity;
  }
  friend bool operator==(const LaneOptions&, const LaneOptions&) = default;
};

/// The tickets of a lane's events in flight, beside its queue: a slot has room for one time only.
/// As many as the lane has room for, rounded up to a power of two.
struct Tickets {
  std::uint64_t mask;
  std::uint64_t* of;  // by the event's index; 0: published before anybody wanted a ticket
};
/// nullptr: out of memory. `touched`: its pages are there before the first event.
[[nodiscard]] Tickets* make_tickets(std::size_t events, bool touched) noexcept;
void free_tickets(Tickets* tickets) noexcept;

struct Lane {
  /// Of a slot in a coalescing lane.
  enum Claim : std::uint8_t { kQueued, kReplacing, kTaken };

  // --- the publisher's line: written by it alone, read by workers only to park, flush and stop ---
  alignas(kLineBytes) Atomic<std::uint64_t> word{0};  // 2 * published + busy
  std::uint64_t word_limit =
      0;  // at this word look at consumed again: 2 * (consumed seen + capacity, or + room)
  Atomic<std::uint64_t> refused{0};  // all reasons, and observed: part of every sequence number
  ChannelLine* line = nullptr;
  std::byte* ring = nullptr;  // ring lanes: the slots; nullptr: a moodycamel lane
  std::uint64_t ring_mask = 0;
  Atomic<std::uint8_t>* claims = nullptr;  // coalescing lanes: who may touch the slot
  void* queue = nullptr;                   // moodycamel lanes: Queue<slot_bytes>*
  QueueToken* token = nullptr;
  ChannelCore* channel = nullptr;
  std::uint64_t woke = 0;  // the park (Worker::park_number) that this publisher has ended last
  LaneOptions options;

  // --- refusals by reason: the publisher's, statistics for everybody else ---
  alignas(kLineBytes) Atomic<std::uint64_t> full{0};
  Atomic<std::uint32_t> settling{0};  // between `refused` and the reason: accounts.hpp
  Atomic<std::uint64_t> closed{0}, no_memory{0}, too_deep{0}, vetoed{0};
  Atomic<std::uint64_t> coalesced{0};  // replaced by a newer one of their key, never consumed
  Atomic<std::uint64_t> observed{0};   // accepted, and over with the inline phase: never queued
  Atomic<std::uint64_t>* marks =
      nullptr;  // publishing times of every n-th event, when latency is measured
  std::uint32_t phases =
      0;                  // inline phases this publisher is in, one in another: not to be given up
  bool building = false;  // an event for one of them
  bool waiting = false;   // for room: not busy, so that stop() need not wait for it
  Atomic<bool> inside{false};  // a publish, for its signal handlers: begin()
  enum : std::uint32_t { kInlineDepthMax = 8 };
  // Which row of inline subscribers is read, by level; written in the phase, read by who frees
  // rows.
  std::array<Atomic<const Snapshot*>, kInlineDepthMax> inline_readings{};

  // --- the owner's line: whoever holds the channel's lease ---
  alignas(kLineBytes) Atomic<std::uint64_t> consumed{0};  // callbacks over, evicted, or discarded
  std::uint64_t last_sequence = 0;
  std::uint32_t run_max = ~0u;  // while its publisher overruns it, runs are short
  bool was_empty = false;       // a ring, at the last look
  const std::byte* owner_ring =
      nullptr;  // copies: a constant on the publisher's line would move that line
  std::uint64_t owner_mask = 0;
  Atomic<std::uint8_t>* owner_claims = nullptr;
  QueueToken* owner_token = nullptr;
  void* owner_queue = nullptr;
  const QueueOps* owner_ops = nullptr;
  std::uint32_t slot_bytes = 0;
  std::uint32_t payload_offset = sizeof(SlotHeader);  // larger where an Envelope lies between
  const ChannelCore* source = nullptr;                // the channel whose events these are
  Atomic<std::uint64_t>* owner_marks = nullptr;
  Atomic<std::uint64_t> discarded{0};  // consumed without callbacks: stop(abort)
  Atomic<std::uint64_t> evicted{0};    // consumed without callbacks: the oldest of a full lane
  Atomic<std::uint64_t> taken{0};      // parallel delivery: of them the callbacks may still run
  Ahead* ahead = nullptr;              // lanes that are merged: what was taken and is not yet due

  // --- a full lane's publisher waits here; workers read wake_at after every batch ---
  alignas(kLineBytes) Atomic<std::uint64_t> wake_at{~std::uint64_t{0}};
  Atomic<std::uint32_t> room_key{0};
  // No event with this index or a larger one was published past the capacity; 0: none at all.
  Atomic<std::uint64_t> overrun{0};
  // --- set when a publisher takes the lane, read by the owner once per batch ---
  Atomic<std::uint32_t> publisher{0};
  Atomic<bool> owner_source_time{false};  // copies: options lie on the publisher's line
  Atomic<std::uint32_t> owner_capacity{0};
  Atomic<std::uint64_t> first_sequence{0};  // the publisher's sequence 0
  Atomic<std::uint32_t> live{0};
  // --- tickets: seldom written ---
  Atomic<Tickets*> tickets{nullptr};
  const Lane* fed_by = this;     // a lane of a merged mailbox: the one whose events it carries
  Atomic<std::uint64_t> fed{0};  // so many of fed_by's events came here
  std::uint32_t index = 0;       // in its channel
  std::uint64_t published_before = 0, refused_before = 0, observed_before = 0, discarded_before = 0,
                evicted_before = 0;  // the ledger's start for this publisher

  [[nodiscard]] std::uint64_t published() const noexcept {
    return word.load(std::memory_order_acquire) >> 1;  // E2
  }
  /// Its two words, consumed first: what is consumed was queued, and is published unless `busy`.
  struct Moment {
    std::uint64_t published, consumed;
    bool busy;
  };
  [[nodiscard]] Moment moment() const noexcept {
    const std::uint64_t done = consumed.load(std::memory_order_acquire);  // E1
    const std::uint64_t now = word.load(std::memory_order_acquire);       // E2
    return {now >> 1, done, (now & 1) != 0};
  }
};

/// Room for the publishing times of a lane that measures each `every`-th event: a power of two.
constexpr std::size_t marks_count(std::size_t capacity, std::uint64_t every) noexcept {
  return std::bit_ceil(capacity / static_cast<std::size_t>(every) + 2);
}

/// Writes one event's payload at `to`.
using BuildFn = void(void* to, void* from) noexcept;

/// For push_slowly(): the event has no ticket yet.
constexpr std::uint64_t kNoTicket = ~std::uint64_t{0};
/// Everything that is not the steady state: inline subscribers, stamps, tickets, measured latency,
/// fences, a full or closed lane.
PushResult push_slowly(Lane& lane, BuildFn* build, void* from, std::int64_t time_ns,
                       std::uint64_t ticket = kNoTicket) noexcept;
/// push_slowly() on a lane taken for this one event: for a thread whose lanes are gone, and which
/// has no order from then on. For a thread that got none: no_memory.
PushResult push_once(ChannelCore& channel, BuildFn* build, void* from) noexcept;
/// On a coalescing lane: puts an event in the place of the one with that index, which is counted as
/// coalesced. False: that one is taken, or long gone. Threads: the lane's publisher. Lock-free.
/// Model: tests/model/coalesce.pml.
[[nodiscard]] bool replace(Lane& lane, std::uint64_t index, BuildFn* build, void* from,
                           std::int64_t time_ns) noexcept;
/// The channel is unattended: tells the workers.
void notify(Lane& lane) noexcept;
/// Moodycamel could not allocate, or stop() came between the two looks: takes the announcement
/// back. `word`: the one before begin().
Pushed undo(Lane& lane, std::uint64_t word, Pushed why) noexcept;

/// Calls `f` with `make`, or with a copy of it where it is small and nobody can tell them apart: so
/// what an inlined publish builds from stays in registers, though other paths take its address.
template <class Make, class F>
[[gnu::always_inline]] inline auto apart(Make& make, F f) noexcept {
  using Copy = std::remove_const_t<Make>;
  if constexpr (sizeof(Copy) <= 64 && std::is_trivially_copyable_v<Copy> &&
                std::is_invocable_v<const Copy&>) {
    Copy copy(make);
    return f(copy);
  } else {
    return f(make);
  }
}

/// Is this thread in the middle of a publish on it?
[[nodiscard]] inline bool begun(const Lane& lane) noexcept {
  return (lane.word.load(std::memory_order_relaxed) & 1) != 0 ||  // relaxed: our own
         lane.inside.load(std::memory_order_relaxed);
}
/// Begins a publish: busy for workers, and for this thread's signal handlers, before anything is
/// read that a publish changes. Returns 2 * published + 1; 0: this thread is in the middle of one.
[[gnu::always_inline]] inline std::uint64_t begin(Lane& lane) noexcept {
  if (one_instruction())  // E2: busy; L1 of the caller
    return set_lowest(lane.word) ? 0 : lane.word.load(std::memory_order_relaxed);  // relaxed: ours
  if (begun(lane)) return 0;
  // A handler that publishes before this store is over by then, and the word is read behind it.
  lane.inside.store(true, std::memory_order_relaxed);  // relaxed: our own
  order_for_handlers();
  const std::uint64_t word = lane.word.load(std::memory_order_relaxed) + 1;  // relaxed: our own
  lane.word.store(word, std::memory_order_release);  // E2: busy; L1 of the caller
  return word;
}
/// Ends it: so many were published. `word`: begin()'s.
[[gnu::always_inline]] inline void end(Lane& lane, std::uint64_t word,
                                       std::size_t events) noexcept {
  lane.word.store(word - 1 + 2 * events, std::memory_order_release);  // E2
  if (one_instruction()) return;
  order_for_handlers();
  lane.inside.store(false, std::memory_order_relaxed);  // relaxed: our own
}

/// Publishes one event built in place by `make`; `state` is what the lane's line said. Threads: the
/// lane's publisher.
template <class E, class Make>
[[gnu::always_inline]] inline PushResult push(Lane& lane, Make& make,
                                              std::uint32_t state) noexcept {
  constexpr std::uint32_t kBytes = slot_bytes(slot_class(sizeof(E)));
  std::uint64_t word = 0;
  bool slowly = state != ChannelLine::kHeard || (word = begin(lane)) == 0;
  if (!slowly && word >= lane.word_limit) [[unlikely]] {
    end(lane, word, 0);
    slowly = true;
  }
  if (slowly) [[unlikely]] {
    return apart(make, [&lane](auto& from) noexcept {
      using From = std::remove_reference_t<decltype(from)>;
      return push_slowly(
          lane, [](void* to, void* f) noexcept { ::new (to) E((*static_cast<From*>(f))()); },
          const_cast<void*>(static_cast<const void*>(&from)), 0);
    });
  }
  asymmetric_fence_light();  // L1
  ChannelLine& line = *lane.line;
  if (line.closing()) [[unlikely]] {
    return undo(lane, word - 1, Pushed::closed);
  }
  const std::uint64_t sequence =
      (word >> 1) + lane.refused.load(std::memory_order_relaxed) + 1;  // relaxed: our own
  if (lane.ring != nullptr) {
    std::byte* slot = lane.ring + ((word >> 1) & lane.ring_mask) * kBytes;
    auto* header = reinterpret_cast<SlotHeader*>(slot);
    ::new (slot + sizeof(SlotHeader)) E(make());
    header->time_ns = 0;
    AtomicRef<std::uint64_t>(header->sequence).store(sequence, std::memory_order_release);  // E2
  } else {
    const bool queued = apart(make, [&lane, sequence](auto& from) noexcept {
      auto build = [&from, sequence](Slot<kBytes>& slot) noexcept {
        slot.header = {sequence, 0};
        ::new (slot.payload) E(from());
      };
      auto* queue = static_cast<Queue<kBytes>*>(lane.queue);
      return queue->enqueue_bulk(*lane.token, BuildInPlace<decltype(build)>{&build}, 1);
    });
    if (!queued) [[unlikely]]
      return undo(lane, word - 1, Pushed::no_memory);
  }
  end(lane, word, 1);
  asymmetric_fence_light();  // L2
  if (line.leased.load(std::memory_order_relaxed) == 0) [[unlikely]]
    notify(lane);
  return Pushed::accepted;
}
template <class E, class Make>
[[gnu::always_inline]] inline PushResult push(Lane& lane, Make& make) noexcept {
  return push<E>(lane, make, lane.line->look());  // looked at again behind L1
}

struct PushedAll {
  std::size_t accepted = 0;
  std::size_t refused = 0;         // not those that nobody hears any more
  std::size_t vetoed = 0;          // of those refused
  Pushed last = Pushed::accepted;  // the last refusal
};

/// Publishes `n` events with one announcement for as many as there is room; the rest one by one, by
/// the lane's policy. Threads: the lane's publisher.
template <class E>
PushedAll push_all(Lane& lane, const E* events, std::size_t n) noexcept {
  constexpr std::uint32_t kBytes = slot_bytes(slot_class(sizeof(E)));
  PushedAll result;
  const std::uint32_t state =
      lane.line->state.load(std::memory_order_relaxed);  // relaxed: looked at again below
  std::size_t at_once = 0;
  const bool usual = state == ChannelLine::kHeard && lane.ring == nullptr;
  if (const std::uint64_t word = usual ? begin(lane) : 0; word != 0) {
    auto room = word < lane.word_limit ? static_cast<std::size_t>((lane.word_limit - word + 1) / 2)
                                       : std::size_t{0};
    room = room < n ? room : n;
    asymmetric_fence_light();  // L1
    std::uint64_t sequence =
        (word >> 1) + lane.refused.load(std::memory_order_relaxed);  // relaxed: our own
    const E* event = events;
    auto build = [&](Slot<kBytes>& slot) noexcept {
      slot.header = {++sequence, 0};
      ::new (slot.payload) E(*event++);
    };
    if (lane.line->closing()) room = 0;  // relaxed: L1
    auto* queue = static_cast<Queue<kBytes>*>(lane.queue);
    while (at_once < room) {
      // To the end of a block: one that needs several and gets only the first loses its index.
      const std::size_t block = queue_block_left(at_once + (word >> 1));
      const std::size_t some = block < room - at_once ? block : room - at_once;
      if (!queue->enqueue_bulk(*lane.token, BuildInPlace<decltype(build)>{&build}, some)) break;
      at_once += some;
    }
    end(lane, word, at_once);
    asymmetric_fence_light();  // L2
    if (at_once != 0 && lane.line->leased.load(std::memory_order_relaxed) == 0) notify(lane);
    result.accepted = at_once;
  }
  for (std::size_t i = at_once; i < n; ++i) {
    auto copy = [event = events + i]() noexcept { return *event; };
    const Pushed one = push<E>(lane, copy);
    if (one == Pushed::accepted) {
      ++result.accepted;
    } else {
      result.last = one;
      if (one != Pushed::unheard) ++result.refused;
      if (one == Pushed::vetoed) ++result.vetoed;
    }
  }
  return result;
}

}  // namespace ringmain::engine
