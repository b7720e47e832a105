// What happens to an event that finds no room?
#pragma once
#include <cstdint>

namespace ringmain::engine {

enum class Overflow : std::uint8_t {
  drop_newest,  // it is refused
  drop_oldest,  // it goes in, and the oldest that nobody is hearing yet goes out, counted
  block         // its publisher waits, for a time
};

}  // namespace ringmain::engine
