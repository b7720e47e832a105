// What decides where a line of an event belongs: its time and its process.
#pragma once
#include <cstdint>
#include <optional>

namespace ringmain::cli {

/// What every event has.
struct LineEvent {
  std::int64_t time_ns = 0;
  std::uint64_t origin = 0;
  /// Of a process's first line: what turns its time_ns into nanoseconds since 1970.
  std::optional<std::int64_t> to_realtime_ns;
};

}  // namespace ringmain::cli
