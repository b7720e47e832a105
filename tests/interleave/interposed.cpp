// What else do the engine's threads ask of the system? Locks, threads, clocks, memory: within a
// schedule the scheduler answers, outside of one the system.
//
// These definitions come before the libraries' own, also for the C++ library's std::thread.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <utility>

#include "tests/interleave/memory.hpp"
#include "tests/interleave/scheduler.hpp"

namespace ringmain::interleave {
namespace {

// --- memory ---

enum : std::size_t { kArenaBytes = 64u << 20, kGrain = 16 };
enum : std::uint8_t { kUntouched, kLive, kFreed };

struct Arena {
  std::byte* start = nullptr;
  std::size_t used = 0;
  std::size_t live = 0;
  bool reuse = false;
  std::array<std::byte*, 64> freed{};  // the last ones, while `reuse`
  std::size_t frees = 0;
  std::array<std::uint8_t, kArenaBytes / kGrain> marks{};

  void map() {
    // At the same place in every run, so that what depends on addresses is the same as well.
    void* wish = reinterpret_cast<void*>(std::uintptr_t{0x5e0000000000});  // NOLINT
    void* got = ::mmap(wish, kArenaBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) std::abort();  // NOLINT(performance-no-int-to-ptr)
    start = static_cast<std::byte*>(got);
  }
  [[nodiscard]] bool holds(const void* at) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    const auto from = reinterpret_cast<std::uintptr_t>(start);
    return start != nullptr && address >= from && address < from + kArenaBytes;
  }
  [[nodiscard]] std::size_t grain(const void* at) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(at) - start) / kGrain;
  }
  /// The block's size lies in the grain before it.
  [[nodiscard]] static std::size_t size_of(const std::byte* block) noexcept {
    std::size_t bytes = 0;
    std::memcpy(&bytes, block - sizeof bytes, sizeof bytes);
    return bytes;
  }
  /// The youngest of that size among the last that were freed; nullptr: there is none.
  std::byte* freed_one(std::size_t bytes, std::size_t alignment) noexcept {
    for (std::size_t age = 1; reuse && age <= freed.size() && age <= frees; ++age) {
      std::byte*& one = freed[(frees - age) % freed.size()];
      if (one == nullptr || size_of(one) != bytes ||
          reinterpret_cast<std::uintptr_t>(one) % alignment != 0)
        continue;
      std::memset(&marks[grain(one)], kLive, bytes / kGrain);
      ++live;
      return std::exchange(one, nullptr);
    }
    return nullptr;
  }
};
Arena arena;

// --- locks ---

/// Those that are held; a lock's own memory stays as it was made.
struct Locks {
  std::array<const void*, 64> held{};
  std::size_t count = 0;

  [[nodiscard]] bool holds(const void* lock) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (held[i] == lock) return true;
    }
    return false;
  }
  void add(const void* lock) noexcept {
    if (count == held.size()) fail("too many locks are held");
    held[count++] = lock;
  }
  void remove(const void* lock) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (held[i] == lock) held[i] = held[--count];
    }
  }
};
Locks locks;

bool lock(const void* mutex, std::int64_t limit_ns) {
  const Where where{"lock", 0};
  (void)load(mutex, 1, where);  // a step, and the memory must be alive
  drain_buffer(false, "lock", where);
  while (locks.holds(mutex)) {
    if (limit_ns == 0 || !sleep_on(mutex, limit_ns, "lock", where)) return false;
  }
  locks.add(mutex);
  return true;
}

/// Keys of thread-specific data.
struct Key {
  bool made = false;
  void (*destroy)(void*) = nullptr;
};
std::array<Key, 1024> keys{};
bool keys_are_refused = false;

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void forget_memory() noexcept {
  std::memset(arena.marks.data(), kUntouched, arena.used / kGrain);
  arena.used = 0;
  arena.live = 0;
  arena.reuse = false;
  arena.frees = 0;
  locks.count = 0;
  keys_are_refused = false;
}

void reuse_memory() noexcept {
  arena.reuse = true;
}

bool is_freed(const void* at) noexcept {
  return arena.holds(at) && arena.marks[arena.grain(at)] != kLive;
}

std::size_t live_memory() noexcept {
  return arena.live;
}
std::size_t live_blocks() noexcept {
  return arena.live;
}
void keep_blocks(std::size_t count) noexcept {
  arena.live -= count;
}

void refuse_keys() noexcept {
  keys_are_refused = true;
}
std::size_t delete_keys(void (*destroy)(void*)) noexcept {
  std::size_t count = 0;
  for (pthread_key_t key = 0; key < keys.size(); ++key) {
    if (!keys[key].made || keys[key].destroy != destroy) continue;
    (void)::pthread_key_delete(key);
    ++count;
  }
  return count;
}

void* take_memory(std::size_t bytes, std::size_t alignment) noexcept {
  if (arena.start == nullptr) arena.map();
  bytes = (bytes + kGrain) / kGrain * kGrain;
  alignment = alignment < kGrain ? kGrain : alignment;
  if (std::byte* again = arena.freed_one(bytes, alignment)) return again;
  const std::size_t at = (arena.used + kGrain + alignment - 1) / alignment * alignment;
  if (at + bytes > kArenaBytes) fail("the scenario takes too much memory");
  arena.used = at + bytes;
  std::memcpy(arena.start + at - sizeof bytes, &bytes, sizeof bytes);
  std::memset(&arena.marks[at / kGrain], kLive, bytes / kGrain);
  ++arena.live;
  return arena.start + at;
}

