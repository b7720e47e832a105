// How does a replay read a trace? Twice: once for what must be known beforehand, then event by
// event.
//
//   auto trace = KinetoTrace::open("trace.json.gz");      // the first reading
//   KinetoMapped mapped;
//   while (trace.value().next(mapped).value()) {          // the second; check for an Error
//     std::visit([&](const auto& event) { publish(mapped.lane, event, mapped.time_ns); },
//                mapped.event);
//   }
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_lanes.hpp"
#include "adapters/sources/replay/kineto_map.hpp"
#include "adapters/sources/replay/kineto_options.hpp"
#include "adapters/sources/replay/kineto_reader.hpp"

namespace ringmain::replay {

/// A trace that has been looked through and can now be replayed, any number of times.
///
/// Events come in the order of the file, which is not the order of time: neither within a thread
/// nor across threads, and `completed` is given with its kernel though it is later. Threads: one at
/// a time. Names made on the way live in the process's table.
class KinetoTrace {
 public:
  /// Reads through the trace once. A fault inside the trace is no failure here: next() gives what
  /// comes before it, then the Error. `path` "-" is standard input.
  static Result<KinetoTrace> open(const std::string& path, const KinetoOptions& options = {});
  KinetoTrace(KinetoTrace&&) noexcept;
  KinetoTrace& operator=(KinetoTrace&&) noexcept;
  ~KinetoTrace();

  /// The next event; false after the last. After an Error: the same Error.
  Result<bool> next(KinetoMapped& mapped);
  /// Back to the first event.
  void rewind();

  /// At most KinetoLanes::kLanesMax; the first is the trace's own.
  [[nodiscard]] const std::vector<KinetoLane>& lanes() const noexcept;
  /// Recorded threads that share a lane because there were too many.
  [[nodiscard]] std::uint64_t crowded() const noexcept;
  [[nodiscard]] const KinetoHeader& header() const noexcept;
  /// Records in the trace, as the first reading counted them.
  [[nodiscard]] std::uint64_t records() const noexcept;
  /// Of the reading at hand; after next() has returned false, of the whole trace.
  [[nodiscard]] const KinetoCounts& counts() const noexcept;
  [[nodiscard]] std::uint64_t position() const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept;  // 0 for a pipe

 private:
  struct Core;
  explicit KinetoTrace(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::replay
