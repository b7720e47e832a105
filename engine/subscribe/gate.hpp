// Gates: how does a subscriber leave while workers may be calling it?
//
// One word {CLOSED, BARRED, DEFERRED, DEAD, GONE, RETIRED, AWAITED, BIASED, running count}, changed
// by read-modify-write only. A worker counts itself in before it looks at CLOSED, so either the
// worker sees CLOSED, or the thread that closes sees the worker's count. A thread that is about to
// sleep sets AWAITED: most subscribers leave while they are not being called, and then no system
// call is made. The thread that sets DEAD destroys the captures, once, and sets GONE when that is
// over. Model: tests/model/gate_destroy.pml (and unsubscribe_quiescence.pml, its older half).
//
// A subscriber that is called often becomes BIASED: a worker shows that it calls it, and counts no
// more (worker_calls.hpp). Who closes such a one makes all threads pass a barrier and looks at what
// they show; one that comes and goes is never biased, and costs no barrier. Model: biased_gate.pml.
//
// A publishing thread does not count itself in: it shows whom it calls (shown.hpp), and the count
// stays 0. It does not destroy captures either: it sets RETIRED, once, and other threads reclaim,
// unless the retire list is closed.
#pragma once
#include <cstdint>

#include "../system/atomics.hpp"

namespace ringmain::engine {

class ShownCalls;
struct Subscriber;

class Gate {
 public:
  /// Worker: counts itself in. False: closed; the caller must still leave(). Progress: wait-free.
  [[nodiscard]] bool enter() noexcept {
    // g.calls: what a finished call wrote is seen by the next one; either close() sees our count or
    // we see CLOSED.
    return (word_.fetch_add(1, std::memory_order_acq_rel) & (kClosed | kBarred)) == 0;
  }
  /// Worker: counts itself out. True: the caller must destroy the captures, then call gone().
  /// `whose`: here and below, whose calls workers may show; nullptr: they show none.
  [[nodiscard]] bool leave(const Subscriber* whose = nullptr) noexcept {
    const std::uint32_t left = word_.fetch_sub(1, std::memory_order_acq_rel) - 1;  // g.calls
    if ((left & kClosed) == 0 || (left & kCount) != 0) [[likely]]
      return false;
    return leave_closed(whose);
  }
  /// Worker that shows a call, before it calls. False: enter() decides.
  [[nodiscard]] bool open_to_shown() const noexcept {
    return (word_.load(std::memory_order_acquire) & (kClosed | kBarred | kBiased)) ==
           kBiased;  // g.calls
  }
  /// Worker in a counted call: from here on calls need only be shown. Not where the barrier is a
  /// fence.
  void bias() noexcept { word_.fetch_or(kBiased, std::memory_order_acq_rel); }  // g.calls
  /// Worker that shows its call no longer, or counts it no longer, and found the gate closed. True:
  /// as leave().
  [[nodiscard]] bool leave_closed(const Subscriber* whose) noexcept;
  /// Worker, between two events of a batch: was the gate closed or barred meanwhile?
  [[nodiscard]] bool closed() const noexcept {
    return (word_.load(std::memory_order_acquire) & (kClosed | kBarred)) != 0;  // g.calls
  }
  /// Quarantine: no call starts until readmit(). Closing and waiting go on as before.
  void bar() noexcept { word_.fetch_or(kBarred, std::memory_order_acq_rel); }        // g.calls
  void readmit() noexcept { word_.fetch_and(~kBarred, std::memory_order_acq_rel); }  // g.calls
  [[nodiscard]] bool barred() const noexcept {
    return (word_.load(std::memory_order_acquire) & kBarred) != 0;  // g.calls
  }

