// What happens between the command line and the summary of a replay?
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bus/stats.hpp"

#include "adapters/sink_handle.hpp"
#include "adapters/sources/replay/replay_source.hpp"

namespace ringmain::cli {

/// The call, as read from the command line.
struct ReplayCall {
  std::vector<std::string> files;
  replay::ReplayOptions options;
  unsigned workers = 0;
  std::vector<std::string> sinks;  // "name:argument", as the registry knows them
  bool torch_trace = false;        // not Kineto's format
  bool output_taken = false;       // one of them writes to standard output
  bool json = false;
  bool quiet = false;
  bool progress = true;
};

/// The result of a replay.
struct ReplayResult {
  replay::KinetoCounts counts;
  std::uint64_t events = 0;  // to publish, all loops together
  std::uint64_t left_out = 0;
  std::uint64_t crowded = 0;
  std::uint64_t spilled_bytes = 0;
  std::int64_t recorded_ns = 0;  // from the first to the last event of a thread
  replay::Outcome outcome;
  std::vector<ChannelStats> channels;  // in the order of kind_channels(), those selected
  std::vector<std::uint64_t> heard;    // by a subscriber of each, likewise
  std::uint64_t parks = 0;
  std::uint64_t wakes = 0;
  unsigned workers = 0;
  double loading_seconds = 0;
  double seconds = 0;
  int signal = 0;                      // that interrupted it
  bool played = false;                 // there was a bus, and something to publish
  std::vector<std::string> sentences;  // faults, for standard error

  [[nodiscard]] std::uint64_t offered() const noexcept;
  [[nodiscard]] std::uint64_t delivered() const noexcept;
  /// Events that should have been heard and were not, without those that Ctrl-C left unpublished.
  [[nodiscard]] std::uint64_t lost() const noexcept;
  [[nodiscard]] bool interrupted() const noexcept { return signal != 0; }
  [[nodiscard]] int exit_status() const noexcept;
};

/// Refusals by reason, without those that did not happen.
[[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> dropped_of(const ChannelStats& c);

/// Reads, plays, drains. Interrupted: stops publishing and drains; interrupted again, or where
/// reading does not end, it exits at once.
[[nodiscard]] ReplayResult run_replay(const ReplayCall& call);

}  // namespace ringmain::cli
