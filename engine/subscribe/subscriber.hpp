// What does a worker hand to whom? A run of slots, to each subscriber's thunk in turn.
//
// The thunk is the only typed code on this side: it is compiled where the callback was written and
// loops over the run with the callback inlined. Everything else here is in the library.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "../publish/slot.hpp"
#include "../system/atomics.hpp"
#include "../system/clock.hpp"
#include "call_cells.hpp"
#include "gate.hpp"
#include "throws.hpp"

namespace ringmain::engine {

class ChannelCore;
class HouseInbox;
class ShownCalls;
struct Lane;

/// A run of queued events of one lane, in order, in place. Valid during the callback.
struct Run {
  const std::byte* first = nullptr;  // the first slot's header
  std::uint32_t stride = 0;          // bytes from slot to slot
  std::uint32_t count = 0;
  std::uint32_t payload_offset = 0;
  std::uint32_t publisher = 0;
  std::uint64_t first_sequence = 0;
  const ChannelCore* source = nullptr;
  const Lane* lane = nullptr;
  bool source_time = false;
  mutable std::int64_t taken_ns = 0;

  [[nodiscard]] const std::byte* payload(std::size_t i) const noexcept {
    return first + i * stride + payload_offset;
  }
  [[nodiscard]] const SlotHeader& header(std::size_t i) const noexcept {
    return *reinterpret_cast<const SlotHeader*>(first + i * stride);
  }
  /// The envelope of an event that came through a mailbox, else nullptr.
  [[nodiscard]] const Envelope* envelope(std::size_t i) const noexcept {
    return payload_offset == sizeof(SlotHeader)
               ? nullptr
               : reinterpret_cast<const Envelope*>(first + i * stride + sizeof(SlotHeader));
  }
  /// When the worker took the run; the clock is read at the first call.
  [[nodiscard]] std::int64_t taken() const noexcept {
    if (taken_ns == 0) taken_ns = now_ns();
    return taken_ns;
  }
};

/// A statistic with one writer at a time, which any thread may read.
class Count {
 public:
  void add(std::uint64_t n) noexcept {
    // Relaxed: one writer, and nothing follows from the value.
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  Atomic<std::uint64_t> value_{0};
};

/// How many threads may count at once?
enum class Writers : bool {
  one,  // at a time: the lease's holder
  many  // inline, or delivered in parallel
};

/// A statistic with one writer or many. Each call of add() says which; all calls for one count must
/// say the same.
class CallCount {
 public:
  void add(std::uint64_t n, Writers writers) noexcept {
    if (writers == Writers::many) {
      value_.fetch_add(n, std::memory_order_relaxed);  // relaxed: nothing follows from the value
    } else {
      // Relaxed: one writer, and nothing follows from the value.
      value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  Atomic<std::uint64_t> value_{0};
};

/// As Count, for the largest value seen.
class Highest {
 public:
  void raise(std::uint64_t value) noexcept {
    if (value > get()) value_.store(value, std::memory_order_relaxed);  // relaxed: one writer
  }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  Atomic<std::uint64_t> value_{0};
};

/// What an inline subscriber says of an event, in a register.
struct Judgement {
  bool veto = false;
  bool threw = false;
  std::uint32_t why = 0;  // a name's id
};

/// One subscriber of one channel: its gate, its thunk, its counts; the captures lie after it.
struct Subscriber {
  using CallFn = void(Subscriber&, const Run&);
  using JudgeFn = Judgement(Subscriber&, const std::byte* event) noexcept;
  using DestroyFn = void(Subscriber&) noexcept;

  CallFn* call = nullptr;        // hands a run to the callback; catches what it throws
  JudgeFn* judge = nullptr;      // inline: shows one event, by any number of threads at once
  DestroyFn* destroy = nullptr;  // destroys the captures, not the subscriber
  HouseInbox* news = nullptr;    // where throws are told
  int priority = 0;
  bool wants_time = false;
  bool patient = false;  // its events may wait while a worker rests
  bool detach_on_throw = false;
  bool veto_on_throw = false;
  std::uint32_t threw_id = 0;            // the reason of a veto by throwing: a name's id
  Subscriber* retired_before = nullptr;  // in the retire list
  std::uint32_t watch_id = 0;            // unique in the process, never 0: what a drainer shows
  std::int64_t budget_ns = 0;            // longer turns are told; 0: never
  Writers writers = Writers::one;        // of its counts: many where its calls overlap
  Gate gate;
  Atomic<std::uint32_t> holders{1};
  const ShownCalls* shown_by = nullptr;  // listed: who knows which thread calls it
  Count counted_turns;                   // until it is biased: worker_calls.hpp
  // offered = delivered + threw + filtered + skipped once the calls are over (I3). Inline: all but
  // `threw` lie in the cells, and here is what found none.
  CallCount offered, delivered, threw, filtered, skipped;
  CallCells cells;
  Throws throws;
  Count slow;          // the housekeeper's: turns over budget_ns
  Highest longest_ns;  // the longest of those turns, as far as it was seen
  std::string name;

  void count(CallCount& what, std::uint64_t n) noexcept { what.add(n, writers); }
  /// How many events were offered, delivered and skipped, by all threads. Threads: any.
  [[nodiscard]] CallCells::Sums calls() const noexcept {
    CallCells::Sums sums = cells.sums();
    sums.delivered += delivered.get();
    sums.skipped += skipped.get();
    sums.offered += offered.get();
    return sums;
  }
  [[nodiscard]] void* captures() noexcept {
    return reinterpret_cast<std::byte*>(this) + captures_offset();
  }
  static constexpr std::size_t captures_offset() noexcept;
};
constexpr std::size_t Subscriber::captures_offset() noexcept {
  return (sizeof(Subscriber) + 63) / 64 * 64;
}

/// Allocates a subscriber with room for captures of this size. The library does it, so that the
/// library can free it when the code that asked for it is unloaded. nullptr: out of memory.
Subscriber* make_subscriber(std::size_t captures_bytes) noexcept;
/// Drops one holder; the last one frees the memory (the captures are long destroyed).
void drop_subscriber(Subscriber* subscriber) noexcept;
/// By the thread that set the gate's DEAD bit. A subscription that the captures reset is waited
/// for, unless this thread is in a callback: the captures may own memory that another callback
/// still uses.
void destroy_captures(Subscriber& subscriber) noexcept;
/// Captures may hold the handle of their own subscription, which must not wait for itself.
[[nodiscard]] bool destroyed_by_this_thread(const Subscriber& subscriber) noexcept;
/// Is this thread inside a callback of any bus? Then it must not wait for a callback.
[[nodiscard]] bool in_callback() noexcept;
/// Marks this thread as inside a callback, from its construction to its destruction.
class CallbackScope {
 public:
  CallbackScope() noexcept;
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};

}  // namespace ringmain::engine
