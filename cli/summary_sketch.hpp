// How are quantiles of any number of values known in little memory? By counts of values that are
// nearly alike.
//
// Values are whole and above 0. With b bits, those of one power of two share 2^b counts, so a value
// is known to one part in 2^(b+1); below 2^(b+1) it is known exactly. Counts of two sketches add up
// to that of both, in any order. Source: Tene's HdrHistogram; the coarsening is Epicoco et al.,
// UDDSketch, IEEE Access 8, 2020.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ringmain::cli {

class Sketch {
 public:
  static constexpr unsigned kBits = 6;
  /// The most that a quantile may be off, as a share of it.
  [[nodiscard]] static constexpr double error(unsigned coarser) noexcept {
    return 1.0 / static_cast<double>(2u << (kBits - coarser));
  }

  /// `value` is above 0. `coarser`: how often all sketches of a summary were made coarser.
  void add(std::uint64_t value, unsigned coarser) {
    ++count_;
    sum_ = plus(sum_, value);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    ++at(index_of(value) >> coarser);
  }
  /// Of the same coarseness.
  void add(const Sketch& other) {
    count_ += other.count_;
    sum_ = plus(sum_, other.sum_);
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    for (std::size_t i = 0; i < other.counts_.size(); ++i) {
      if (other.counts_[i] != 0) at(other.first_ + i) += other.counts_[i];
    }
  }
  /// Halves the counts and doubles the error.
  void coarsen() {
    if (counts_.empty()) return;
    Sketch half;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) half.at((first_ + i) >> 1) += counts_[i];
    }
    half.counts_.shrink_to_fit();
    first_ = half.first_;
    counts_ = std::move(half.counts_);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Of all values; stays at the largest number of 64 bits if it would be more.
  [[nodiscard]] std::uint64_t sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t min() const noexcept { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  /// The value that a share of `q` of all values does not exceed, give or take error(); min() and
  /// max() are exact. 0 without values.
  [[nodiscard]] std::uint64_t quantile(double q, unsigned coarser) const {
    const double wanted = std::ceil(q * static_cast<double>(count_));
    const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::max(wanted, 0.0)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen < rank) continue;
      return std::clamp(middle_of(first_ + i, coarser), min_, max_);
    }
    return max_;
  }
  /// Of its counts.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return counts_.capacity() * sizeof counts_[0];
  }

 private:
  static constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept {
    const std::uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
  }
  /// Values below 2^(kBits+1) have an index each; then 2^kBits for each power of two.
  static constexpr std::size_t index_of(std::uint64_t value) noexcept {
    const auto power = static_cast<unsigned>(std::bit_width(value)) - 1;
    if (power <= kBits) return static_cast<std::size_t>(value);
    return (static_cast<std::size_t>(power - kBits) << kBits) +
           static_cast<std::size_t>(value >> (power - kBits));
  }
  static constexpr std::uint64_t least_of(std::size_t index) noexcept {
    if (index < (std::size_t{2} << kBits)) return index;
    const std::size_t octave = (index >> kBits) - 1;
    return static_cast<std::uint64_t>(index - (octave << kBits)) << octave;
  }
  /// Of the values that share a count.
  static std::uint64_t middle_of(std::size_t index, unsigned coarser) noexcept {
    const std::uint64_t least = least_of(index << coarser);
    const std::size_t next = (index + 1) << coarser;
    const std::uint64_t most = next >= index_of(std::numeric_limits<std::uint64_t>::max())
                                   ? std::numeric_limits<std::uint64_t>::max()
                                   : least_of(next) - 1;
    return least + (most - least) / 2;
  }
  std::uint64_t& at(std::size_t index) {
    if (counts_.empty()) first_ = index;
    if (index < first_) {
      counts_.insert(counts_.begin(), first_ - index, 0);
      first_ = index;
    } else if (index - first_ >= counts_.size()) {
      counts_.resize(index - first_ + 1);
    }
    return counts_[index - first_];
  }

  std::uint64_t count_ = 0, sum_ = 0, max_ = 0;
  std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
  std::size_t first_ = 0;  // the index that counts_ begins with
  std::vector<std::uint64_t> counts_;
};

}  // namespace ringmain::cli
