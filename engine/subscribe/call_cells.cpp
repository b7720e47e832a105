#include "engine/subscribe/call_cells.hpp"

#include <new>

namespace ringmain::engine {

CallCells::~CallCells() {
  for (std::uint32_t chunk = 0; chunk < tried_; ++chunk)
    delete[] chunks_[chunk].load(std::memory_order_relaxed);  // relaxed: nobody calls it any more
}

void CallCells::make(std::uint32_t lanes) noexcept {
  for (std::uint32_t chunk = 0, first = 0; chunk < ChunkPlace::kChunks && first < lanes; ++chunk) {
    first += ChunkPlace::size(chunk);
    if (chunk == tried_) ++tried_;
    if (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) continue;  // relaxed: our lock
    // n.cells: who finds them finds them empty
    chunks_[chunk].store(new (std::nothrow) Cell[ChunkPlace::size(chunk)],
                         std::memory_order_release);
  }
}

CallCells::Sums CallCells::sums() const noexcept {
  Sums sums;
  for (std::uint32_t chunk = 0; chunk < ChunkPlace::kChunks; ++chunk) {
    const Cell* const cells = chunks_[chunk].load(std::memory_order_acquire);  // n.cells
    for (std::uint32_t i = 0; cells != nullptr && i < ChunkPlace::size(chunk); ++i) {
      // In this order: a call is offered before it is anything else.
      sums.delivered += cells[i].delivered.load(std::memory_order_acquire);  // a.calls
      sums.skipped += cells[i].skipped.load(std::memory_order_acquire);      // a.calls
      sums.offered += cells[i].offered.load(std::memory_order_relaxed);      // relaxed: a count
    }
  }
  return sums;
}

}  // namespace ringmain::engine
