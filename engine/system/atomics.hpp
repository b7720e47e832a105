// Atomics, the asymmetric barrier, and futexes: all that the protocols ask of the machine.
//
// One seam: a test build may define RINGMAIN_ATOMICS_HEADER to a header that gives Atomic,
// AtomicRef, asymmetric_fence_light, asymmetric_fence_heavy, futex_wait and futex_wake in this
// namespace, and so run the real protocols under a model checker. The models are in tests/model.
#pragma once
#ifdef RINGMAIN_ATOMICS_HEADER
#include RINGMAIN_ATOMICS_HEADER
#else
#include <atomic>
#include <cstdint>

#include "atomic_ref.hpp"

namespace ringmain::engine {

template <class T>
using Atomic = std::atomic<T>;

/// The cheap half of a store-load edge (l.closing, l.attended, l.waiting …): this thread's earlier
/// stores are seen before its later loads are done, provided that the other side calls
/// asymmetric_fence_heavy() between its own store and load. Costs nothing where membarrier works:
/// only the compiler is kept from reordering.
inline void asymmetric_fence_light() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // l.closing: and the others, by its callers
}

/// asymmetric_fence_light() for code that must also be right where membarrier is refused: there it
/// is a full fence.
void asymmetric_fence_light_or_full() noexcept;

/// The costly half: every thread of the process passes a full barrier between call and return
/// (membarrier, 0.4 to 9 us). Where membarrier is refused only the caller passes one, and
/// asymmetric_fence_light_or_full() is a fence as well. Where it is refused from some moment on (a
/// seccomp filter that came later) there are publishers without fences: then this waits for a
/// millisecond, in which all that they have stored is seen.
void asymmetric_fence_heavy() noexcept;

/// True when membarrier is refused (old kernel, seccomp, RINGMAIN_BARRIER=fence): then publishers
/// must take the path with asymmetric_fence_light_or_full(). The first call in the process asks the
/// kernel; asymmetric_fence_heavy() finds out if it refuses later.
[[nodiscard]] bool barrier_is_fence() noexcept;

/// In a forked child: registers the child, as the registration of membarrier belongs to a process.
void register_barrier_again() noexcept;

// A word that one thread alone writes may also be written by a signal handler of that thread. The
// two never run at once, and every processor shows a thread its own accesses in order, so only the
// compiler must be kept from reordering. But a handler can run between a load and the store that
// depends on it. On x86-64 one instruction that is not locked does both. Elsewhere that would take
// a read-modify-write, which no queued event makes: there a flag keeps handlers out (Lane::inside),
// and only counts of refusals and inline calls are read-modify-writes. Sanitized builds do as
// elsewhere, because a sanitizer does not see what an asm does.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define RINGMAIN_ASM_IS_UNSEEN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define RINGMAIN_ASM_IS_UNSEEN 1
#endif
/// Is a word changed by one instruction, which no handler can interrupt halfway?
constexpr bool one_instruction() noexcept {
#if defined(__x86_64__) && !defined(RINGMAIN_ASM_IS_UNSEEN)
  return true;
#else
  return false;
#endif
}
#if defined(__x86_64__)
/// An operand for asm, which takes no class of some standard libraries'.
inline std::uint64_t& bytes_of(Atomic<std::uint64_t>& word) noexcept {
  static_assert(sizeof word == sizeof(std::uint64_t) && Atomic<std::uint64_t>::is_always_lock_free);
  return reinterpret_cast<std::uint64_t&>(word);
}
#endif
/// Where one_instruction(): sets the lowest bit of a word that this thread alone writes; a release
/// for other threads.
[[gnu::always_inline]] inline void set_lowest(Atomic<std::uint64_t>& word) noexcept {
#if defined(__x86_64__)
  // Not btsq, which says what the bit was: that is four operations here, and this is two.
  asm volatile("orq $1, %0" : "+m"(bytes_of(word)) : : "memory", "cc");
#else
  (void)word;
#endif
}
/// The same value, of which the compiler knows nothing: it takes no equal one in its place, and
/// computes it nowhere but here.
[[gnu::always_inline]] inline std::uint64_t hidden(std::uint64_t value) noexcept {
#if defined(__x86_64__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}
/// Adds one to a word that this thread alone writes; a release for other threads.
inline void count_one(Atomic<std::uint64_t>& word) noexcept {
#if defined(__x86_64__)
  if constexpr (one_instruction()) {
    asm volatile("incq %0" : "+m"(bytes_of(word)) : : "memory", "cc");
    return;
  }
#endif
  word.fetch_add(1, std::memory_order_release);  // a.refusals, a.calls
}
/// A signal handler of this thread sees what stands above the call before what stands below it.
inline void order_for_handlers() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // s.handlers: its own handlers
}

/// Sleeps while `word` holds `key`, for at most `limit_ns` (negative: for ever). May wake
/// spuriously. False when the time ran out. CLOCK_MONOTONIC; signals do not end the sleep.
bool futex_wait(Atomic<std::uint32_t>& word, std::uint32_t key,
                std::int64_t limit_ns = -1) noexcept;
/// Wakes up to `count` sleepers. A system call even when none sleeps.
void futex_wake(Atomic<std::uint32_t>& word, int count) noexcept;

/// A hint that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace ringmain::engine
#endif
