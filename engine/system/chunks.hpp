// Where in a list that grows and is never moved is its i-th element? In chunks of 4, 8, 16 …
#pragma once
#include <bit>
#include <cstdint>

namespace ringmain::engine {

struct ChunkPlace {
  enum : std::uint32_t { kChunks = 12, kFirst = 4, kPlaces = kFirst * ((1u << kChunks) - 1) };
  std::uint32_t chunk, place;
  /// Chunk k holds 4 << k elements and starts at 4 * (2^k - 1).
  [[nodiscard]] static constexpr ChunkPlace of(std::uint32_t i) noexcept {
    const auto chunk = static_cast<std::uint32_t>(std::bit_width(i / kFirst + 1) - 1);
    return {chunk, i - kFirst * ((1u << chunk) - 1)};
  }
  [[nodiscard]] static constexpr std::uint32_t size(std::uint32_t chunk) noexcept {
    return kFirst << chunk;
  }
};

}  // namespace ringmain::engine
