// Publishing on a moodycamel lane, once for each size of slots.
#include <cstring>

#include "engine/publish/mpmc_queue.hpp"
#include "engine/publish/push.hpp"

namespace ringmain::engine {

// Flattened: GCC would call what it inlines into a program, and 60 instructions more.
template <std::uint32_t kBytes>
[[gnu::flatten]] bool put(Lane& lane, std::uint64_t sequence, BuildFn* build, void* from) noexcept {
  auto in_place = [&](Slot<kBytes>& slot) noexcept {
    slot.header = {sequence, 0};
    build(slot.payload, from);
  };
  return static_cast<Queue<kBytes>*>(lane.slots.queue)
      ->enqueue_bulk(*lane.slots.token, BuildInPlace<decltype(in_place)>{&in_place}, 1);
}

template <std::uint32_t kBytes>
std::size_t put_all(Lane& lane, std::uint64_t sequence, std::uint64_t index, const void* events,
                    std::size_t event_bytes, std::size_t n) noexcept {
  const auto* event = static_cast<const std::byte*>(events);
  auto copy = [&](Slot<kBytes>& slot) noexcept {
    slot.header = {++sequence, 0};
    std::memcpy(slot.payload, event, event_bytes);
    event += event_bytes;
  };
  auto* queue = static_cast<Queue<kBytes>*>(lane.slots.queue);
  std::size_t done = 0;
  while (done < n) {
    // Up to the end of a block: an enqueue that needs several blocks and gets only the first would
    // lose its index.
    const std::size_t block = queue_block_left(index + done);
    const std::size_t some = block < n - done ? block : n - done;
    if (!queue->enqueue_bulk(*lane.slots.token, BuildInPlace<decltype(copy)>{&copy}, some)) break;
    done += some;
  }
  return done;
}

#define RINGMAIN_PUT(bytes)                                                             \
  template bool put<bytes>(Lane&, std::uint64_t, BuildFn*, void*) noexcept;             \
  template std::size_t put_all<bytes>(Lane&, std::uint64_t, std::uint64_t, const void*, \
                                      std::size_t, std::size_t) noexcept
RINGMAIN_PUT(32);
RINGMAIN_PUT(48);
RINGMAIN_PUT(64);
RINGMAIN_PUT(96);
RINGMAIN_PUT(128);
RINGMAIN_PUT(192);
RINGMAIN_PUT(256);
RINGMAIN_PUT(512);
RINGMAIN_PUT(1056);
#undef RINGMAIN_PUT
static_assert(slot_sizes().size() == 9, "each size has its line above");

}  // namespace ringmain::engine
