// Is a thread in the middle of a call, for something that is just being closed? Cheap to say, and
// costly to ask: the barrier is on the side of who closes.
//
// A thread says that it calls, then looks whether it may; who closes stores that it may not, passes
// the barrier, then asks. At least one of them sees the other's word (edge l.calling). For one
// thread and one thing; where a thread calls for many, it is presence.hpp. Model:
// tests/model/completions.pml.
#pragma once
#include "atomics.hpp"

namespace ringmain::engine {

class CallFlag {
 public:
  /// Before the thread looks whether what it calls for is closed. Threads: the one that calls.
  /// Progress: wait-free.
  void enter() noexcept {
    word_.store(true, std::memory_order_relaxed);  // relaxed: l.calling
    asymmetric_fence_light_or_full();              // l.calling
  }
  void leave() noexcept { word_.store(false, std::memory_order_release); }  // c.called
  /// What was called for is closed, be it one thing or many: from here on inside() can be asked.
  static void closed() noexcept { asymmetric_fence_heavy(); }  // l.calling
  /// After closed(). False: there is no call, and what was done
  /// in the last one is seen. Threads: any.
  [[nodiscard]] bool inside() const noexcept {
    return word_.load(std::memory_order_acquire);  // c.called
  }

 private:
  Atomic<bool> word_{false};
};

}  // namespace ringmain::engine