bool give_memory(void* memory) noexcept {
  if (!arena.holds(memory)) return false;
  if (arena.marks[arena.grain(memory)] != kLive) {
    if (inside()) fail("memory is freed twice");
    return true;
  }
  auto* const block = static_cast<std::byte*>(memory);
  const std::size_t bytes = Arena::size_of(block);
  std::memset(&arena.marks[arena.grain(memory)], kFreed, bytes / kGrain);
  if (bytes <= 4096) std::memset(memory, 0xdd, bytes);  // plain readers fall over it
  --arena.live;
  if (arena.reuse) arena.freed[arena.frees++ % arena.freed.size()] = block;
  return true;
}

}  // namespace ringmain::interleave

namespace il = ringmain::interleave;

// NOLINTBEGIN: other people's names and signatures.
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  if (il::inside()) return il::take_memory(bytes, static_cast<std::size_t>(alignment));
  const std::size_t a = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(a, (bytes + a - 1) / a * a);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return il::inside() ? il::take_memory(bytes, 16) : std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new(std::size_t bytes) {
  void* made = operator new(bytes, std::nothrow);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  void* made = operator new(bytes, alignment, std::nothrow);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void* operator new[](std::size_t bytes) {
  return operator new(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& t) noexcept {
  return operator new(bytes, t);
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr && !il::give_memory(memory)) std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  operator delete(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory) noexcept {
  operator delete(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  operator delete(memory);
}

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (il::inside()) return il::lock(mutex, -1) ? 0 : EDEADLK;
  static const auto next = il::real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (il::inside()) return il::lock(mutex, 0) ? 0 : EBUSY;
  static const auto next = il::real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  return next(mutex);
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (il::inside()) {
    il::drain_buffer(false, "unlock", {"unlock", 0});
    il::locks.remove(mutex);
    il::wake(mutex, 1);
    return 0;
  }
  static const auto next = il::real<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  return next(mutex);
}

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  if (il::inside()) {
    *id = static_cast<pthread_t>(il::start_fiber(routine, argument));
    return *id == 0 ? EAGAIN : 0;
  }
  static const auto next =
      il::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return next(id, attributes, routine, argument);
}
int pthread_join(pthread_t id, void** result) {
  if (il::inside()) {
    il::join_fiber(static_cast<std::uint64_t>(id));
    return 0;
  }
  static const auto next = il::real<int(pthread_t, void**)>("pthread_join");
  return next(id, result);
}
int pthread_detach(pthread_t id) noexcept {
  if (il::inside()) return 0;
  static const auto next = il::real<int(pthread_t)>("pthread_detach");
  return next(id);
}
int pthread_setname_np(pthread_t id, const char* name) noexcept {
  if (il::inside()) return 0;
  static const auto next = il::real<int(pthread_t, const char*)>("pthread_setname_np");
  return next(id, name);
}
int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (il::inside()) return 0;
  static const auto next = il::real<int(int, const sigset_t*, sigset_t*)>("pthread_sigmask");
  return next(how, set, before);
}

int sched_yield() noexcept {
  if (il::inside()) {
    il::step("yield", true, {"sched_yield", 0});
    return 0;
  }
  static const auto next = il::real<int()>("sched_yield");
  return next();
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (il::inside()) {
    const std::int64_t now = il::virtual_now_ns();
    time->tv_sec = static_cast<time_t>(now / 1'000'000'000);
    time->tv_nsec = static_cast<long>(now % 1'000'000'000);
    return 0;
  }
  static const auto next = il::real<int(clockid_t, timespec*)>("clock_gettime");
  return next(clock, time);
}

/// What is kept under a key, and thread_local objects with destructors, die with their fiber.
int pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) noexcept {
  static const auto next = il::real<int(pthread_key_t*, void (*)(void*))>("pthread_key_create");
  const int failed = next(key, destroy);
  if (failed == 0 && *key < il::keys.size()) il::keys[*key] = {true, destroy};
  return failed;
}
int pthread_key_delete(pthread_key_t key) noexcept {
  if (key < il::keys.size()) il::keys[key] = {};
  static const auto next = il::real<int(pthread_key_t)>("pthread_key_delete");
  return next(key);
}
int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  if (il::inside()) {
    if (il::keys_are_refused) return ENOMEM;
    if (key >= il::keys.size() || !il::keys[key].made) return EINVAL;
    if (il::keys[key].destroy != nullptr)
      il::at_fiber_exit(il::keys[key].destroy, const_cast<void*>(value));
    return 0;
  }
  static const auto next = il::real<int(pthread_key_t, const void*)>("pthread_setspecific");
  return next(key, value);
}
int __cxa_thread_atexit(void (*destroy)(void*), void* object, void* library) noexcept {
  if (il::inside()) {
    il::at_fiber_exit(destroy, object);
    return 0;
  }
  static const auto next = il::real<int(void (*)(void*), void*, void*)>("__cxa_thread_atexit_impl");
  return next(destroy, object, library);
}
}
// NOLINTEND
