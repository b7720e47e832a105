// How does the housekeeper sleep, so that it misses no notification and notifying costs little?
//
// An event count of one word: what was notified, and how the housekeeper waits. A short wait ends
// by notify() or by time; a long one also when a worker leaves its park, which costs that worker
// one look at the word after each park, and nothing per event. A notifier sets its bit by fetch_or
// and wakes the housekeeper if it is asleep. The housekeeper's prepare_wait() says "asleep" by a
// fetch_or that returns what was notified before; then it looks whether a worker is awake (h.awake:
// the worker left its park before it looked at the word). Model: tests/model/house_event_count.pml;
// house_event_count_relacy.cpp runs this file.
#pragma once
#include <cstdint>

#include "atomics.hpp"

namespace ringmain::engine {

class EventCount {
 public:
  enum : std::uint32_t {
    kRound = 1,     // a thread waits for a round
    kNews = 2,      // a subscriber was quarantined or threw
    kInterest = 4,  // a subscriber came or left, or a source asks for the interest
    kWaiting = 8,   // a removal has waited for long
    kRetired = 16,  // captures wait for their destruction
    kBusy = 32,     // a worker works again, or one's budget is smaller
    kLast = 64,     // stop() is about to close the channels: tell what is left to be told
    kQuit = 128
  };

  /// Asks the housekeeper to look at `what`. A system call only if it sleeps. Threads: any.
  /// Progress: wait-free.
  void notify(std::uint32_t what) noexcept {
    const std::uint32_t before = word_.fetch_or(what, std::memory_order_seq_cst);  // h.awake
    // An earlier notifier of the same has woken it, or found it awake.
    if ((before & kAsleep) != 0 && (before & what) != what) futex_wake(word_, 1);
  }
  /// A worker, after it has said that it is no longer parked: ends a long wait.
  void notify_busy() noexcept {
    if ((word_.load(std::memory_order_seq_cst) & kLongWait) != 0) notify(kBusy);  // h.awake
  }

  /// The housekeeper: waits until it is notified; at most `short_ns` while `busy()`, else
  /// `long_ns`. Returns what was notified.
  template <class Busy>
  std::uint32_t wait(std::int64_t short_ns, std::int64_t long_ns, Busy busy) noexcept {
    std::uint32_t notified = prepare_wait();
    const bool is_short = notified == 0 && busy();
    if (is_short) notified = shorten_wait();
    if (notified == 0) {
      futex_wait(word_, is_short ? std::uint32_t{kAsleep} : kAsleep | kLongWait,
                 is_short ? short_ns : long_ns);
    }
    return finish_wait();
  }

 private:
  enum : std::uint32_t { kAsleep = 1u << 30, kLongWait = 1u << 31, kNotified = kAsleep - 1 };
  static_assert(std::uint32_t{kQuit} < kAsleep,
                "each thing that is notified has a bit below kAsleep");

  /// Returns what was notified before.
  std::uint32_t prepare_wait() noexcept {
    return word_.fetch_or(kAsleep | kLongWait, std::memory_order_seq_cst) & kNotified;  // h.awake
  }
  std::uint32_t shorten_wait() noexcept {
    return word_.fetch_and(~std::uint32_t{kLongWait}, std::memory_order_seq_cst) &
           kNotified;  // h.awake
  }
  std::uint32_t finish_wait() noexcept {
    return word_.exchange(0, std::memory_order_seq_cst) &
           kNotified;  // h.awake: what notifiers did before
  }

  Atomic<std::uint32_t> word_{0};
};

}  // namespace ringmain::engine
