// What was recorded? The events of one or more traces, in the order of time, ready to be played.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_trace.hpp"
#include "adapters/sources/replay/replay_options.hpp"
#include "adapters/sources/replay/replay_store.hpp"

namespace ringmain::replay {

/// The event types that a replay publishes: KinetoEvent::index() numbers them.
constexpr std::size_t kKinds = std::variant_size_v<KinetoEvent>;

/// Calls `f.operator()<E>(index)` for each of them.
template <class F>
void for_each_kind(F&& f) {
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (f.template operator()<std::variant_alternative_t<kIndex, KinetoEvent>>(kIndex), ...);
  }
  (std::make_index_sequence<kKinds>{});
}
/// The channel of each kind.
[[nodiscard]] const std::array<std::string_view, kKinds>& kind_channels();

/// How far the loading is. Threads: any may look.
struct LoadProgress {
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> bytes{0};  // of all files, as stored
  std::atomic<std::uint64_t> bytes_all{0};
};

struct Recording {
  static constexpr std::size_t kLanesMax = KinetoLanes::kLanesMax;

  /// Reads the files ("-" is standard input) to their ends, or to the first fault in each, which
  /// becomes one of `faults`. An Error when nothing can be done at all: no memory allowed, no room
  /// for what does not fit. Traces that are played together share lanes from the 65th thread on.
  static Result<Recording> load(const std::vector<std::string>& files, const ReplayOptions& options,
                                const std::stop_token& stop, LoadProgress& progress);

  std::array<bool, kKinds> selected{};
  std::array<std::uint64_t, kKinds> events_of{};
  std::uint64_t operations = 0;  // their op_ids are 1 to this, whichever trace they come from
  std::uint64_t left_out = 0;    // events whose channel was not selected
  KinetoCounts counts;           // of all files together
  std::vector<KinetoLane> lanes;
  std::vector<std::uint64_t> events_on;  // per lane
  std::uint64_t publishers = 0;          // pairs of lane and channel that have events
  std::uint64_t crowded = 0;             // recorded threads that share a lane
  std::int64_t first_ns = 0;             // recorded time of the first event of a thread
  std::int64_t last_ns = 0;
  std::vector<std::string> faults;  // one sentence each
  ReplayStore store;

 private:
  explicit Recording(const ReplayOptions& options) : store(options.sorting_bytes()) {}
  class Loader;
};

}  // namespace ringmain::replay
