// How are the members of a group written in a text? In their order, runs in short: "0-3,8,16-28/4".
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string_view>

#include "../../bus/text.hpp"

namespace ringmain::collective {
namespace detail {

/// So many of `ranks`, from its first on, are one run: they rise by the same step.
inline std::size_t run_of(std::span<const int> ranks) noexcept {
  if (ranks.size() < 2 || ranks[1] <= ranks[0]) return 1;
  const long long step = static_cast<long long>(ranks[1]) - ranks[0];
  std::size_t n = 2;
  while (n < ranks.size() && static_cast<long long>(ranks[n]) - ranks[n - 1] == step) ++n;
  return n > 2 || step == 1 ? n : 1;  // "0,4" is shorter than "0-4/4"
}

/// One run, as text: three numbers of up to 11 bytes, and what is before and between.
class RunText {
 public:
  void put(char c) noexcept {
    if (size_ < bytes_.size()) bytes_[size_++] = c;
  }
  void put(int number) noexcept {
    std::array<char, 11> digits{};
    const char* const to = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    for (const char* c = digits.data(); c != to; ++c) put(*c);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 36> bytes_{};
  std::size_t size_ = 0;
};

}  // namespace detail

/// Writes `ranks` into `text`, in their order: "7" is one, "0-3" is 0 1 2 3, "8-20/4" is 8 12
/// 16 20. Runs that do not fit are left out, and ",..." at the end says so. Threads: any. Progress:
/// wait-free.
template <std::size_t N>
requires(N >= 64) void write_ranks(Text<N>& text, std::span<const int> ranks) noexcept {
  constexpr std::string_view kMore = ",...";
  std::array<char, N> all{};
  std::size_t size = 0;    // of the runs so far
  std::size_t cut_at = 0;  // of those after which there is room to say that more follow
  for (std::span<const int> left = ranks; !left.empty();) {
    const std::size_t n = detail::run_of(left);
    detail::RunText run;
    if (size != 0) run.put(',');
    run.put(left[0]);
    if (n > 1) {
      run.put('-');
      run.put(left[n - 1]);
      if (left[1] - left[0] > 1) {
        run.put('/');
        run.put(left[1] - left[0]);
      }
    }
    left = left.subspan(n);
    const bool fits = size + run.view().size() <= Text<N>::kBytesMax;
    if (!fits) size = cut_at;
    const std::string_view next = fits ? run.view() : kMore;
    std::copy(next.begin(), next.end(), all.begin() + static_cast<std::ptrdiff_t>(size));
    size += next.size();
    if (!fits) break;
    if (size + kMore.size() <= Text<N>::kBytesMax) cut_at = size;
  }
  text = std::string_view(all.data(), size);
}

}  // namespace ringmain::collective
