// Where does a replay come from? A recording, published by as many threads as were recorded.
//
//   auto recording = Recording::load({"trace.json.gz"}, options, stop, progress);
//   auto source = Source::attach(bus, recording.value(), options);
//   Outcome outcome = source.value().wait();
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bus/bus.hpp"

#include "adapters/sources/replay/replay_churn.hpp"
#include "adapters/sources/replay/replay_options.hpp"
#include "adapters/sources/replay/replay_recording.hpp"

namespace ringmain::replay {

struct Outcome {
  std::uint64_t accepted = 0;
  std::uint64_t unheard = 0;     // nobody listened
  std::uint64_t refused = 0;     // closed, or no memory
  std::uint32_t threads = 0;     // that published
  std::int64_t late_ns_max = 0;  // after the recorded time; 0 at speed 0
  double cut_ns = 0;             // out of long pauses
  bool interrupted = false;
  std::optional<Error> error;  // the temporary file could not be read
  ChurnFigures churn;
};

/// Publishes from its own threads, waiting where a queue is full, until all is said or stop() is
/// called. Bus and recording must outlive it.
class Source {
 public:
  /// system: no thread left.
  static Result<Source> attach(Bus& bus, const Recording& recording, const ReplayOptions& options);
  Source(Source&&) noexcept;
  Source& operator=(Source&&) noexcept;
  ~Source();

  /// Publishes no more; wait() then returns soon.
  void stop() noexcept;
  /// Waits until all is published and those subscribers have gone.
  Outcome wait();
  /// Events published so far. Threads: any.
  [[nodiscard]] std::uint64_t published() const noexcept;
  [[nodiscard]] ChurnFigures churn() const noexcept;

 private:
  struct Core;
  explicit Source(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::replay
