// Who destroys captures that were last used in a publishing thread? Not that thread: it may hold
// locks that their destructors want. It retires the subscriber, and other threads reclaim it.
//
// A stack: any thread pushes, and a thread that reclaims takes it whole, so no address is compared
// while an element is read. Closing swaps a mark in for good; a push that finds the mark knows that
// no thread reclaims any more. Models: tests/model/inline_calls.pml, inline_relacy.cpp.
#pragma once
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "subscriber.hpp"

namespace ringmain::engine {

class RetireList {
 public:
  /// By the thread for which Gate::leave_shown() was true. True: it stays in the list until a
  /// thread reclaims it, and keeps what shows its calls. False: the list is closed, so it was
  /// reclaimed here. Progress: lock-free.
  [[nodiscard]] bool retire(Subscriber& subscriber) noexcept;
  /// Destroys the captures of the subscribers in the list that no thread calls; a call that runs
  /// retires its own again. Threads: any, outside the bus's locks.
  void reclaim_all() noexcept;
  /// As reclaim_all(), and closes the list.
  void close() noexcept;
  /// Is there anything to reclaim? Ordered with retire() as the workers' signals are, so that no
  /// worker parks while something is.
  [[nodiscard]] bool occupied() const noexcept {
    const Subscriber* top = top_.load(std::memory_order_seq_cst);  // s.signal
    return top != nullptr && top != closed();
  }

 private:
  static Subscriber* closed() noexcept { return reinterpret_cast<Subscriber*>(1); }
  static void reclaim(Subscriber* top) noexcept;

  alignas(kLineBytes) Atomic<Subscriber*> top_{nullptr};
};

}  // namespace ringmain::engine
