// How does the real engine code run under Relacy?
//
// Given as RINGMAIN_ATOMICS_HEADER (see engine/system/atomics.hpp): the same names over Relacy's
// atomics, in the forms and with the mutants of relacy_search.hpp. An access belongs to the
// function it is written in.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <type_traits>
//
#include "tests/model/relacy_search.hpp"

// Relacy puts macros of its own in the place of these; the engine means the real ones.
#undef new
#undef delete
#undef malloc
#undef free
#undef errno
#define errno (*__errno_location())
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst

namespace ringmain::engine {

inline rl::memory_order order_of(std::memory_order o, const char* function) {
  rl::memory_order order = rl::mo_seq_cst;
  if (o == std::memory_order_relaxed) order = rl::mo_relaxed;
  if (o == std::memory_order_acquire) order = rl::mo_acquire;
  if (o == std::memory_order_release) order = rl::mo_release;
  if (o == std::memory_order_acq_rel) order = rl::mo_acq_rel;
  return weakened(function, order);
}

#define RINGMAIN_HERE const char *function = __builtin_FUNCTION(), int line = __builtin_LINE()
#define RINGMAIN_AT rl::debug_info(function, "", static_cast<unsigned>(line))

template <class T>
class Atomic {
 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T value) : cell_(in(value)) {}  // NOLINT(google-explicit-constructor): as std::atomic
  T load(std::memory_order o, RINGMAIN_HERE) const {
    return out(cell_.load(order_of(o, function), RINGMAIN_AT));
  }
  void store(T v, std::memory_order o, RINGMAIN_HERE) {
    cell_.store(in(v), order_of(o, function), RINGMAIN_AT);
  }
  T exchange(T v, std::memory_order o, RINGMAIN_HERE) {
    return out(cell_.exchange(in(v), order_of(o, function), RINGMAIN_AT));
  }
  T fetch_add(T v, std::memory_order o, RINGMAIN_HERE) {
    return cell_.fetch_add(v, order_of(o, function), RINGMAIN_AT);
  }
  T fetch_sub(T v, std::memory_order o, RINGMAIN_HERE) {
    return cell_.fetch_sub(v, order_of(o, function), RINGMAIN_AT);
  }
  T fetch_or(T v, std::memory_order o, RINGMAIN_HERE) {
    return cell_.fetch_or(v, order_of(o, function), RINGMAIN_AT);
  }
  T fetch_and(T v, std::memory_order o, RINGMAIN_HERE) {
    return cell_.fetch_and(v, order_of(o, function), RINGMAIN_AT);
  }
  bool compare_exchange_weak(T& expected, T v, std::memory_order o, std::memory_order failed,
                             RINGMAIN_HERE) {
    Cell was = in(expected);
    const bool done = cell_.compare_exchange_weak(was, in(v), order_of(o, function), RINGMAIN_AT,
                                                  order_of(failed, function), RINGMAIN_AT);
    expected = out(was);
    return done;
  }
  bool compare_exchange_weak(T& expected, T v, std::memory_order o, RINGMAIN_HERE) {
    return compare_exchange_weak(expected, v, o, of_failure(o), function, line);
  }
  bool compare_exchange_strong(T& expected, T v, std::memory_order o, RINGMAIN_HERE) {
    Cell was = in(expected);
    const bool done = cell_.compare_exchange_strong(was, in(v), order_of(o, function), RINGMAIN_AT,
                                                    order_of(of_failure(o), function), RINGMAIN_AT);
    expected = out(was);
    return done;
  }
  [[nodiscard]] rl::atomic<T>& cell() { return cell_; }
  /// The last value stored, past the memory model: for checks.
  [[nodiscard]] T latest() const { return out(cell_.debug_value()); }

 private:
  /// As std::atomic has it.
  static std::memory_order of_failure(std::memory_order o) {
    if (o == std::memory_order_acq_rel) return std::memory_order_acquire;
    return o == std::memory_order_release ? std::memory_order_relaxed : o;
  }
  // Relacy prints values and cannot print a pointer to const.
  using Cell = std::conditional_t<std::is_pointer_v<T>, void*, T>;
  static Cell in(T v) {
    if constexpr (std::is_pointer_v<T>) {
      return const_cast<std::remove_const_t<std::remove_pointer_t<T>>*>(v);
    } else {
      return v;
    }
  }
  static T out(Cell v) { return static_cast<T>(v); }

  rl::atomic<Cell> cell_;
};

inline bool barrier_is_fence() {
  return form.fence;
}
inline void count_one(Atomic<std::uint64_t>& word) {
  word.fetch_add(1, std::memory_order_release);
}
inline void asymmetric_fence_light() {
  RelacyAtomics::light_fence("light", $);
}
inline void asymmetric_fence_light_or_full() {
  RelacyAtomics::light_fence("light", $);
}
inline void asymmetric_fence_heavy() {
  RelacyAtomics::heavy_fence($);
}
/// A wait with a limit is over at once.
inline bool futex_wait(Atomic<std::uint32_t>& word, std::uint32_t key, std::int64_t limit = -1) {
  if (limit >= 0) return rl::yield(1, $), false;
  RelacyAtomics::futex_wait(word.cell(), key, $);
  return true;
}
inline void futex_wake(Atomic<std::uint32_t>& word, int count) {
  RelacyAtomics::futex_wake(word.cell(), count, $);
}

}  // namespace ringmain::engine
