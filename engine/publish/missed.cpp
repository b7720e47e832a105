#include "engine/publish/missed.hpp"

#include <new>
#include <sys/mman.h>

#include "engine/channel/channel_line.hpp"

namespace ringmain::engine {
namespace {

constinit Atomic<const ChannelHost*> counted{nullptr};
/// Lies in memory that forked children share with the process that counts. A child that counts for
/// its own children has another one.
constinit Atomic<Atomic<std::uint64_t>*> count{nullptr};
static_assert(Atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

void count_missed_of(const ChannelHost& host) noexcept {
  counted.store(&host, std::memory_order_release);  // f.missed
}

void begin_counting_missed() noexcept {
  void* const page = ::mmap(nullptr, sizeof(Atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;  // NOLINT(performance-no-int-to-ptr): the system's own macro
  count.store(::new (page) Atomic<std::uint64_t>(0), std::memory_order_release);  // f.missed
}

std::uint64_t missed() noexcept {
  const Atomic<std::uint64_t>* const now = count.load(std::memory_order_acquire);  // f.missed
  return now == nullptr ? 0 : now->load(std::memory_order_relaxed);  // relaxed: a count
}

std::uint32_t forked_state(const ChannelHost& host, bool named) noexcept {
  const bool counts = named && counted.load(std::memory_order_acquire) == &host &&  // f.missed
                      count.load(std::memory_order_acquire) != nullptr;             // f.missed
  return ChannelLine::kForked | ChannelLine::kClosing | (counts ? ChannelLine::kHeard : 0u);
}

void miss(std::uint32_t state) noexcept {
  if ((state & ChannelLine::kHeard) == 0) return;
  Atomic<std::uint64_t>* const now = count.load(std::memory_order_acquire);  // f.missed
  if (now != nullptr) now->fetch_add(1, std::memory_order_relaxed);          // relaxed: a count
}

}  // namespace ringmain::engine
