// What kind of queue does a lane have?
#pragma once
#include <cstdint>

namespace ringmain::engine {

enum class LaneKind : std::uint8_t {
  moodycamel,  // a sub-queue of moodycamel's: several workers may take at once
  ring,        // preallocated, for one worker at a time: no memory is asked for later
  segments     // for one worker at a time: pieces of a ring, linked as they are filled
};

}  // namespace ringmain::engine
