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
// the capacity it moves `overrun`, once for as many events as the capacity, and the owner leaves
// out all but the last `capacity` of what was published. Model: tests/model/eviction.pml.
//
// A signal handler that interrupts a publish on a lane and publishes on the same lane is refused:
// begin(). Model: tests/model/signal_handler.pml.
//
// Publishing is in push.hpp. Protocol: tests/model/lane_protocol.md, edges l.closing, l.attended,
// e.consumed, e.published, e.lane_free by the same names here.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "../channel/channel_line.hpp"
#include "../flight/recorded.hpp"
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "lane_kind.hpp"
#include "overflow.hpp"
#include "slot.hpp"
#include "tickets.hpp"

namespace moodycamel {
struct ProducerToken;
}

namespace ringmain::engine {

using QueueToken = moodycamel::ProducerToken;
class ChannelCore;
struct QueueOps;
struct Snapshot;
struct Subscriber;
struct Ahead;

struct LaneOptions {
  std::uint32_t capacity = 65536;
  LaneKind kind = LaneKind::segments;  // take_lane() may take a moodycamel lane in its place
  bool realtime = false;
  bool source_time = false;
  bool coalesce = false;  // a ring whose queued events may be replaced: replace()
  Overflow overflow = Overflow::drop_newest;
  /// Realtime: the taker touches the first part of the ring only, the housekeeper the rest.
  bool touched_later = false;
  std::int64_t block_ns_max = 0;
  /// How many events can be in flight: events to be evicted stay until the owner looks.
  [[nodiscard]] constexpr std::size_t room() const noexcept {
    return overflow == Overflow::drop_oldest ? 2 * std::size_t{capacity} : capacity;
  }
  friend bool operator==(const LaneOptions&, const LaneOptions&) = default;
};

/// Invariants, and which thread keeps them: 1 `word` only grows but for undo(), by its publisher;
/// its lowest bit says that a publish is under way, and is clear before the next one begins. 2
/// `consumed` only grows, and never past `word` >> 1: by the lease's holder; with parallel delivery
/// by the threads that took runs under it. 3 offered = published + `refused`, and `refused` = the
/// sum of `unqueued` without `coalesced`, unless the publisher is `settling` or busy. 4 Events are
/// taken in the order in which they were published; a thread that sees one published sees it whole
/// (e.published). 5 `tenure.live` is 1 while a publisher has the lane; it is given to the next one
/// only when `consumed` has come up to what the last one published (e.lane_free). 6 consumed =
/// delivered + the sum of `undelivered`, which the owner raises first. 7 `slots` and `owner_slots`
/// are equal, and stay as they were made, but for those of segments: each side goes on with its
/// own. 8 A publisher never goes past its capacity unless `when_full.overrun` says so first. 9
/// While `word` is busy or a flag of `underway` is set, a further publish on the lane comes from a
/// signal handler of its thread, or from the function that builds its event, and is refused. Fields
/// are grouped by the thread that writes them and by how often: the publisher at every event, the
/// owner at every run, the rest seldom. The layout is asserted below.
struct Lane {
  /// The state of a slot in a coalescing lane.
  enum Claim : std::uint8_t { kQueued, kReplacing, kTaken };
  enum : std::uint32_t { kInlineDepthMax = 8 };

