// Gates: how does a subscriber leave while workers may be calling it?
//
// One word {CLOSED, BARRED, DEFERRED, DEAD, GONE, RETIRED, AWAITED, running count}, changed by
// read-modify-write only. A worker counts itself in before it looks at CLOSED, so that whoever
// closes sees it or is seen by it. Who sleeps has said so by AWAITED: most subscribers leave while
// nobody calls them, and then nobody makes a system call. The subscriber's captures are destroyed
// once, by the holder of DEAD; GONE says that it is over. A publishing thread never destroys them:
// it says RETIRED, once, and others reclaim. Model: tests/model/gate_destroy.pml (and
// unsubscribe_quiescence.pml, its older half).
#pragma once
#include <cstdint>

#include "../system/atomics.hpp"

namespace ringmain::engine {

class Gate {
 public:
  /// Worker: counts itself in. False: closed; the caller must still leave(). Wait-free.
  [[nodiscard]] bool enter() noexcept {
    // g.calls: what a finished call wrote is seen by the next one; either close() sees our count or
    // we see CLOSED.
    return (word_.fetch_add(1, std::memory_order_acq_rel) & (kClosed | kBarred)) == 0;
  }
  /// Worker: counts itself out. True: the caller must destroy the captures, then call gone().
  [[nodiscard]] bool leave() noexcept {
    const std::uint32_t left = word_.fetch_sub(1, std::memory_order_acq_rel) - 1;  // g.calls
    if ((left & kClosed) == 0 || (left & kCount) != 0) return false;
    if ((left & kDeferred) != 0 && claim()) return true;
    wake(left);
    return false;
  }
  /// Publishing thread: counts itself out. True: the caller must retire the subscriber, for others
  /// to claim_retired(). `wakes`: makes a system call where somebody may wait for this call;
  /// without, they must look by themselves (wait() with look_ns).
  [[nodiscard]] bool leave_to_retire(bool wakes) noexcept {
    const std::uint32_t left = word_.fetch_sub(1, std::memory_order_acq_rel) - 1;  // g.calls
    if ((left & kClosed) == 0 || (left & kCount) != 0) return false;
    const bool mine =
        (left & kDeferred) != 0 && (left & kDead) == 0 &&
        (word_.fetch_or(kRetired, std::memory_order_acq_rel) & kRetired) == 0;  // g.calls
    if (wakes) wake(left);
    return mine;
  }
  /// By the thread that reclaims: nobody runs or will. True: the caller must destroy the captures,
  /// then call gone(). Not by comparing: a late thread that bounces the count retires nothing
  /// again.
  [[nodiscard]] bool claim_retired() noexcept {
    return (word_.fetch_or(kDead, std::memory_order_acq_rel) & kDead) == 0;  // g.calls
  }
  /// Worker, between two events of a batch: has somebody closed or barred it?
  [[nodiscard]] bool closed() const noexcept {
    return (word_.load(std::memory_order_acquire) & (kClosed | kBarred)) != 0;  // g.calls
  }
  /// Quarantine: no call starts until readmit(). Says nothing to those that close or wait.
  void bar() noexcept { word_.fetch_or(kBarred, std::memory_order_acq_rel); }        // g.calls
  void readmit() noexcept { word_.fetch_and(~kBarred, std::memory_order_acq_rel); }  // g.calls
  [[nodiscard]] bool barred() const noexcept {
    return (word_.load(std::memory_order_acquire) & kBarred) != 0;  // g.calls
  }

  /// No call starts from here on. False: it was closed before.
  bool close() noexcept {
    return (word_.fetch_or(kClosed, std::memory_order_acq_rel) & kClosed) == 0;  // g.calls
  }
  /// As close(), and the last call out destroys the captures. True: there is no call out, so the
  /// caller must destroy them, then call gone().
  [[nodiscard]] bool close_deferred() noexcept {
    const std::uint32_t now =
        word_.fetch_or(kClosed | kDeferred, std::memory_order_acq_rel);  // g.calls
    return (now & kCount) == 0 && claim();
  }
  /// After close(): waits until no call is running, at most `limit_ns` (negative: for ever).
  enum class Waited : std::uint8_t {
    claimed,  // the caller must destroy the captures, then call gone()
    gone,     // somebody else has destroyed them
    timeout
  };
  /// `look_ns`: how long to sleep at most before looking again where a call may leave without
  /// waking.
  [[nodiscard]] Waited wait(std::int64_t limit_ns, std::int64_t look_ns = -1) noexcept;
  /// The captures are destroyed: those who wait may return.
  void gone() noexcept {
    wake(word_.fetch_or(kGone, std::memory_order_acq_rel));  // g.calls
  }

 private:
  enum : std::uint32_t {
    kClosed = 1u << 31,
    kDeferred = 1u << 30,
    kDead = 1u << 29,
    kGone = 1u << 28,
    kRetired = 1u << 27,
    kBarred = 1u << 26,
    kAwaited = 1u << 25,
    kCount = kAwaited - 1
  };
  enum : int { kEverybody = 0x7fffffff };

  /// `seen`: what our last read-modify-write found. A thread that says AWAITED later finds what it
  /// changed.
  void wake(std::uint32_t seen) noexcept {
    if ((seen & kAwaited) != 0) futex_wake(word_, kEverybody);
  }
  /// Once: a late worker that bounces the count after CLOSED must not destroy again.
  bool claim() noexcept {
    std::uint32_t now = word_.load(std::memory_order_relaxed);
    while ((now & kDead) == 0 && (now & kCount) == 0) {
      if (word_.compare_exchange_weak(now, now | kDead, std::memory_order_acq_rel,  // g.calls
                                      std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

  Atomic<std::uint32_t> word_{0};
};

}  // namespace ringmain::engine
