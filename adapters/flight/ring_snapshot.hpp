// Which collective operations does the ring of a process tell (docs/flight-ring.md), as a recorder
// of operations would have kept them?
//
// Sizes are numbers of elements: events hold no shapes. An operation whose beginning was
// overwritten is there while it is open, without its elements.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/flight/ring_reader.hpp"

#include "bus/result.hpp"

#include "adapters/flight/snapshot.hpp"

namespace ringmain::flight {

struct RingSnapshot {
  FlightSnapshot operations;
  std::int64_t rank = -1;     // in the world; -1: neither a launcher nor a group says it
  std::int64_t began_ns = 0;  // of the day: when the file was made; 0: not known
  std::int64_t alive_ns = 0;  // of the day: the process's last sign of life; 0: none
  bool living = false;        // it lives now
};

[[nodiscard]] bool begins_like_a_ring(std::string_view bytes) noexcept;

/// An Error: one sentence, without the name. Throws std::bad_alloc.
[[nodiscard]] Result<RingSnapshot> snapshot_of_ring(
    const std::string& path, std::uint64_t bytes_max = engine::flight::kAllThatIsRecorded);

}  // namespace ringmain::flight
