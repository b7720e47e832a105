// How long is a thread that was told to end waited for? One in a callback to the deadline, and for
// a moment in any case; one in no callback ends by itself as soon as the machine lets it run.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ringmain/engine/clock.hpp"

namespace ringmain::engine {
class Farewell {
 public:
  /// The patience is for a machine with many more busy threads than cores, on which 50 ms may pass
  /// without a turn.
  enum : std::int64_t { kMomentNs = 50'000'000, kPatienceNs = 2'000'000'000 };

  /// Negative: without a limit.
  explicit Farewell(std::int64_t limit_ns) noexcept
      : callback_(at_least(kMomentNs, limit_ns)), turn_(at_least(kPatienceNs, limit_ns)) {}

  /// How long to sleep before the next look, as futex_wait takes it; 0: it is given up.
  [[nodiscard]] std::int64_t left_ns(bool in_callback) const noexcept {
    const std::int64_t left = callback_.left_ns();
    if (left != 0 || in_callback) return left;
    return std::min<std::int64_t>(turn_.left_ns(), kMomentNs);
  }

 private:
  static std::int64_t at_least(std::int64_t moment_ns, std::int64_t limit_ns) noexcept {
    return limit_ns < 0 ? limit_ns : std::max(limit_ns, moment_ns);
  }

  Deadline callback_;
  Deadline turn_;
};
}  // namespace ringmain::engine
