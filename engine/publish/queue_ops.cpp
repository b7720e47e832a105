#include "engine/publish/queue_ops.hpp"

#include <array>
#include <memory>
#include <new>
#include <utility>

#include "engine/publish/mpmc_queue.hpp"

namespace ringmain::engine {
namespace {

template <std::size_t kBytes>
void* make() noexcept {
  void* room = std::aligned_alloc(
      kLineBytes, (sizeof(Queue<kBytes>) + kLineBytes - 1) / kLineBytes * kLineBytes);
  // One block to start with: an idle channel stays small, a busy one has grown after its first
  // burst.
  return room == nullptr ? nullptr : ::new (room) Queue<kBytes>(QueueTraits::BLOCK_SIZE);
}

template <std::size_t kBytes>
void destroy(void* queue) noexcept {
  std::destroy_at(static_cast<Queue<kBytes>*>(queue));
  std::free(queue);  // NOLINT: the pair of aligned_alloc
}

template <std::size_t kBytes>
QueueToken* make_token(void* queue) noexcept {
  auto* token = new (std::nothrow) QueueToken(*static_cast<Queue<kBytes>*>(queue));
  if (token != nullptr && token->valid()) return token;
  delete token;
  return nullptr;
}

template <std::size_t kBytes>
std::size_t take(void* queue, QueueToken& token, std::byte* to, std::size_t max) noexcept {
  return static_cast<Queue<kBytes>*>(queue)->try_dequeue_bulk_from_producer(
      token, reinterpret_cast<Slot<kBytes>*>(to), max);
}

template <std::size_t kBytes>
bool put(void* queue, QueueToken& token, const SlotHeader& header,
         void (*build)(void*, void*) noexcept, void* from, std::size_t payload_offset) noexcept {
  auto in_place = [&](Slot<kBytes>& slot) noexcept {
    slot.header = header;
    build(slot.payload + (payload_offset - sizeof(SlotHeader)), from);
  };
  return static_cast<Queue<kBytes>*>(queue)->enqueue_bulk(
      token, BuildInPlace<decltype(in_place)>{&in_place}, 1);
}

template <std::size_t... kClass>
constexpr std::array<QueueOps, sizeof...(kClass)> all(std::index_sequence<kClass...>) {
  return {QueueOps{&make<slot_bytes(kClass)>, &destroy<slot_bytes(kClass)>,
                   &make_token<slot_bytes(kClass)>, &take<slot_bytes(kClass)>,
                   &put<slot_bytes(kClass)>}...};
}
constexpr auto kOps = all(std::make_index_sequence<slot_sizes().size()>{});

}  // namespace

const QueueOps& queue_ops(unsigned slot_class) noexcept {
  return kOps[slot_class];
}

}  // namespace ringmain::engine
