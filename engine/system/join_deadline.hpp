// How long is a thread that was told to end waited for? One in a callback to the deadline, and for
// a moment in any case; one in no callback ends by itself as soon as the machine lets it run.
#pragma once
#include <algorithm>
#include <cstdint>

#include "clock.hpp"

namespace ringmain::engine {
class JoinDeadline {
 public:
  /// The patience is for a machine with many more busy threads than cores, on which 50 ms may pass
  /// without a turn.
  enum : std::int64_t { kMomentNs = 50'000'000, kPatienceNs = 2'000'000'000 };

  /// Negative: without a limit.
  explicit JoinDeadline(std::int64_t limit_ns, std::int64_t now = now_ns()) noexcept
      : limit_ns_(limit_ns), began_ns_(now) {}

  /// How long to sleep before the next look, as futex_wait takes it; 0: it is given up.
  [[nodiscard]] std::int64_t left_ns(bool in_callback, std::int64_t now = now_ns()) const noexcept {
    if (limit_ns_ < 0) return -1;
    const std::int64_t over = now - began_ns_;
    const std::int64_t left = std::max<std::int64_t>(limit_ns_, kMomentNs) - over;
    if (left > 0 || in_callback) return std::max<std::int64_t>(left, 0);
    return std::clamp<std::int64_t>(std::max<std::int64_t>(limit_ns_, kPatienceNs) - over, 0,
                                    kMomentNs);
  }

 private:
  std::int64_t limit_ns_;
  std::int64_t began_ns_;
};
}  // namespace ringmain::engine
