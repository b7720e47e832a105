// What must be known of a trace before it can be published? The result of its first reading.
//
// The threads, which kernel belongs to which collective, which stream a synchronization meant, and
// what the trace says of itself, which some writers put last. Small beside the trace: 24 bytes per
// kernel launch, a few hundred per collective.
#pragma once
#include <cstdint>
#include <optional>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_collectives.hpp"
#include "adapters/sources/replay/kineto_lanes.hpp"
#include "adapters/sources/replay/kineto_reader.hpp"
#include "adapters/sources/replay/kineto_syncs.hpp"

namespace ringmain::replay {

struct KinetoIndex {
  explicit KinetoIndex(const KinetoOptions& options);

  /// Reads to the end or to a fault, which is no failure of the index: what comes before it is
  /// known. An Error only where the index would outgrow its quarter of memory_max.
  std::optional<Error> read(KinetoReader& reader, std::optional<Error>& fault);

  KinetoLanes lanes;
  KinetoCollectives collectives;
  KinetoSyncs syncs;
  KinetoHeader header;
  std::uint64_t records = 0;
  std::int64_t first_ns = 0;  // when the first record was, for metadata that has no time
  std::uint64_t bytes_max;    // of notes of the first reading; matching them takes as much again
  std::size_t names_max;      // that the mapper may remember
};

/// The device of GPU work: its argument, or its process, which Kineto makes the device; or
/// kNoDevice.
[[nodiscard]] std::int32_t device_of(const KinetoRecord& record) noexcept;
/// A recorded device number, or kNoDevice for what can be none.
[[nodiscard]] std::int32_t device_number(std::int64_t recorded) noexcept;

}  // namespace ringmain::replay
