// How long does stop() wait for a thread that was told to end? For a thread in a callback until the
// deadline, and for a moment in any case. A thread in no callback ends as soon as the system lets
// it run, so it gets some time more.
#pragma once
#include <algorithm>
#include <cstdint>

#include "clock.hpp"

namespace ringmain::engine {
class JoinDeadline {
 public:
  /// The patience is for a machine with many more busy threads than cores, where a thread may not
  /// run for 50 ms.
  enum : std::int64_t { kMomentNs = 50'000'000, kPatienceNs = 2'000'000'000 };

  /// Negative: without a limit.
  explicit JoinDeadline(std::int64_t limit_ns, std::int64_t now = now_ns()) noexcept
      : limit_ns_(limit_ns), began_ns_(now) {}

  /// How long to sleep before the next look, as futex_wait takes it; 0: give up.
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
