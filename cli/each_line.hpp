// How is text taken apart into lines, in one pass and with one buffer?
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmain::cli {

/// A line that is longer is none of ours.
inline constexpr std::size_t kLineMax = 64 << 20;

struct LinePlace {
  std::uint64_t number = 1;  // from 1 on
  std::uint64_t at = 0;      // bytes in front of it
};

/// Reads a line's text to the end of the input: `read(into, most)` gives the next bytes, 0 at the
/// end; `take(place, line, ended)` hears each line without its end, with `padding` readable bytes
/// after it, and `ended` is false for a last one that has no end; `too_long(place)` hears of those
/// above kLineMax. Memory: 1 MiB, or twice the longest line.
template <class Read, class Take, class TooLong>
void each_line(std::size_t padding, Read&& read, Take&& take, TooLong&& too_long) {
  std::vector<char> block((std::size_t{1} << 20) + padding);
  LinePlace place;  // of the line that begins the block
  std::size_t held = 0;
  bool leaving_out = false;  // the rest of a line that is too long
  while (const std::size_t got = read(block.data() + held, block.size() - padding - held)) {
    const std::size_t filled = held + got;
    std::memset(block.data() + filled, 0, padding);
    std::size_t begin = 0, searched = held;
    while (const void* found = std::memchr(block.data() + searched, '\n', filled - searched)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - block.data());
      if (!std::exchange(leaving_out, false)) {
        take(place, std::string_view(block.data() + begin, end - begin), true);
      }
      ++place.number;
      place.at += end + 1 - begin;
      begin = searched = end + 1;
    }
    held = filled - begin;
    std::memmove(block.data(), block.data() + begin, held);
    if (leaving_out || held >= kLineMax) {
      if (!std::exchange(leaving_out, true)) too_long(place);
      place.at += std::exchange(held, 0);
    } else if (held + padding == block.size()) {
      block.resize(2 * held + padding);
    }
  }
  if (held == 0 || leaving_out) return;
  std::memset(block.data() + held, 0, padding);
  take(place, std::string_view(block.data(), held), false);
}

/// Errors of files end with a stop, those of verbs do not.
[[nodiscard]] inline std::string in_one_clause(std::string sentence) {
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

/// A sink leaves one where it takes back a torn line.
[[nodiscard]] inline bool is_blank(std::string_view line) noexcept {
  return line.find_first_not_of(" \t\r") == line.npos;
}

/// Why a line without an end is no event.
inline constexpr std::string_view kTorn =
    "torn: it has no end, as where a process was killed or is writing still";

}  // namespace ringmain::cli
