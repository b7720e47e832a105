// What time is it? One clock for waits, stamps and latencies: CLOCK_MONOTONIC, 20 ns a look.
#pragma once
#include <cstdint>
#include <ctime>
#include <limits>

namespace ringmain::engine {
inline std::int64_t now_ns() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

/// The sum, or the largest value where that overflows: a time too long to count means for ever.
constexpr std::int64_t sum_ns(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}
/// `times` times `ns`, limited in the same way.
constexpr std::int64_t times_ns(std::int64_t times, std::int64_t ns) noexcept {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(times, ns, &product)) return product;
  return (times < 0) != (ns < 0) ? std::numeric_limits<std::int64_t>::min()
                                 : std::numeric_limits<std::int64_t>::max();
}
/// Microseconds, as options have them.
constexpr std::int64_t ns_of_us(std::int64_t us) noexcept {
  return times_ns(1000, us);
}

/// A point in time to give up at; negative limits mean never.
class Deadline {
 public:
  explicit Deadline(std::int64_t limit_ns) noexcept
      : at_(limit_ns < 0 ? -1 : sum_ns(now_ns(), limit_ns)) {}
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
