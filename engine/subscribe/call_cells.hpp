// How often was an inline subscriber called? Each publishing thread counts in a cell of its own
// lane, so that no call waits for another thread's line.
//
// Cells are made where a lane or a subscriber comes, under the channel's lock, never in a call. A
// lane without one (out of memory) counts in the subscriber's shared counts.
#pragma once
#include <array>
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "../system/chunks.hpp"

namespace ringmain::engine {

class CallCells {
 public:
  struct alignas(kLineBytes) Cell {
    // By the lane's thread and its handlers.
    Atomic<std::uint64_t> offered{0}, delivered{0}, skipped{0};
  };

  CallCells() = default;
  CallCells(const CallCells&) = delete;
  CallCells& operator=(const CallCells&) = delete;
  ~CallCells();
  /// Makes cells for the first `lanes` lanes, as far as there is memory. Under the channel's lock.
  void make(std::uint32_t lanes) noexcept;
  /// The cell of a lane; nullptr: it has none. Progress: wait-free.
  [[nodiscard]] Cell* of(ChunkPlace lane) const noexcept {
    Cell* const cells = chunks_[lane.chunk].load(std::memory_order_acquire);  // n.cells
    return cells == nullptr ? nullptr : cells + lane.place;
  }
  struct Sums {
    std::uint64_t offered = 0, delivered = 0, skipped = 0;
  };
  /// What is delivered or skipped was offered. Threads: any. Progress: wait-free.
  [[nodiscard]] Sums sums() const noexcept;

 private:
  std::array<Atomic<Cell*>, ChunkPlace::kChunks> chunks_{};
  std::uint32_t tried_ = 0;  // so many chunks; under the channel's lock
};

}  // namespace ringmain::engine
