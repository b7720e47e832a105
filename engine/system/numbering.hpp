// How many were there, and which one is this? Threads that count again and again, and seldom ask,
// make no read-modify-write.
//
// The first four threads have a word each, which they alone write; all others share one. A number
// is taken from the shared word, after what the four have counted was put there: so numbers are
// unique, and grow, and what was counted before is below them. Model: tests/model/numbering.pml.
#pragma once
#include <array>
#include <cstdint>

#include "atomics.hpp"
#include "cache_line.hpp"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <pthread.h>
#endif

namespace ringmain::engine {

/// No other thread that lives has this number; a later one may have it. Never 0.
[[gnu::always_inline]] inline std::uintptr_t thread_number() noexcept {
  std::uintptr_t number = 0;
#if defined(__x86_64__)
  asm("movq %%fs:0, %0" : "=r"(number));  // psABI: the address of the thread's control block
#elif defined(__aarch64__)
  asm("mrs %0, tpidr_el0" : "=r"(number));
#else
  number = reinterpret_cast<std::uintptr_t>(::pthread_self());
#endif
  return number;
}

/// Threads: any. Progress: wait-free but for number() and total(), which are lock-free.
class alignas(kLineBytes) Numbering {
 public:
  Numbering() = default;
  Numbering(const Numbering&) = delete;
  Numbering& operator=(const Numbering&) = delete;

  /// One more.
  [[gnu::always_inline]] void add() noexcept {
    const std::uintptr_t me = thread_number();
    // Relaxed, here and below: counts, from which nothing follows. A thread finds what it wrote,
    // and a later one of the same number what that one wrote.
    if (own_[0].thread.load(std::memory_order_relaxed) == me) [[likely]] {
      count_one(own_[0].count);
    } else {
      add_elsewhere(me);
    }
  }
  /// One more. Which one it is, from 1 on: of what other threads count meanwhile, some is below.
  [[nodiscard]] std::uint64_t number() noexcept {
    const std::uint64_t more = not_shared() + 1;
    return shared_.fetch_add(more, std::memory_order_relaxed) + more;  // relaxed: as above
  }
  [[nodiscard]] std::uint64_t total() noexcept {
    const std::uint64_t more = not_shared();
    return shared_.fetch_add(more, std::memory_order_relaxed) + more;  // relaxed: as above
  }

 private:
  struct Own {
    Atomic<std::uintptr_t> thread{0};  // 0: nobody's
    Atomic<std::uint64_t> count{0};
  };

  [[gnu::noinline]] void add_elsewhere(std::uintptr_t me) noexcept {
    for (Own& one : own_) {
      std::uintptr_t whose = one.thread.load(std::memory_order_relaxed);  // relaxed: as above
      if (whose == me ||
          (whose == 0 && one.thread.compare_exchange_strong(
                             whose, me, std::memory_order_relaxed))) {  // relaxed: as above
        count_one(one.count);
        return;
      }
    }
    shared_.fetch_add(1, std::memory_order_relaxed);  // relaxed: as above
  }
  /// What is in words of threads and not in the shared one; the caller puts it there.
  [[nodiscard]] std::uint64_t not_shared() noexcept {
    std::uint64_t counted = 0;
    for (const Own& one : own_) counted += one.count.load(std::memory_order_relaxed);
    std::uint64_t taken = taken_.load(std::memory_order_relaxed);  // relaxed: as above
    while (taken < counted) {
      if (taken_.compare_exchange_weak(taken, counted, std::memory_order_relaxed))
        return counted - taken;  // relaxed: as above
    }
    return 0;
  }

  std::array<Own, 4> own_;
  Atomic<std::uint64_t> shared_{0};  // numbers up to here are taken
  Atomic<std::uint64_t> taken_{0};   // of own_: what was put into shared_
};

}  // namespace ringmain::engine
