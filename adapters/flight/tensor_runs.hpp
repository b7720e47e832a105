// How are the sizes and types of an operation's tensors kept in a row of numbers? A run of tensors
// that are alike is one number (how many, how many sizes, and the type) and the sizes once, so a
// list of 4,096 like ones takes two numbers.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bus/text.hpp"

namespace ringmain::flight {

/// So many tensors in a row that are alike.
struct TensorRun {
  std::uint16_t count = 0;
  Name dtype;
  std::span<const std::int64_t> sizes;
};

/// Lays tensors out in `to`. What has no room is counted and not there.
class TensorRuns {
 public:
  explicit TensorRuns(std::span<std::int64_t> to) noexcept : to_(to) {}

  void add(Name dtype, std::span<const std::int64_t> sizes) noexcept {
    sizes = sizes.first(std::min<std::size_t>(sizes.size(), 0xffff));
    if (count_ != 0 && count_ != 0xffff && dtype == dtype_ && std::ranges::equal(sizes, sizes_)) {
      ++count_;
    } else {
      head_ = words_;
      words_ += 1 + sizes.size();
      count_ = 1;
      dtype_ = dtype;
      sizes_ = sizes;
      if (words_ <= to_.size()) std::ranges::copy(sizes, to_.subspan(head_ + 1).begin());
    }
    if (words_ <= to_.size())
      to_[head_] =
          static_cast<std::int64_t>(std::uint64_t{dtype.id()} << 32 | sizes.size() << 16 | count_);
  }
  /// That all of them take.
  [[nodiscard]] std::size_t words() const noexcept { return words_; }

 private:
  std::span<std::int64_t> to_;
  std::size_t words_ = 0, head_ = 0;
  std::uint16_t count_ = 0;                // of the last run; 0: there is none
  Name dtype_{};                           // of the last run, as what follows
  std::span<const std::int64_t> sizes_{};  // the caller's
};

template <class F>
void each_run(std::span<const std::int64_t> words, F take) {
  while (!words.empty()) {
    const auto head = static_cast<std::uint64_t>(words.front());
    const auto sizes = static_cast<std::size_t>(head >> 16 & 0xffff);
    take(TensorRun{static_cast<std::uint16_t>(head),
                   std::bit_cast<Name>(static_cast<std::uint32_t>(head >> 32)),
                   words.subspan(1, sizes)});
    words = words.subspan(1 + sizes);
  }
}

[[nodiscard]] inline std::size_t tensors_in(std::span<const std::int64_t> runs) {
  std::size_t count = 0;
  each_run(runs, [&](const TensorRun& run) { count += run.count; });
  return count;
}
/// More than one, and all of one size: how many. Else 0. Their types may differ.
[[nodiscard]] inline std::size_t alike_in(std::span<const std::int64_t> runs) {
  std::span<const std::int64_t> first;
  bool begun = false, differ = false;
  each_run(runs, [&](const TensorRun& run) {
    if (!begun) first = run.sizes;
    begun = true;
    differ = differ || !std::ranges::equal(first, run.sizes);
  });
  const std::size_t count = tensors_in(runs);
  return differ || count < 2 ? 0 : count;
}
/// More than one, of several sizes.
[[nodiscard]] inline bool differ_in(std::span<const std::int64_t> runs) {
  return tensors_in(runs) > 1 && alike_in(runs) == 0;
}

}  // namespace ringmain::flight
