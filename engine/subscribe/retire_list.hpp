// Who destroys captures that were last used in a publishing thread? Not that thread: it may hold
// locks that their destructors want. It retires the subscriber; others
// reclaim.
//
// A stack that anybody pushes to and that is taken whole, so that no address is compared while it
// is read. Closing it swaps a mark in for good: a thread that
// comes later is told, by the very exchange that failed, that nobody will reclaim any more. Models:
// tests/model/inline_relacy.cpp, gate_destroy.pml -DRETIRE.
#pragma once
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "subscriber.hpp"

namespace ringmain::engine {

class RetireList {
 public:
  /// By the thread that Gate::leave_to_retire() told so: once for each subscriber. True: it lies
  /// there until somebody reclaims it. False: closed; it was destroyed here and now. Progress:
  /// lock-free.
  [[nodiscard]] bool retire(Subscriber& subscriber) noexcept;
  /// Destroys the captures of all that lie there. Threads: any, outside the bus's locks.
  void reclaim_all() noexcept;
  /// As reclaim_all(), and from here on nothing lies there.
  void close() noexcept;
  /// Is there anything to reclaim? Orders with retire() as the workers' signals do, so that none
  /// parks on it.
  [[nodiscard]] bool occupied() const noexcept {
    const Subscriber* top = top_.load(std::memory_order_seq_cst);  // s.signal
    return top != nullptr && top != closed();
  }

 private:
  static Subscriber* closed() noexcept { return reinterpret_cast<Subscriber*>(1); }
  static void destroy_all(Subscriber* top) noexcept;

  alignas(kLineBytes) Atomic<Subscriber*> top_{nullptr};
};

}  // namespace ringmain::engine
