#include "engine/publish/ring_memory.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <sys/mman.h>

namespace ringmain::engine {
namespace {

/// 682 events of 96 bytes: 3 ms at 200,000 a second, in which the housekeeper comes.
enum : std::size_t { kTouchedAtOnce = 65536 };

std::size_t bytes_of(const Lane& lane) noexcept {
  return (lane.slots.mask + 1) * lane.slot_bytes;
}

/// False: the system cannot, or has no memory left; then pages come by faults.
bool touch(std::byte* at, std::size_t bytes) noexcept {
#ifndef MADV_POPULATE_WRITE
  enum : int { MADV_POPULATE_WRITE = 23 };
#endif
  return ::madvise(at, bytes, MADV_POPULATE_WRITE) == 0;
}

}  // namespace

bool give_ring(Lane& lane) noexcept {
  lane.slots.mask = std::bit_ceil(lane.options.room()) - 1;
  const std::size_t bytes = bytes_of(lane);
  const bool later = lane.options.touched_later && bytes > kTouchedAtOnce;
  const auto map = [bytes](int more) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1,
                  0);
  };
  // Fresh pages read as zero: sequence 0, never written.
  void* pages = map(lane.options.realtime && !later ? MAP_POPULATE : 0);
  if (pages == MAP_FAILED)
    return false;  // NOLINT(performance-no-int-to-ptr): the system's own macro
  if (lane.options.realtime && later) {
    if (touch(static_cast<std::byte*>(pages), kTouchedAtOnce)) {
      lane.untouched.store(1, std::memory_order_relaxed);  // relaxed: not listed yet
    } else {  // an older Linux: nobody could touch the rest later
      ::munmap(pages, bytes);
      pages = map(MAP_POPULATE);
      if (pages == MAP_FAILED) return false;  // NOLINT(performance-no-int-to-ptr): as above
    }
  }
  lane.slots.ring = static_cast<std::byte*>(pages);
  if (!lane.options.coalesce) return true;
  lane.slots.claims = new (std::nothrow) Atomic<std::uint8_t>[lane.slots.mask + 1]();
  return lane.slots.claims != nullptr;
}

void touch_ring(Lane& lane) noexcept {
  if (lane.untouched.load(std::memory_order_relaxed) == 0) return;  // relaxed: twice is no harm
  // In pieces: a thread that maps memory meanwhile waits for the piece that is being touched.
  const std::size_t bytes = bytes_of(lane);
  for (std::size_t at = kTouchedAtOnce; at < bytes; at += kTouchedAtOnce) {
    if (!touch(lane.slots.ring + at, std::min<std::size_t>(kTouchedAtOnce, bytes - at))) break;
  }
  lane.untouched.store(0, std::memory_order_relaxed);  // relaxed: twice is no harm
}

void free_ring(Lane& lane) noexcept {
  if (lane.slots.ring != nullptr) ::munmap(lane.slots.ring, bytes_of(lane));
}

}  // namespace ringmain::engine
