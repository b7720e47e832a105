// Lines of a text, and words without the space around them.
#pragma once
#include <cstddef>
#include <string_view>

namespace ringmain::compile {

inline constexpr auto npos = std::string_view::npos;

inline std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

/// The next line, without its end; `text` is shortened by it.
inline std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == npos ? text.size() : end + 1);
  return line;
}

}  // namespace ringmain::compile
