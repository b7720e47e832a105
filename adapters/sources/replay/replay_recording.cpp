#include "adapters/sources/replay/replay_recording.hpp"

#include <algorithm>
#include <bitset>
#include <optional>

#include "bus/bus.hpp"

namespace ringmain::replay {

const std::array<std::string_view, kKinds>& kind_channels() {
  static const auto all = [] {
    std::array<std::string_view, kKinds> names;
    for_each_kind([&]<class E>(std::size_t kind) { names[kind] = describe(EventOf<E>{}).name; });
    return names;
  }();
  return all;
}

class Recording::Loader {
 public:
  Loader(Recording& into, const ReplayOptions& options, const std::stop_token& stop,
         LoadProgress& progress)
      : into_(into), options_(options), stop_(stop), progress_(progress) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      into_.selected[kind] = pattern_matches(options.select, kind_channels()[kind]);
    }
  }

  std::optional<Error> load(const std::string& file) {
    KinetoOptions reading;
    reading.memory_max = options_.reading_bytes();
    auto opened = KinetoTrace::open(file, reading);
    if (!opened) {
      into_.faults.push_back(opened.error().message);
      return std::nullopt;
    }
    KinetoTrace& trace = opened.value();
    take_lanes(trace);
    op_id_base_ = into_.operations;  // each trace counts its operations from 1
    const std::uint64_t bytes_before = progress_.bytes;
    progress_.bytes_all += trace.size();
    KinetoMapped mapped;
    for (std::uint64_t n = 0; !stop_.stop_requested(); ++n) {
      const auto more = trace.next(mapped);
      if (!more) into_.faults.push_back(more.error().message);
      if (!more || !more.value()) break;
      if (n % kTellEvents == 0) {
        progress_.bytes = bytes_before + trace.position();
        progress_.events = into_.store.size();
      }
      if (auto failed = take(mapped)) return failed;
    }
    add_counts(trace.counts());
    into_.crowded += trace.crowded();
    progress_.events = into_.store.size();
    return std::nullopt;
  }

  void finish() {
    for (const auto& kinds : used_) into_.publishers += kinds.count();
  }

 private:
  static constexpr std::uint64_t kTellEvents = 4096;

  /// This trace's lanes among those of all: the traces' own is shared, threads are appended.
  void take_lanes(const KinetoTrace& trace) {
    lane_of_.clear();
    for (const KinetoLane& lane : trace.lanes()) {
      std::size_t place = into_.lanes.size();
      if (lane.kind == KinetoLane::Kind::trace && place > 0) {
        place = 0;
      } else if (place == kLanesMax) {
        place = 1 + next_crowded_++ % (kLanesMax - 1);
        into_.crowded += std::max<std::uint64_t>(lane.sharing, 1);
        into_.lanes[place].sharing += lane.sharing;
      } else {
        into_.lanes.push_back(lane);
      }
      lane_of_.push_back(static_cast<std::uint8_t>(place));
    }
    into_.events_on.resize(into_.lanes.size());
    used_.resize(into_.lanes.size());
  }

  std::optional<Error> take(KinetoMapped& mapped) {
    const std::size_t kind = mapped.event.index();
    if (!into_.selected[kind]) {
      ++into_.left_out;
      return std::nullopt;
    }
    mapped.lane = lane_of_[mapped.lane];
    if (std::uint64_t* const op_id = op_id_of(mapped.event)) {
      *op_id += op_id_base_;
      into_.operations = std::max(into_.operations, *op_id);
    }
    ++into_.events_of[kind];
    ++into_.events_on[mapped.lane];
    used_[mapped.lane].set(kind);
    if (mapped.lane != 0) {
      into_.first_ns = timed_ ? std::min(into_.first_ns, mapped.time_ns) : mapped.time_ns;
      into_.last_ns = timed_ ? std::max(into_.last_ns, mapped.time_ns) : mapped.time_ns;
      timed_ = true;
    }
    return into_.store.add(mapped);
  }

  void add_counts(const KinetoCounts& of_file) {
    into_.counts.read += of_file.read;
    for (std::size_t i = 0; i < of_file.skipped.size(); ++i) {
      into_.counts.skipped[i] += of_file.skipped[i];
    }
  }

  Recording& into_;
  const ReplayOptions& options_;
  const std::stop_token& stop_;
  LoadProgress& progress_;
  std::vector<std::uint8_t> lane_of_;      // of the trace at hand
  std::vector<std::bitset<kKinds>> used_;  // per lane
  std::size_t next_crowded_ = 0;
  std::uint64_t op_id_base_ = 0;
  bool timed_ = false;
};

Result<Recording> Recording::load(const std::vector<std::string>& files,
                                  const ReplayOptions& options, const std::stop_token& stop,
                                  LoadProgress& progress) {
  if (options.memory_max < ReplayOptions::kMemoryMin) {
    return Error{Error::Code::refused,
                 "a replay needs at least " + std::to_string(ReplayOptions::kMemoryMin >> 20) +
                     " MiB of memory, and only " + std::to_string(options.memory_max >> 20) +
                     " MiB are allowed"};
  }
  Recording recording(options);
  Loader loader(recording, options, stop, progress);
  for (const std::string& file : files) {
    if (stop.stop_requested()) break;
    if (auto failed = loader.load(file)) return *failed;
  }
  loader.finish();
  if (auto failed = recording.store.sort()) return *failed;
  return recording;
}

}  // namespace ringmain::replay
