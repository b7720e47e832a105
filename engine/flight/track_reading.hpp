// Which records can be read from a row of cells, and what became of the others?
//
// Copy first: committed and written, the cells in any order, then reserved. What begins between the
// two looks was whole all the time; what a later reservation reaches was overwritten, perhaps
// during the copy, and is not looked at. Model: tests/model/flight_ring.pml.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.hpp"
#include "record.hpp"

namespace ringmain::engine::flight {

/// A row of cells as it was copied, beside its writer or after its death.
struct TrackCopy {
  std::uint64_t committed = 0, written = 0;  // before the cells were copied
  std::uint64_t reserved = 0;                // after that
  const std::uint64_t* words = nullptr;
  std::uint64_t cells = 0;  // a power of two
};

/// A record that was read; its payload lies in TrackRead::payloads.
struct RecordRead {
  std::uint64_t number = 0;  // from 1 on, in its ring
  RecordHead head;
  std::uint32_t payload_bytes = 0;
  std::size_t payload_at = 0;
};

/// written = overwritten + readable + unreadable.
struct TrackRead {
  std::vector<RecordRead> records;  // oldest first
  std::vector<std::byte> payloads;
  std::uint64_t written = 0;      // in all its life
  std::uint64_t overwritten = 0;  // by younger ones
  std::uint64_t unreadable = 0;   // should be there, and are not: the file was damaged
  bool under_way = false;         // one more was begun: torn, if its writer is dead
  bool impossible = false;        // its words contradict each other: the file was damaged
};

/// Work: one look at each cell. Throws std::bad_alloc.
[[nodiscard]] TrackRead read_track(const TrackCopy& copy, std::uint64_t salt);

/// Copies a row of cells of this process, beside its writer. `words` is its buffer.
/// Throws std::bad_alloc. Progress: wait-free.
[[nodiscard]] TrackCopy copy_track(const Track& track, const std::byte* cells,
                                   std::vector<std::uint64_t>& words);

}  // namespace ringmain::engine::flight
