// A number that several threads change, and from which nothing else follows: a count, a time, the
// largest of something. And bits of which whoever sets the last ones sees all.
#pragma once
#include "atomics.hpp"

namespace ringmain::engine {

/// Relaxed throughout: what orders who reads it with who wrote it is elsewhere. Threads: any.
/// Progress: wait-free but for at_least() and at_most(), which are lock-free.
template <class T>
class Figure {
 public:
  constexpr Figure() noexcept = default;
  constexpr explicit Figure(T first) noexcept : value_(first) {}
  [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T to) noexcept { value_.store(to, std::memory_order_relaxed); }
  /// Where it is still 0.
  void set_first(T to) noexcept {
    T nothing{};
    value_.compare_exchange_strong(nothing, to, std::memory_order_relaxed);
  }
  /// True: it was `from`, and is `to`.
  bool change(T from, T to) noexcept {
    return value_.compare_exchange_strong(from, to, std::memory_order_relaxed);
  }
  /// What it was before.
  T add(T more) noexcept { return value_.fetch_add(more, std::memory_order_relaxed); }
  T exchange(T to) noexcept { return value_.exchange(to, std::memory_order_relaxed); }
  void at_least(T least) noexcept {
    T was = get();
    while (was < least && !value_.compare_exchange_weak(was, least, std::memory_order_relaxed)) {
    }
  }
  void at_most(T most) noexcept {
    T was = get();
    while (was > most && !value_.compare_exchange_weak(was, most, std::memory_order_relaxed)) {
    }
  }

 private:
  Atomic<T> value_{};
};

/// Threads: any. Progress: wait-free.
template <class T>
class Marks {
 public:
  [[nodiscard]] T get() const noexcept {
    return value_.load(std::memory_order_acquire);  // v.marks
  }
  /// Sets bits. What was set before: of two threads that set a bit each, one sees both, and what
  /// the other had done.
  T set(T bits) noexcept { return value_.fetch_or(bits, std::memory_order_acq_rel); }  // v.marks

 private:
  Atomic<T> value_{};
};

}  // namespace ringmain::engine