  /// Where the events are. There are two copies, as the owner's reads would move the publisher's
  /// line to its core (7).
  struct Slots {
    std::byte* ring = nullptr;               // or the segment's slots; nullptr: a moodycamel lane
    std::uint64_t mask = 0;                  // of `ring`
    Atomic<std::uint8_t>* claims = nullptr;  // coalescing lanes: which thread may touch the slot
    // Moodycamel lanes: Queue<slot_bytes>*. Segments: the publisher's Segments, the owner's
    // Segment.
    void* queue = nullptr;
    QueueToken* token = nullptr;  // moodycamel lanes
  };
  /// Figures: what became of events that were not queued. Written by the publisher (3).
  struct Unqueued {
    Atomic<std::uint64_t> full{0};
    Atomic<std::uint32_t> settling{0};  // between `refused` and the reason: accounts.hpp
    Atomic<std::uint64_t> closed{0}, no_memory{0}, too_deep{0}, vetoed{0};
    Atomic<std::uint64_t> coalesced{0};  // took the place of an older one of their key
    Atomic<std::uint64_t> observed{0};   // accepted, and over with the inline phase
  };
  /// Signal handlers: what the publisher is doing just now. Written by it (9).
  struct Underway {
    bool building = false;       // an event for an inline phase
    bool waiting = false;        // for room: not busy, so that stop() need not wait for it
    Atomic<bool> inside{false};  // a publish: begin()
  };
  /// Inline subscribers. Written by the publisher; a thread that frees rows reads `readings`, one
  /// that detaches a subscriber `shown`.
  struct Inlined {
    std::uint32_t phases = 0;  // how many it is in, nested: the lane must not be given up
    // Which row of inline subscribers is read, by level.
    std::array<Atomic<const Snapshot*>, kInlineDepthMax> readings{};
    std::array<Atomic<const Subscriber*>, kInlineDepthMax> shown{};  // who is called, by level
  };
  /// What records call its publisher, by the place of the recording. Written under the channel's
  /// lock.
  using Sources = std::array<Atomic<std::uint16_t>, flight::kRecordingsMax>;
  /// Figures: what was consumed without callbacks. Written by the owner (6).
  struct Undelivered {
    Atomic<std::uint64_t> discarded{0};  // stop(abort)
    Atomic<std::uint64_t> evicted{0};    // the oldest of a full lane
  };
  /// `block` and `drop_oldest`. Written by a publisher that found no room (8). The owner reads them
  /// at every run; the owner and stop() write `room_key`.
  struct WhenFull {
    Atomic<std::uint64_t> wake_at{~std::uint64_t{0}};  // consumed so many: wake the publisher
    Atomic<std::uint32_t> room_key{0};                 // it sleeps on this one
    // No event with this index or a larger one was published past the capacity; 0: none at all.
    Atomic<std::uint64_t> overrun{0};
  };
  /// What the owner must know of the publisher that has the lane. Written when it takes the lane,
  /// `live` also when it gives the lane back (5); read once per batch.
  struct Tenure {
    Atomic<std::uint32_t> publisher{0};
    Atomic<bool> source_time{false};  // copies: options lie on the publisher's line
    Atomic<std::uint32_t> capacity{0};
    Atomic<std::uint64_t> first_sequence{0};  // the publisher's sequence 0
    Atomic<std::uint32_t> live{0};
  };
  /// One order over many lanes. Written when the lane is made or when tickets are first wanted; the
  /// feeder writes `fed`.
  struct Ordered {
    Atomic<Tickets*> tickets{nullptr};
    const Lane* fed_by;            // of a merged mailbox's lane: the one whose events it carries
    Atomic<std::uint64_t> fed{0};  // so many of fed_by's events came here
  };
  /// The figures as they were when the publisher took the lane. Written then.
  struct Ledger {
    std::uint64_t published = 0, refused = 0, observed = 0, discarded = 0, evicted = 0;
  };

  // Written by the publisher at every event. Workers read it only to park, flush and stop.
  alignas(kLineBytes) Atomic<std::uint64_t> word{0};  // 2 * published + busy
  // At this word look at consumed again: 2 * (consumed seen + capacity, or + room), or 2 * the end
  // of the segment.
  std::uint64_t word_limit = 0;
  Atomic<std::uint64_t> refused{0};  // all reasons, and observed: part of every sequence number
  ChannelLine* line = nullptr;
  Slots slots;
  ChannelCore* channel = nullptr;
  std::uint64_t woke = 0;  // the park (Worker::park_number) that this publisher has ended last
  LaneOptions options;

  // Written by the publisher when anything is unusual; other threads read it for figures.
  alignas(kLineBytes) Unqueued unqueued;
  Underway underway;
  Atomic<std::uint64_t>* marks = nullptr;  // measured latency: when every n-th was published
  Inlined inlined;
  Sources sources{};

  // Written by the owner, which is the holder of the channel's lease.
  alignas(kLineBytes) Atomic<std::uint64_t> consumed{0};  // callbacks over, or undelivered
  std::uint64_t last_sequence = 0;
  std::uint32_t run_max = ~0u;  // smaller while the publisher overruns the lane
  bool was_empty = false;       // a ring, at the last look
  Slots owner_slots;
  const QueueOps* owner_ops = nullptr;
  std::uint32_t slot_bytes = 0;
  std::uint32_t payload_offset = sizeof(SlotHeader);  // larger where an Envelope lies between
  const ChannelCore* source = nullptr;                // the channel whose events these are
  Atomic<std::uint64_t>* owner_marks = nullptr;
  Undelivered undelivered;
  Atomic<std::uint64_t> taken{0};  // parallel delivery: their callbacks may still run
  Ahead* ahead = nullptr;          // merged lanes: what was taken and is not yet due

