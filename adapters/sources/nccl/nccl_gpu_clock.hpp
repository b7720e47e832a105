// What does the host's clock say at a moment of a GPU's?
//
// A stamp of the GPU's is seen by the host later than it was made, and the work that it stamps
// was called for before. So the difference of the clocks lies between two bounds: each stamp may
// raise the lower one (called − stamp) and lower the upper one (seen − stamp). The estimate is the
// middle, its error half the distance. Clocks drift, so bounds are forgotten after a while.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/system/figure.hpp"

namespace ringmain::nccl {

/// Of one communicator's GPU. Threads: any. Progress: lock-free.
class GpuClock {
 public:
  struct Estimate {
    std::int64_t host_ns = 0;  // 0: there is none
    std::int64_t error_ns = 0;
  };
  /// The work that the GPU stamped with `stamp` was called for at `called_ns`, and the stamp was
  /// seen at `seen_ns`.
  void learn(std::uint64_t stamp, std::int64_t called_ns, std::int64_t seen_ns) noexcept {
    if (!is_time(stamp)) return;
    Bounds& now = bounds_[turn(seen_ns)];
    now.low.at_least(called_ns - static_cast<std::int64_t>(stamp));
    now.high.at_most(seen_ns - static_cast<std::int64_t>(stamp));
  }
  [[nodiscard]] Estimate at(std::uint64_t stamp) const noexcept {
    if (!is_time(stamp)) return {};
    const std::int64_t low = std::max(bounds_[0].low.get(), bounds_[1].low.get());
    const std::int64_t high = std::min(bounds_[0].high.get(), bounds_[1].high.get());
    if (low == kNoLow || high == kNoHigh || low > high) return {};
    const std::int64_t half = (high - low) / 2;
    return {static_cast<std::int64_t>(stamp) + low + half, half};
  }

  /// Another communicator's, perhaps of another GPU.
  void forget() noexcept {
    for (Bounds& each : bounds_) each.forget();
  }

 private:
  static constexpr std::int64_t kNoLow = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNoHigh = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kTurnNs = 10'000'000'000;
  /// Twice as far as the clock has come since 1970: what lies beyond was read from somewhere else.
  static constexpr std::uint64_t kStampMax = std::numeric_limits<std::int64_t>::max() / 2;
  static constexpr bool is_time(std::uint64_t stamp) noexcept {
    return stamp != 0 && stamp <= kStampMax;
  }
  struct Bounds {
    engine::Figure<std::int64_t> low{kNoLow}, high{kNoHigh};
    void forget() noexcept {
      low.set(kNoLow);
      high.set(kNoHigh);
    }
  };
  /// Which bounds are written; those of the turn before the last are forgotten. A thread that
  /// writes meanwhile loses a bound, which another stamp finds again.
  std::size_t turn(std::int64_t now_ns) noexcept {
    const std::int64_t turn = now_ns / kTurnNs, was = turn_.get();
    const auto place = static_cast<std::size_t>(turn & 1);
    if (was < turn && turn_.change(was, turn)) bounds_[place].forget();
    return place;
  }

  engine::Figure<std::int64_t> turn_;
  Bounds bounds_[2];
};

}  // namespace ringmain::nccl
