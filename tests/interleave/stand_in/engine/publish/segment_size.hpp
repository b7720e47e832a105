// In the place of the engine's: so small that a few events reach the end of a segment, and the
// next.
#pragma once
#include <cstdint>

namespace ringmain::engine {

constexpr std::uint64_t slots_of_first(std::uint32_t /*slot_bytes*/) noexcept {
  return 1;
}
constexpr std::uint64_t slots_at_most(std::uint32_t /*slot_bytes*/) noexcept {
  return 2;
}

}  // namespace ringmain::engine