  /// No call starts from here on. False: it was closed before.
  bool close() noexcept {
    return (word_.fetch_or(kClosed, std::memory_order_acq_rel) & kClosed) == 0;  // g.calls
  }
  /// As close(), and the last call that ends destroys the captures. True: no call is running, so
  /// the caller must destroy them, then call gone().
  [[nodiscard]] bool close_deferred(const Subscriber* whose = nullptr) noexcept {
    const std::uint32_t now =
        word_.fetch_or(kClosed | kDeferred, std::memory_order_acq_rel);  // g.calls
    return (now & kCount) == 0 && !shown(whose) && claim();
  }
  /// After close(): waits until no call is running, at most `limit_ns` (negative: for ever).
  enum class Waited : std::uint8_t {
    claimed,  // the caller must destroy the captures, then call gone()
    gone,     // another thread has destroyed them
    timeout
  };
  [[nodiscard]] Waited wait(std::int64_t limit_ns, const Subscriber* whose = nullptr) noexcept;

  // --- calls that are shown, not counted ---

  /// Publishing thread, when it shows the call no longer and found the gate closed. True: the
  /// caller must retire the subscriber, for others to claim_retired(). `wakes`: makes a system call
  /// where a thread waits for the end of this call; without it, waiting threads must look now and
  /// then.
  [[nodiscard]] bool leave_shown(bool wakes) noexcept {
    const std::uint32_t now = word_.load(std::memory_order_acquire);  // g.calls
    const bool mine =
        (now & kDeferred) != 0 && (now & kDead) == 0 &&
        (word_.fetch_or(kRetired, std::memory_order_acq_rel) & kRetired) == 0;  // g.calls
    if ((now & kAwaited) != 0) {
      // The word changes before anybody is woken: a sleep that is about to begin ends by that.
      word_.fetch_and(~kAwaited, std::memory_order_acq_rel);  // g.calls
      if (wakes) futex_wake(word_, kEverybody);
    }
    return mine;
  }
  /// As close_deferred(), but a call may be running whatever the count says.
  void close_shown_deferred() noexcept {
    word_.fetch_or(kClosed | kDeferred, std::memory_order_acq_rel);  // g.calls
  }
  /// After the gate was closed. True: no call is shown, so the caller must destroy the captures,
  /// then call gone(). Cost: one asymmetric_fence_heavy().
  [[nodiscard]] bool claim_unshown(const ShownCalls& by, const Subscriber& whose) noexcept;
  /// The same by the thread that took it off the retire list. Where a call is shown, that call
  /// retires it again.
  [[nodiscard]] bool claim_retired(const ShownCalls& by, const Subscriber& whose) noexcept;
  /// As wait(). `look_ns`: the longest sleep between two looks, for calls that end without waking.
  [[nodiscard]] Waited wait_unshown(const ShownCalls& by, const Subscriber& whose,
                                    std::int64_t limit_ns, std::int64_t look_ns) noexcept;

  /// Says that the captures are destroyed: threads that wait may return.
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
    kBiased = 1u << 24,
    kCount = kBiased - 1
  };
  enum : int { kEverybody = 0x7fffffff };

  /// `seen`: what this thread's last read-modify-write found. A thread that sets AWAITED later
  /// finds what that one changed.
  void wake(std::uint32_t seen) noexcept {
    if ((seen & kAwaited) != 0) futex_wake(word_, kEverybody);
  }
  /// After the gate was closed: does a worker show a call that is made? Where nothing is biased by
  /// now, a worker that finds it biased later finds it closed as well.
  [[nodiscard]] bool shown(const Subscriber* whose) const noexcept {
    return (word_.load(std::memory_order_acquire) & kBiased) != 0 &&
           look_at_shown(whose);  // g.calls
  }
  [[nodiscard]] static bool look_at_shown(const Subscriber* whose) noexcept;
  /// Succeeds once: a late worker that counts itself in and out after CLOSED must not destroy
  /// again.
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

  /// The same where no count says it: the caller has looked whether a call is shown.
  bool claim_once() noexcept {
    return (word_.fetch_or(kDead, std::memory_order_acq_rel) & kDead) == 0;  // g.calls
  }

  Atomic<std::uint32_t> word_{0};
};

}  // namespace ringmain::engine
