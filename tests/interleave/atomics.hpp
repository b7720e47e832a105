// The engine's view of the scheduler: given as RINGMAIN_ATOMICS_HEADER (see
// engine/system/atomics.hpp).
//
// Every access is a step of scheduler.hpp; outside a schedule it is a plain one.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>

#include "tests/interleave/scheduler.hpp"

namespace ringmain::engine {

namespace interleaved {
template <class T>
std::uint64_t bits_of(T value) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T of_bits(std::uint64_t bits) noexcept {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
constexpr interleave::Order order_of(std::memory_order o) noexcept {
  if (o == std::memory_order_relaxed) return interleave::Order::relaxed;
  return o == std::memory_order_release ? interleave::Order::release : interleave::Order::seq_cst;
}

/// The accesses of an Atomic or an AtomicRef, over the word at at().
template <class Self, class T>
class Accesses {
 public:
  using Order = std::memory_order;
  T load(Order = std::memory_order_seq_cst, RINGMAIN_WHERE) const noexcept {
    return of_bits<T>(interleave::load(at(), sizeof(T), where));
  }
  void store(T value, Order o = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    interleave::store(at(), sizeof(T), bits_of(value), order_of(o), where);
  }
  T exchange(T value, Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return change("exchange", where, [value](T) { return value; });
  }
  T fetch_add(T by, Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return change("fetch_add", where, [by](T now) { return static_cast<T>(now + by); });
  }
  T fetch_sub(T by, Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return change("fetch_sub", where, [by](T now) { return static_cast<T>(now - by); });
  }
  T fetch_or(T bits, Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return change("fetch_or", where, [bits](T now) { return static_cast<T>(now | bits); });
  }
  T fetch_and(T bits, Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return change("fetch_and", where, [bits](T now) { return static_cast<T>(now & bits); });
  }
  bool compare_exchange_strong(T& expected, T value, Order = std::memory_order_seq_cst,
                               Order = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    const T had =
        change("compare_exchange", where, [&](T now) { return now == expected ? value : now; });
    const bool changed = had == expected;
    expected = had;
    return changed;
  }
  bool compare_exchange_weak(T& expected, T value, Order success = std::memory_order_seq_cst,
                             Order failure = std::memory_order_seq_cst, RINGMAIN_WHERE) noexcept {
    return compare_exchange_strong(expected, value, success, failure, where);
  }
  operator T() const noexcept { return load(); }  // NOLINT(google-explicit-constructor): as std's

 private:
  [[nodiscard]] T* at() const noexcept { return static_cast<const Self*>(this)->address(); }
  template <class Next>
  T change(const char* what, interleave::Where where, Next next) noexcept {
    interleave::before_rmw(at(), what, where);
    const T had = *at();
    *at() = next(had);
    return had;
  }
};
}  // namespace interleaved

template <class T>
class Atomic : public interleaved::Accesses<Atomic<T>, T> {
 public:
  static constexpr bool is_always_lock_free = std::atomic<T>::is_always_lock_free;
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  [[nodiscard]] T* address() const noexcept { return const_cast<T*>(&value_); }

 private:
  alignas(sizeof(T)) T value_{};
};

template <class T>
class AtomicRef : public interleaved::Accesses<AtomicRef<T>, T> {
 public:
  explicit AtomicRef(T& value) noexcept : value_(&value) {}
  [[nodiscard]] T* address() const noexcept { return value_; }

 private:
  T* value_;
};

inline bool one_instruction() noexcept {
  return interleave::one_instruction();
}
/// Goes through the store buffer as any store; no handler comes between.
inline void set_lowest(Atomic<std::uint64_t>& word, RINGMAIN_WHERE) noexcept {
  (void)interleave::change(
      word.address(), [](std::uint64_t had) { return had | 1; }, where);
}
inline std::uint64_t hidden(std::uint64_t value) noexcept {
  return value;
}
inline void count_one(Atomic<std::uint64_t>& word, RINGMAIN_WHERE) noexcept {
  if (!one_instruction())
    (void)word.fetch_add(1, std::memory_order_release, where);
  else
    (void)interleave::change(
        word.address(), [](std::uint64_t had) { return had + 1; }, where);
}
inline void order_for_handlers() noexcept {}  // the compiler's business

inline bool barrier_is_fence() noexcept {
  return interleave::fence_form();
}
inline void register_barrier_again() noexcept {}
// The compiler's business: every access is one step here.
inline void asymmetric_fence_light() noexcept {}
inline void asymmetric_fence_light_or_full(RINGMAIN_WHERE) noexcept {
  if (interleave::fence_form()) interleave::drain_buffer(false, "fence", where);
}
inline void asymmetric_fence_heavy(RINGMAIN_WHERE) noexcept {
  interleave::drain_buffer(!interleave::fence_form(), "heavy fence", where);
}
inline bool futex_wait(Atomic<std::uint32_t>& word, std::uint32_t key, std::int64_t limit_ns = -1,
                       RINGMAIN_WHERE) noexcept {
  interleave::drain_buffer(false, "futex_wait", where);
  if (*word.address() != key) return true;
  return interleave::sleep_on(word.address(), limit_ns, "futex_wait", where);
}
inline void futex_wake(Atomic<std::uint32_t>& word, int count, RINGMAIN_WHERE) noexcept {
  interleave::drain_buffer(false, "futex_wake", where);
  interleave::wake(word.address(), static_cast<std::uint64_t>(count));
}
inline void pause(RINGMAIN_WHERE) noexcept {
  interleave::step("pause", true, where);
}

}  // namespace ringmain::engine
