// std::atomic_ref of integers, for standard libraries that have none: LLVM's before 19.
#pragma once
#include <atomic>
#include <concepts>

namespace ringmain::engine {

#ifdef __cpp_lib_atomic_ref
template <class T>
using AtomicRef = std::atomic_ref<T>;
#else
/// As much of it as the engine uses.
template <std::integral T>
class AtomicRef {
 public:
  explicit AtomicRef(T& word) noexcept : word_(&word) {}

  [[nodiscard]] T load(std::memory_order order) const noexcept {
    return __atomic_load_n(word_, as_int(order));
  }
  void store(T value, std::memory_order order) const noexcept {
    __atomic_store_n(word_, value, as_int(order));
  }
  T exchange(T value, std::memory_order order) const noexcept {
    return __atomic_exchange_n(word_, value, as_int(order));
  }
  T fetch_add(T value, std::memory_order order) const noexcept {
    return __atomic_fetch_add(word_, value, as_int(order));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure) const noexcept {
    return __atomic_compare_exchange_n(word_, &expected, value, false, as_int(success),
                                       as_int(failure));
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order) const noexcept {
    return __atomic_compare_exchange_n(word_, &expected, value, true, as_int(order),
                                       loading(order));
  }

 private:
  // The compiler's numbers are the standard's, in the same order.
  static_assert(static_cast<int>(std::memory_order_relaxed) == __ATOMIC_RELAXED);
  static constexpr int as_int(std::memory_order order) noexcept { return static_cast<int>(order); }
  /// What a failed exchange may have of an order: it stores nothing, so nothing is released by it.
  static constexpr int loading(std::memory_order order) noexcept {
    const int same = as_int(order);
    if (same == __ATOMIC_ACQ_REL) return __ATOMIC_ACQUIRE;
    return same == __ATOMIC_RELEASE ? __ATOMIC_RELAXED : same;
  }

  T* word_;
};
#endif

}  // namespace ringmain::engine
