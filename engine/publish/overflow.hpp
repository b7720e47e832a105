// What happens to an event that finds no room?
#pragma once
#include <cstdint>

namespace ringmain::engine {

enum class Overflow : std::uint8_t {
  drop_newest,  // it is refused
  drop_oldest,  // it is queued, and the oldest that is not being heard yet is evicted, counted
  block         // its publisher waits, for a time
};

}  // namespace ringmain::engine
