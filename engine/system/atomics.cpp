#include "engine/system/atomics.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/system/clock.hpp"

namespace ringmain::engine {
namespace {

bool register_membarrier() noexcept {
  const char* asked = std::getenv("RINGMAIN_BARRIER");
  if (asked != nullptr && std::strcmp(asked, "fence") == 0) return false;
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

namespace {

enum Form : int {
  kUnknown,
  kFence,        // asked for, or refused at the start: both sides fence
  kMembarrier,   // publishers do not fence
  kRefusedLater  // refused since some moment, when there were lanes without fences
};
// No static with a guard: a child that is forked while another thread holds the guard would wait
// for ever.
constinit Atomic<int> form{kUnknown};

Form known_form() noexcept {
  // Relaxed: the form changes at most once after it is known, to one that is right for older users
  // too; two threads that find it out find the same.
  int known = form.load(std::memory_order_relaxed);
  if (known == kUnknown) {
    known = register_membarrier() ? kMembarrier : kFence;
    form.store(known, std::memory_order_relaxed);  // relaxed: as above
  }
  return static_cast<Form>(known);
}

/// Waits until every store that a thread of this process has made is seen. A core keeps a store
/// back for microseconds at most, and a thread that leaves its core has none kept back. (Temporally
/// bounded store buffers: Morrison, Afek, ASPLOS 2015.)
void wait_for_stores() noexcept {
  enum : std::int64_t { kStoreNsMax = 1'000'000 };
  const int saved = errno;
  const std::int64_t until = now_ns() + kStoreNsMax;
  do {
    const timespec some{0, 200'000};
    (void)::nanosleep(&some, nullptr);
  } while (now_ns() < until);
  errno = saved;
}

}  // namespace

bool barrier_is_fence() noexcept {
  return known_form() != kMembarrier;
}

void register_barrier_again() noexcept {
  if (!barrier_is_fence()) (void)register_membarrier();
}

void asymmetric_fence_light_or_full() noexcept {
  if (barrier_is_fence()) {
    std::atomic_thread_fence(
        std::memory_order_seq_cst);  // l.closing, l.attended, l.waiting,
                                     // l.reading, l.shown, l.visiting: the fence form
  } else {
    asymmetric_fence_light();
  }
}

void asymmetric_fence_heavy() noexcept {
  std::atomic_thread_fence(
      std::memory_order_seq_cst);  // l.closing, l.attended, l.waiting, l.reading, l.shown,
                                   // l.visiting: the caller's own half
  const Form known = known_form();
  if (known == kFence) return;
  const int saved = errno;  // a publisher's errno is its own
  if (known == kMembarrier &&
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
    return;
  errno = saved;
  form.store(kRefusedLater, std::memory_order_relaxed);  // relaxed: as in known_form()
  wait_for_stores();
  std::atomic_thread_fence(
      std::memory_order_seq_cst);  // l.closing, l.attended, l.waiting, l.reading, l.shown,
                                   // l.visiting: what comes then is looked at anew
}

static_assert(sizeof(Atomic<std::uint32_t>) == 4 && Atomic<std::uint32_t>::is_always_lock_free,
              "the kernel reads and compares the word itself");

bool futex_wait(Atomic<std::uint32_t>& word, std::uint32_t key, std::int64_t limit_ns) noexcept {
  timespec limit{};
  if (limit_ns >= 0) {
    limit.tv_sec = static_cast<time_t>(limit_ns / 1'000'000'000);
    limit.tv_nsec = static_cast<long>(limit_ns % 1'000'000'000);
  }
  const int saved = errno;  // a publisher's errno is its own
  const long r = ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT_PRIVATE,
                           key, limit_ns < 0 ? nullptr : &limit, nullptr, 0);
  const bool in_time = !(r != 0 && errno == ETIMEDOUT);
  errno = saved;
  return in_time;
}

void futex_wake(Atomic<std::uint32_t>& word, int count) noexcept {
  const int saved = errno;  // a publisher's errno is its own
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
            nullptr, 0);
  errno = saved;
}

}  // namespace ringmain::engine
