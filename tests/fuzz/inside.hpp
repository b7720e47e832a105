// Where is this thread: in how many callbacks, and in the making of an event?
#pragma once
#include <cstdint>

namespace ringmain::fuzz {

struct Inside {
  std::uint32_t callbacks = 0;
  std::uint32_t inline_ones = 0;
  bool making = false;
};
inline thread_local Inside inside;

}  // namespace ringmain::fuzz
