// How does the poller sleep, so that it misses nothing that is armed, and arming costs one look?
//
// It says that it sleeps, then looks at all lanes once more; who arms publishes the ticket, then
// looks whether it sleeps. So one of the two sees the other. Model: tests/model/completions.pml.
#pragma once
#include <cstdint>

#include "engine/system/atomics.hpp"

namespace ringmain::cuda {

class Bell {
 public:
  /// After something was armed. A system call only if the poller sleeps without an end. Threads:
  /// any. Progress: wait-free.
  void ring() noexcept {
    if (word_ == kParked) wake();
  }
  /// Also out of a nap.
  void ring_loudly() noexcept {
    if (word_ != kAwake) wake();
  }

  /// The poller: sleeps until it is rung for, unless `anything()`.
  template <class Anything>
  void park(Anything anything) noexcept {
    word_ = kParked;
    if (!anything()) (void)engine::futex_wait(word_, kParked);
    word_ = kAwake;
  }
  /// For at most so long, unless `stop()`.
  template <class Stop>
  void nap(std::int64_t limit_ns, Stop stop) noexcept {
    word_ = kNapping;
    if (!stop()) (void)engine::futex_wait(word_, kNapping, limit_ns);
    word_ = kAwake;
  }

 private:
  enum : std::uint32_t { kAwake, kParked, kNapping };
  void wake() noexcept {
    word_ = kAwake;
    engine::futex_wake(word_, 1);
  }
  engine::Atomic<std::uint32_t> word_{kAwake};
};

}  // namespace ringmain::cuda
