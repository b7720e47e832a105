#include "engine/channel/ahead.hpp"

#include <algorithm>
#include <new>

namespace ringmain::engine {

bool give_ahead(Lane& lane) noexcept {
  lane.ahead = new (std::nothrow) Ahead;
  if (lane.ahead == nullptr || lane.slots.ring != nullptr) return lane.ahead != nullptr;
  const std::size_t fits = std::min<std::size_t>(Ahead::kMax, Ahead::kRoomBytes / lane.slot_bytes);
  lane.ahead->max = static_cast<std::uint32_t>(fits);
  lane.ahead->room.reset(new (std::nothrow) std::byte[fits * lane.slot_bytes]);
  return lane.ahead->room != nullptr;
}

void free_ahead(Lane& lane) noexcept {
  delete lane.ahead;
}

}  // namespace ringmain::engine
