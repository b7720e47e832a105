// How many slots has a segment?
//
// An idle lane stays small: two of 2 KiB, or of four slots. A lane in which events wait gets longer
// ones, up to 16 KiB or 64 slots, of which the headers are written in the middle of a publish. One
// that is streamed through gets more of them, up to kStreamBytes.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

namespace ringmain::engine {

/// Of the first two of a lane: a power of two.
constexpr std::uint64_t slots_of_first(std::uint32_t slot_bytes) noexcept {
  return std::bit_floor(std::max(2048 / slot_bytes, std::uint32_t{4}));
}
/// At most: a power of two.
constexpr std::uint64_t slots_at_most(std::uint32_t slot_bytes) noexcept {
  return std::bit_floor(std::max(16384 / slot_bytes, std::uint32_t{64}));
}

/// Of all segments of a lane, so long as no more events wait: beyond the second-level caches of
/// today's cores, which have 1 or 2 MiB, though slots are not filled to their ends.
constexpr std::uint64_t kStreamBytes = 4 * 1024 * 1024;

}  // namespace ringmain::engine
