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

/// Some slots more than scenarios need, so that a lane may go on to a new one though the oldest has
/// come back.
constexpr std::uint64_t kStreamBytes = 1024;

}  // namespace ringmain::engine
