#include "adapters/sources/replay/kineto_lanes.hpp"

#include <algorithm>
#include <functional>

namespace ringmain::replay {
namespace {

constexpr std::size_t kKeyBytesMax = 256;  // longer pairs are not noted: no profiler writes them

/// Kineto writes its own marks under made-up processes.
bool of_the_trace(const KinetoRecord& record) {
  const std::string_view process = record.process.text;
  return process.empty() || process == "Spans" || process == "Traces";
}

}  // namespace

std::string_view KinetoLanes::key_of(const KinetoRecord& record) {
  key_.assign(record.process.text);
  key_.push_back('\0');
  key_.append(record.thread.text);
  return key_;
}

std::uint32_t KinetoLanes::note(const KinetoRecord& record, std::int32_t device) {
  if (record.phase == 'M' || of_the_trace(record)) return kNobody;
  const std::string_view key = key_of(record);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) {
    Pair& pair = pairs_[known->second];
    pair.device = std::max(pair.device, device);
    return known->second;
  }
  if (pairs_.size() >= pairs_max_ || key.size() > kKeyBytesMax) {
    ++crowded_;
    return kNobody;
  }
  const auto number = static_cast<std::uint32_t>(pairs_.size());
  pairs_.push_back({0, device, Name(record.process.text), Name(record.thread.text)});
  numbers_.emplace(std::string(key), number);
  return number;
}

void KinetoLanes::number() {
  lanes_.assign(1, KinetoLane{});
  const auto join = [this](Pair& pair, std::size_t lane) {
    pair.lane = static_cast<std::uint8_t>(lane);
    ++lanes_[lane].sharing;
  };
  for (Pair& pair : pairs_) {
    if (pair.device < 0) continue;
    std::size_t lane = 1;
    while (lane < lanes_.size() && lanes_[lane].device != pair.device) ++lane;
    if (lane == kLanesMax / 2) {  // so many devices: leave room for the threads
      ++crowded_;
      lane = 1;
    } else if (lane == lanes_.size()) {
      lanes_.push_back({KinetoLane::Kind::device, pair.device, 0, pair.process, pair.thread});
    }
    join(pair, lane);
  }
  first_thread_lane_ = lanes_.size();
  for (Pair& pair : pairs_) {
    if (pair.device >= 0) continue;
    std::size_t lane = lanes_.size();
    if (lane == kLanesMax) {
      ++crowded_;
      lane =
          crowded_lane(std::string(pair.process.view()) + '\0' + std::string(pair.thread.view()));
    } else {
      lanes_.push_back({KinetoLane::Kind::thread, -1, 0, pair.process, pair.thread});
    }
    join(pair, lane);
  }
}

std::uint8_t KinetoLanes::crowded_lane(std::string_view key) const noexcept {
  const std::size_t threads = lanes_.size() - first_thread_lane_;
  if (threads == 0) return 0;
  return static_cast<std::uint8_t>(first_thread_lane_ +
                                   std::hash<std::string_view>{}(key) % threads);
}

KinetoLanes::Place KinetoLanes::find(const KinetoRecord& record) {
  const std::string_view key = key_of(record);
  const auto known = numbers_.find(key);
  if (known != numbers_.end() && !of_the_trace(record)) {
    const Pair& pair = pairs_[known->second];
    return {pair.lane, pair.process, pair.thread};
  }
  const bool whole_trace = record.phase == 'M' || of_the_trace(record);
  return {whole_trace ? std::uint8_t{0} : crowded_lane(key), Name(record.process.text),
          Name(record.thread.text)};
}

}  // namespace ringmain::replay
