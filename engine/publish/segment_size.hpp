// How many slots has a segment?
//
// An idle lane stays small: 2 KiB. A lane in which events wait gets longer ones, up to 16 KiB,
// which are written in about a microsecond in the middle of a publish.
#pragma once
#include <bit>
#include <cstdint>

namespace ringmain::engine {

/// Of the first one of a lane: a power of two.
constexpr std::uint64_t slots_of_first(std::uint32_t slot_bytes) noexcept {
  enum : std::uint32_t { kBytes = 2048, kFewest = 4 };
  return std::bit_floor(kBytes / slot_bytes < kFewest ? std::uint32_t{kFewest}
                                                      : kBytes / slot_bytes);
}
/// At most: a power of two.
constexpr std::uint64_t slots_at_most(std::uint32_t slot_bytes) noexcept {
  enum : std::uint32_t { kBytes = 16384 };
  return std::bit_floor(kBytes / slot_bytes);
}

}  // namespace ringmain::engine
