// What did a recorder of collective operations hold, and how is a dump made of it?
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "events/collective.hpp"

namespace ringmain::flight {

enum class DumpFormat : std::uint8_t { pickle, json };

struct FlightTensors {
  std::vector<std::vector<std::int64_t>> sizes;
  std::vector<Name> dtypes;
};

enum class FlightState : std::uint8_t { scheduled, started, completed };

/// Times are nanoseconds: of the day (CLOCK_REALTIME) where not said otherwise.
struct FlightEntry {
  std::uint64_t record_id = 0;
  std::uint64_t op_id = 0;
  std::int64_t sequence = 0;
  std::int64_t transfer = 0;  // of sends and receives, their own count; else 0
  std::int64_t created_ns = 0;
  std::int64_t created_monotonic_ns = 0;
  std::int64_t started_ns = 0;    // 0: not said
  std::int64_t completed_ns = 0;  // 0: it has not completed
  std::int64_t duration_ns = 0;
  std::int64_t timeout_ms = 0;  // 0: not known
  std::size_t group = 0;        // of FlightSnapshot::groups
  Name op;
  std::int32_t from = collective::kNoRank;  // of a send or a receive
  std::int32_t to = collective::kNoRank;
  std::int32_t thread = 0;
  std::string thread_name;
  FlightTensors input, output;
  FlightState state = FlightState::scheduled;
  bool retired = false;  // its end was said, whether it completed or not
  bool is_p2p = false;
};

struct FlightGroup {
  std::string name, description, backend;
  std::vector<int> ranks;  // in the world; empty: not known
  std::int32_t rank = collective::kNoRank, size = 0;
  std::int64_t enqueued = -1, started = -1, completed = -1;  // numbers of collectives
  std::int64_t transfers = 0;
  std::int64_t dropped = 0;      // entries of it that were overwritten
  std::int64_t whole_from = -1;  // the first collective from which on none was overwritten
};

struct FlightSnapshot {
  std::vector<FlightGroup> groups;
  std::deque<FlightEntry> entries;  // oldest first
};

struct FlightDump {
  DumpFormat format = DumpFormat::json;
  std::string
      backend{};  // of the names that are written, in place of each group's; "": each group's
  std::int64_t rank = -1;
  bool include_completed = true;
};
/// Throws std::bad_alloc.
[[nodiscard]] std::string write_flight_dump(const FlightSnapshot& what, const FlightDump& how);

}  // namespace ringmain::flight
