// How long did it take, in a few kilobytes? Counts per power of two, sixteen steps in each: a value
// read back is at most 6.25 % above the one added. One writer; readers see a statistic.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "../system/atomics.hpp"

namespace ringmain::engine {

class Histogram {
 public:
  /// Adds one duration; negative ones count as 0. Threads: one writer at a time.
  void add(std::int64_t ns) noexcept {
    const std::uint64_t value = ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
    bump(counts_[index(value)]);
    if (value > max_.load(std::memory_order_relaxed)) max_.store(value, std::memory_order_relaxed);
  }
  /// The smallest bound that `share` (0 … 1) of the values do not exceed; 0 when empty.
  [[nodiscard]] std::uint64_t quantile(double share) const noexcept {
    std::uint64_t all = count();
    if (all == 0) return 0;
    const auto rank = static_cast<std::uint64_t>(share * static_cast<double>(all - 1)) + 1;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      below += counts_[i].load(std::memory_order_relaxed);
      if (below >= rank) return upper(i) < max() ? upper(i) : max();
    }
    return max();
  }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const auto& c : counts_) all += c.load(std::memory_order_relaxed);
    return all;
  }

 private:
  enum : std::size_t { kSteps = 16, kLogSteps = 4 };

  static std::size_t index(std::uint64_t value) noexcept {
    if (value < kSteps) return static_cast<std::size_t>(value);
    const auto log = static_cast<std::size_t>(std::bit_width(value) - 1);
    return (log - kLogSteps + 1) * kSteps +
           static_cast<std::size_t>((value >> (log - kLogSteps)) & (kSteps - 1));
  }
  static std::uint64_t upper(std::size_t i) noexcept {
    if (i < kSteps) return i;
    const std::size_t shift = i / kSteps - 1;
    return ((kSteps + i % kSteps + 1) << shift) - 1;
  }
  static void bump(Atomic<std::uint64_t>& c) noexcept {
    // Relaxed: one writer, and nothing follows from a count.
    c.store(c.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::array<Atomic<std::uint64_t>, kSteps * 61> counts_{};
  Atomic<std::uint64_t> max_{0};
};

}  // namespace ringmain::engine