  // Written by several threads, seldom.
  alignas(kLineBytes) WhenFull when_full;
  Tenure tenure;
  Ordered ordered{.fed_by = this};
  std::uint32_t index = 0;             // in its channel
  Atomic<std::uint32_t> untouched{0};  // 1: the housekeeper is to touch the ring's pages
  Ledger before;

  [[nodiscard]] std::uint64_t published() const noexcept {
    return word.load(std::memory_order_acquire) >> 1;  // e.published
  }
  /// Its two words, `consumed` read first: what is consumed was queued, and is published unless
  /// `busy`.
  struct Moment {
    std::uint64_t published, consumed;
    bool busy;
  };
  [[nodiscard]] Moment moment() const noexcept {
    const std::uint64_t done = consumed.load(std::memory_order_acquire);  // e.consumed
    const std::uint64_t now = word.load(std::memory_order_acquire);       // e.published
    return {now >> 1, done, (now & 1) != 0};
  }
};

// What one thread writes at every event or run lies on no line that another thread writes or reads
// then: the first three lines are the publisher's, the fourth is the owner's, and the last is
// shared.
static_assert(std::is_standard_layout_v<Lane> && sizeof(Lane) == 5 * kLineBytes);
static_assert(offsetof(Lane, word) == 0 &&
                  offsetof(Lane, options) + sizeof(LaneOptions) <= kLineBytes,
              "what a publisher stores to at every event is one line");
static_assert(offsetof(Lane, unqueued) == kLineBytes && offsetof(Lane, inlined) < 2 * kLineBytes &&
                  offsetof(Lane, sources) + sizeof(Lane::Sources) <= 3 * kLineBytes,
              "what else a publisher writes is on none of the owner's lines");
static_assert(offsetof(Lane, consumed) == 3 * kLineBytes &&
                  offsetof(Lane, ahead) + sizeof(Ahead*) <= 4 * kLineBytes,
              "what the owner stores to at every run is one line");
static_assert(offsetof(Lane, when_full) == 4 * kLineBytes,
              "what is seldom written is apart from both");

/// Room for the publishing times of a lane that measures each `every`-th event: a power of two.
constexpr std::size_t marks_count(std::size_t capacity, std::uint64_t every) noexcept {
  return std::bit_ceil(capacity / static_cast<std::size_t>(every) + 2);
}

/// Is this thread in the middle of a publish on it?
[[nodiscard]] inline bool begun(const Lane& lane) noexcept {
  return (lane.word.load(std::memory_order_relaxed) & 1) != 0 ||  // relaxed: our own
         lane.underway.inside.load(std::memory_order_relaxed);
}
/// Begins a publish: says "busy" to workers, and to this thread's signal handlers, before it reads
/// anything that a publish changes. Returns 2 * published + 1; 0: this thread is publishing on the
/// lane already.
[[gnu::always_inline]] inline std::uint64_t begin(Lane& lane) noexcept {
  if (one_instruction()) {
    // Guessed before it is known, so that what follows need not wait until the bit is stored and
    // loaded again. It is wrong where a handler has published in between, and even where this
    // thread is publishing: whoever it interrupts stays busy while it runs.
    const std::uint64_t guess = lane.word.load(std::memory_order_relaxed) + 1;  // relaxed: our own
    std::uint64_t known = hidden(guess);
    set_lowest(lane.word);  // e.published: busy; l.closing of the caller
    const std::uint64_t word = lane.word.load(std::memory_order_relaxed);  // relaxed: our own
    if (word != guess) [[unlikely]] {
      if ((guess & 1) == 0) return 0;  // nothing has changed: the bit was set
      known = hidden(word);  // a branch, and no choice between two values: that would wait for both
    }
    if ((known & 1) == 0) __builtin_unreachable();
    return known;
  }
  if (begun(lane)) return 0;
  // A handler that publishes before this store has ended by then, and the word is read after it.
  lane.underway.inside.store(true, std::memory_order_relaxed);  // relaxed: our own
  order_for_handlers();
  const std::uint64_t word = lane.word.load(std::memory_order_relaxed) + 1;  // relaxed: our own
  lane.word.store(word, std::memory_order_release);  // e.published: busy; l.closing of the caller
  return word;
}
/// Ends it with so many events published. `word`: what begin() returned.
[[gnu::always_inline]] inline void end(Lane& lane, std::uint64_t word,
                                       std::size_t events) noexcept {
  lane.word.store(word - 1 + 2 * events, std::memory_order_release);  // e.published
  if (one_instruction()) return;
  order_for_handlers();
  lane.underway.inside.store(false, std::memory_order_relaxed);  // relaxed: our own
}

}  // namespace ringmain::engine
