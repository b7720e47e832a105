// Who destroys captures that were last used in a publishing thread? Not that thread: it may hold
// locks that their destructors want. It buries the subscriber; others dig.
//
// A stack that anybody pushes to and that is taken whole, so that no address is compared while it
// is read. Closing it swaps a mark in for good: who comes later is told, by the very exchange that
// failed, that nobody will dig any more. Models: tests/model/inline_relacy.cpp, gate_destroy.pml
// -DBURY.
#pragma once
#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "subscriber.hpp"

namespace ringmain::engine {

class Graveyard {
 public:
  /// By who was told so by Gate::leave_to_bury(): once for each subscriber. True: it lies there
  /// until somebody digs. False: closed; it was destroyed here and now. Progress: lock-free.
  [[nodiscard]] bool bury(Subscriber& subscriber) noexcept;
  /// Destroys the captures of all that lie there. Threads: any, outside the bus's locks.
  void dig() noexcept;
  /// As dig(), and from here on nothing lies there.
  void close() noexcept;
  /// Worth digging? Orders with bury() as the workers' signals do, so that none parks on it.
  [[nodiscard]] bool occupied() const noexcept {
    const Subscriber* top = top_.load(std::memory_order_seq_cst);  // S
    return top != nullptr && top != closed();
  }

 private:
  static Subscriber* closed() noexcept { return reinterpret_cast<Subscriber*>(1); }
  static void destroy_all(Subscriber* top) noexcept;

  alignas(kLineBytes) Atomic<Subscriber*> top_{nullptr};
};

}  // namespace ringmain::engine
