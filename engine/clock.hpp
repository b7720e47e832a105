// What time is it? One clock for waits, stamps and latencies: CLOCK_MONOTONIC, 20 ns a look.
#pragma once
#include <cstdint>
#include <ctime>

namespace ringmain::engine {
inline std::int64_t now_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// A point in time to give up at; negative limits mean never.
class Deadline {
 public:
  explicit Deadline(std::int64_t limit_ns) noexcept
      : at_(limit_ns < 0 ? -1 : now_ns() + limit_ns) {}
  /// Nanoseconds left, 0 when it has passed, -1 for never: what futex_wait takes.
  [[nodiscard]] std::int64_t left_ns() const noexcept {
    if (at_ < 0) return -1;
    const std::int64_t left = at_ - now_ns();
    return left > 0 ? left : 0;
  }
  [[nodiscard]] bool passed() const noexcept { return at_ >= 0 && now_ns() >= at_; }

 private:
  std::int64_t at_;
};
}  // namespace ringmain::engine
