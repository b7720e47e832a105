// How is an id of Dynamo read? "0/1" is frame 0, compile 1; "!2/0/1" has compiled autograd's id in
// front, and "!2" is that alone; "[0/1]" stands in some logs; "None" means no id.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>

#include "../../../events/compile.hpp"

namespace ringmain::compile {

namespace detail {
/// A number without sign or blanks in front of `text`, which is shortened by it; -1: there is none.
inline std::int32_t take_number(std::string_view& text) noexcept {
  std::int32_t number = -1;
  if (text.empty() || text.front() < '0' || text.front() > '9') return -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{}) return -1;  // above 2^31
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}
inline bool take(std::string_view& text, char one) noexcept {
  if (!text.starts_with(one)) return false;
  text.remove_prefix(1);
  return true;
}
}  // namespace detail

/// nullopt: `text` is no id. "None" and "" are an Id without a frame. A suffix "_1" is the attempt.
inline std::optional<Id> parse_id(std::string_view text) noexcept {
  Id id;
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  if (text.empty() || text == "None") return id;
  if (detail::take(text, '!')) {
    id.autograd = detail::take_number(text);
    if (id.autograd < 0) return std::nullopt;
    if (text.empty()) return id;
    if (!detail::take(text, '/')) return std::nullopt;
  }
  id.frame = detail::take_number(text);
  if (id.frame < 0 || !detail::take(text, '/')) return std::nullopt;
  id.recompile = detail::take_number(text);
  if (id.recompile < 0) return std::nullopt;
  if (detail::take(text, '_')) {
    const std::int32_t attempt = detail::take_number(text);
    if (attempt < 0) return std::nullopt;
    id.attempt = static_cast<std::uint32_t>(attempt);
  }
  if (!text.empty()) return std::nullopt;
  return id;
}

/// Do both name the same compile, whichever attempt of it?
constexpr bool same_compile(const Id& a, const Id& b) noexcept {
  return a.frame == b.frame && a.recompile == b.recompile && a.autograd == b.autograd &&
         a.reset == b.reset;
}

}  // namespace ringmain::compile
