// What does a flight recorder's dump say of what the ring holds, and into which file does it go?
#pragma once
#include <cstdint>
#include <string>

#include "bus/result.hpp"

#include "adapters/sources/collective/flight_recorder_hook.hpp"
#include "adapters/sources/collective/flight_recorder_ring.hpp"

namespace ringmain::collective::detail {

enum class FlightFormat : std::uint8_t { json, pickle };

struct FlightDump {
  FlightFormat format = FlightFormat::json;
  std::string backend{};  // FlightRecorderOptions::backend
  std::int64_t rank = -1;
  bool include_completed = true;
};
/// Throws std::bad_alloc.
[[nodiscard]] std::string write_flight_dump(const FlightSnapshot& what, const FlightDump& how);

/// How many operations the environment says that a ring holds.
[[nodiscard]] std::size_t flight_entries(FlightVariables variables);
/// Where this rank's file is to be. refused: neither a variable nor a home says it.
[[nodiscard]] Result<std::string> flight_path(FlightVariables variables, std::int64_t rank);
/// The file has all of `bytes`, or is what it was. Its folder is made. One sentence, or "".
[[nodiscard]] std::string write_flight_file(const std::string& path, const std::string& bytes);

}  // namespace ringmain::collective::detail
