// Which recorded thread does a record belong to? A small number for each, the streams of a device
// taken together.
//
// The first reading notes every (pid, tid) pair; then the lanes are numbered: 0 for what belongs to
// the trace itself (metadata, the profiler's own marks), next the devices, next the threads.
// Threads beyond kLanesMax are spread over the threads' lanes by their hash, and counted.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bus/text.hpp"

#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

struct KinetoLane {
  enum class Kind : std::uint8_t { trace, device, thread } kind = Kind::trace;
  std::int32_t device = -1;
  std::uint32_t sharing = 0;  // recorded threads, or streams, that this lane carries
  Name process;               // of the first of them
  Name thread;
};

/// Threads: one at a time.
class KinetoLanes {
 public:
  static constexpr std::size_t kLanesMax = 64;
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};  // belongs to the trace, or not noted

  /// Where a record belongs, and its pair's words.
  struct Place {
    std::uint8_t lane = 0;
    Name process;
    Name thread;
  };

  explicit KinetoLanes(std::size_t pairs_max) : pairs_max_(pairs_max) {}

  /// In the first reading: notes the record's pair and numbers it. `device` >= 0 for GPU work.
  std::uint32_t note(const KinetoRecord& record, std::int32_t device);
  /// Between the readings.
  void number();
  /// The second reading.
  [[nodiscard]] Place find(const KinetoRecord& record);

  [[nodiscard]] const std::vector<KinetoLane>& lanes() const noexcept { return lanes_; }
  /// Pairs that share a lane with others because there were more than lanes.
  [[nodiscard]] std::uint64_t crowded() const noexcept { return crowded_; }

 private:
  struct Pair {
    std::uint8_t lane = 0;
    std::int32_t device = -1;
    Name process;
    Name thread;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept {
      return std::hash<std::string_view>{}(s);
    }
  };
  std::string_view key_of(const KinetoRecord& record);
  [[nodiscard]] std::uint8_t crowded_lane(std::string_view key) const noexcept;

  std::size_t pairs_max_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
  std::vector<Pair> pairs_;
  std::vector<KinetoLane> lanes_;
  std::size_t first_thread_lane_ = 1;
  std::uint64_t crowded_ = 0;
  std::string key_;
};

}  // namespace ringmain::replay
