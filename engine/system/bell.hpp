// How does the housekeeper sleep, so that nothing rung is missed and those who ring pay little?
//
// One word: what was rung, and how deeply it sleeps. A nap ends by a ring only; a doze also ends
// when a worker leaves its park, which costs a worker one look at the word after each park, and
// nothing per event. Ringer: fetch_or; asleep? wake. Sleeper: fetch_or says "asleep" and returns
// what was rung before; then it looks whether a worker is awake (H: the worker left its park before
// it looked at our word). Model: tests/model/house_bell.pml; house_bell_relacy.cpp runs this file.
#pragma once
#include <cstdint>

#include "atomics.hpp"

namespace ringmain::engine {

class Bell {
 public:
  enum : std::uint32_t {
    kRound = 1,     // somebody waits for a round
    kNews = 2,      // a subscriber was quarantined or threw
    kInterest = 4,  // somebody subscribed or left, or asks what the interest is
    kWaiting = 8,   // a removal waits for long
    kRetired = 16,  // captures wait for their destruction
    kBusy = 32,     // a worker works again, or one's budget is smaller
    kLast = 64,     // stop() is about to close the channels: say what is to be said
    kQuit = 128
  };

  /// `what` is to be looked at. A system call only if the housekeeper sleeps. Threads: any.
  /// Progress: wait-free.
  void ring(std::uint32_t what) noexcept {
    const std::uint32_t before = word_.fetch_or(what, std::memory_order_seq_cst);  // H
    // Who rang the same before has waked it, or found it awake.
    if ((before & kAsleep) != 0 && (before & what) != what) futex_wake(word_, 1);
  }
  /// A worker, after it has said that it is no longer parked.
  void stir() noexcept {
    if ((word_.load(std::memory_order_seq_cst) & kDozing) != 0) ring(kBusy);  // H
  }

  /// The housekeeper: sleeps until it is rung; at most `nap_ns` while `busy()`, else `doze_ns`.
  /// Returns what was rung.
  template <class Busy>
  std::uint32_t sleep(std::int64_t nap_ns, std::int64_t doze_ns, Busy busy) noexcept {
    std::uint32_t rung = lie_down();
    const bool napping = rung == 0 && busy();
    if (napping) rung = only_nap();
    if (rung == 0) {
      futex_wait(word_, napping ? std::uint32_t{kAsleep} : kAsleep | kDozing,
                 napping ? nap_ns : doze_ns);
    }
    return get_up();
  }

 private:
  enum : std::uint32_t { kAsleep = 1u << 30, kDozing = 1u << 31, kRung = kAsleep - 1 };

  /// What was rung before.
  std::uint32_t lie_down() noexcept {
    return word_.fetch_or(kAsleep | kDozing, std::memory_order_seq_cst) & kRung;  // H
  }
  std::uint32_t only_nap() noexcept {
    return word_.fetch_and(~std::uint32_t{kDozing}, std::memory_order_seq_cst) & kRung;  // H
  }
  std::uint32_t get_up() noexcept {
    return word_.exchange(0, std::memory_order_seq_cst) & kRung;  // H: what the ringer did before
  }

  Atomic<std::uint32_t> word_{0};
};

}  // namespace ringmain::engine
