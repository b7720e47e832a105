#include "tests/process/allocation_faults.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

constinit std::atomic<long> before_failure{1L << 60};
constinit std::atomic<long> to_fail{0};
constinit std::atomic<bool> failed{false};
constinit std::atomic<long> living{0};
constinit std::atomic<bool> of_one_thread{false};
constinit thread_local bool is_the_one = false;

bool fails() noexcept {
  if (of_one_thread.load(std::memory_order_relaxed) && !is_the_one) return false;
  const long n = before_failure.fetch_sub(1, std::memory_order_relaxed);
  if (n > 1 || n <= 1 - to_fail.load(std::memory_order_relaxed)) return false;
  failed = true;
  errno = ENOMEM;
  return true;
}

[[maybe_unused]] void* counted(void* block) noexcept {
  if (block != nullptr) living.fetch_add(1, std::memory_order_relaxed);
  return block;
}

}  // namespace

void fail_allocations(long first, long width) noexcept {
  failed = false;
  to_fail = width;
  before_failure = first;
}
void fail_own_allocations(long first, long width) noexcept {
  of_one_thread = is_the_one = true;
  fail_allocations(first, width);
}
bool heal_allocations() noexcept {
  before_failure = 1L << 60;
  of_one_thread = is_the_one = false;
  return failed;
}
long allocations_living() noexcept {
  return living;
}

}  // namespace ringmain::tests

using ringmain::tests::fails;

#if RINGMAIN_TESTS_SANITIZED

// Seen by the libraries too, or they would free here what they had from elsewhere.
extern "C" [[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment,
                                                              std::size_t bytes) noexcept {
  void* block = nullptr;
  return fails() || ::posix_memalign(&block, alignment, bytes) != 0 ? nullptr : block;
}

namespace {
void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment > alignof(std::max_align_t)) return ::aligned_alloc(alignment, bytes);
  return fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* block = allocate(bytes, alignment)) return block;
  throw std::bad_alloc();
}
constexpr std::size_t at(std::align_val_t a) {
  return static_cast<std::size_t>(a);
}
}  // namespace

void* operator new(std::size_t n) {
  return allocate_or_throw(n, 1);
}
void* operator new[](std::size_t n) {
  return allocate_or_throw(n, 1);
}
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, at(a));
}
void* operator new[](std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, at(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, 1);
}
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, 1);
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, at(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, at(a));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

#else

using ringmain::tests::counted;
using ringmain::tests::living;

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;

void* malloc(std::size_t bytes) noexcept {
  return fails() ? nullptr : counted(__libc_malloc(bytes));
}
void* calloc(std::size_t n, std::size_t bytes) noexcept {
  return fails() ? nullptr : counted(__libc_calloc(n, bytes));
}
void* realloc(void* old, std::size_t bytes) noexcept {
  if (fails()) return nullptr;
  void* block = __libc_realloc(old, bytes);
  if (old == nullptr) counted(block);
  return block;
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return fails() ? nullptr : counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  void* made = fails() ? nullptr : counted(__libc_memalign(alignment, bytes));
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}
void free(void* block) noexcept {
  if (block != nullptr) living.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}
void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (fails()) return MAP_FAILED;
  const long r = ::syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
  void* const pages = r == -1 ? MAP_FAILED : reinterpret_cast<void*>(r);
  if (pages != MAP_FAILED) living.fetch_add(1, std::memory_order_relaxed);
  return pages;
}
int munmap(void* pages, std::size_t bytes) noexcept {
  const auto r = static_cast<int>(::syscall(SYS_munmap, pages, bytes));
  if (r == 0) living.fetch_sub(1, std::memory_order_relaxed);
  return r;
}
}

#endif
