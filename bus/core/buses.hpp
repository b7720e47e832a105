// Which buses does this process have? For whoever asks from outside: the door.
#pragma once
#include <vector>

#include "../../engine/system/ref.hpp"

namespace ringmain::detail {

class BusCore;

/// A bus's place in the list; in the bus's core.
struct BusPlace {
  BusCore* before = nullptr;
  BusCore* next = nullptr;
};

void list_bus(BusCore& bus) noexcept;
void unlist_bus(BusCore& bus) noexcept;
/// Those that were made in this process and have not ended, the oldest last. Throws std::bad_alloc.
[[nodiscard]] std::vector<engine::Ref<BusCore>> buses();

}  // namespace ringmain::detail
