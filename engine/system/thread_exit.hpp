// What is called when a thread ends, also in a process that has no memory left?
//
// A pthread key rather than a thread_local with a destructor: registering such a destructor ends
// the process when there is no memory, and it runs while other thread_local objects may still call
// us. Other keys' destructors may still do so after it.
#pragma once
#include <cstdint>
#include <pthread.h>

#include "atomics.hpp"

namespace ringmain::engine {

/// A constinit object of static storage, never destroyed. Threads: any. Progress: wait-free.
class ThreadExit {
 public:
  using Call = void(void*);
  constexpr explicit ThreadExit(Call* call) noexcept : call_(call) {}
  ThreadExit(const ThreadExit&) = delete;
  ThreadExit& operator=(const ThreadExit&) = delete;

  /// False: the system has no key left, so nobody is told.
  [[nodiscard]] bool is_told() noexcept { return key() != kNoKey; }
  /// This thread's end calls call(with). False: no key, or no memory.
  [[nodiscard]] bool ask(void* with) noexcept {
    const std::uint32_t known = key();
    return known != kNoKey && ::pthread_setspecific(known - 1, with) == 0;
  }

 private:
  enum : std::uint32_t { kNotAsked = 0, kNoKey = ~0u };

  /// The key + 1. Made at the first use: the constructor of a static object may come before others.
  std::uint32_t key() noexcept {
    std::uint32_t known = key_.load(std::memory_order_acquire);  // e.exit_key: the key is in use
    if (known != kNotAsked) return known;
    pthread_key_t made{};
    const bool has = ::pthread_key_create(&made, call_) == 0;
    const std::uint32_t mine = has ? made + 1 : std::uint32_t{kNoKey};
    // e.exit_key: a thread that finds it can use it.
    if (key_.compare_exchange_strong(known, mine, std::memory_order_acq_rel)) return mine;
    if (has) (void)::pthread_key_delete(made);  // another thread asked meanwhile
    return known;
  }

  Call* const call_;
  Atomic<std::uint32_t> key_{kNotAsked};
};

}  // namespace ringmain::engine
