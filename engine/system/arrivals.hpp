// Is it still as quiet as when I looked? One word says so for many channels and hook rows at once.
//
// A bus counts the subscribers that come. Who comes is listed first and counted then; who looks
// reads the count first and the lists then, and remembers the count if nobody was there. While the
// count is the same, nobody has come (e.arrived). Who leaves is not counted: the next look finds
// out. Model: tests/model/arrivals.pml; arrivals_relacy.cpp runs this file.
#pragma once
#include <cstdint>

#include "atomics.hpp"
#include "cache_line.hpp"

namespace ringmain::engine {

/// Threads: any. Progress: wait-free.
class alignas(kLineBytes) Arrivals {
 public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  /// A subscriber was listed: whoever publishes after this returned finds another count.
  void one_more() noexcept { count_.fetch_add(1, std::memory_order_release); }  // e.arrived
  /// Never 0.
  [[nodiscard]] [[gnu::always_inline]] std::uint64_t so_far() const noexcept {
    return count_.load(std::memory_order_acquire);  // e.arrived: who was counted is listed
  }

 private:
  Atomic<std::uint64_t> count_{1};
};

/// At which count a look found nobody. Threads: any. Progress: wait-free.
class QuietSince {
 public:
  QuietSince() = default;
  QuietSince(const QuietSince&) = delete;
  QuietSince& operator=(const QuietSince&) = delete;

  /// Whatever would have to be told has come later than this thread can know of.
  [[nodiscard]] [[gnu::always_inline]] bool still(const Arrivals& arrivals) const noexcept {
    // Relaxed: it compares counts. What was listed before another one, so_far() brings.
    return arrivals.so_far() == count_.load(std::memory_order_relaxed);
  }
  /// A look that begins now; before Arrivals::so_far().
  [[nodiscard]] std::uint64_t before() const noexcept {
    return count_.load(std::memory_order_relaxed);  // relaxed: what replaces it compares
  }
  /// It found nobody; `before` is as before() said, `count` as Arrivals::so_far() said after it.
  void found_nobody(std::uint64_t before, std::uint64_t count) noexcept {
    if (before == kNever) return;  // whatever this look saw, or did not see yet
    // Relaxed: as in still(). It fails if no_more() came meanwhile; if for nothing, others look.
    (void)count_.compare_exchange_weak(before, count, std::memory_order_relaxed,
                                       std::memory_order_relaxed);
  }
  /// It is quiet no more, for good. Before the reason is said: who knows of that must not be passed
  /// over.
  void no_more() noexcept {
    count_.store(kNever, std::memory_order_relaxed);  // relaxed: who saw the reason sees this
  }

 private:
  enum : std::uint64_t { kNotYet = ~std::uint64_t{0}, kNever = 0 };
  Atomic<std::uint64_t> count_{kNotYet};
};

}  // namespace ringmain::engine
