// How is JSON written? Strings, numbers, and whole objects member by member. No other C++ file
// writes JSON.
//
// RFC 8259: numbers are exact, bytes that are not UTF-8 become U+FFFD, and what JSON cannot say
// (nan, inf) becomes null.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace ringmain::formats {

namespace detail {

/// The length of the UTF-8 sequence that `s` begins with; 0 if it is none.
inline std::size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [&s](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  const std::size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (n == 0 || lead > 0xf4 || n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
  }
  const unsigned second = n > 1 ? byte(1) : 0;
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool beyond = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : n;  // beyond: surrogates, and what Unicode does not have
}

}  // namespace detail

/// Appends `text` as a JSON string (RFC 8259); bytes that are not UTF-8 become U+FFFD. `To` is a
/// std::string, or takes bytes as one does.
template <class To>
void append_json_string(To& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const char c = text.front();
    std::size_t n = detail::utf8_length(text);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      to += escape;
    } else if (n == 0) {
      to += "\xef\xbf\xbd";
      n = 1;
    } else {
      to.append(text.substr(0, n));
    }
    text.remove_prefix(n);
  }
  to += '"';
}

/// Appends a number so that reading it gives the same value; null where it is not finite.
template <class To, class T>
requires std::integral<T> || std::floating_point<T>
void append_json_number(To& to, T value) {
  if constexpr (std::floating_point<T>) {
    if (!std::isfinite(value)) {
      to += "null";
      return;
    }
  }
  char digits[32];
  to.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// Writes an object or an array member by member, with its commas and indents.
class JsonText {
 public:
  JsonText& open(char bracket) {
    before_value();
    text_ += bracket;
    ++depth_;
    first_ = true;
    return *this;
  }
  JsonText& close(char bracket) {
    --depth_;
    if (!first_) new_line();
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonText& key(std::string_view name) {
    comma();
    append_json_string(text_, name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }
  JsonText& text(std::string_view value) {
    before_value();
    append_json_string(text_, value);
    return *this;
  }
  /// A value that is JSON already.
  JsonText& json(std::string_view value) { return word(value); }
  JsonText& boolean(bool value) { return word(value ? "true" : "false"); }
  JsonText& null() { return word("null"); }
  template <class T>
  requires std::integral<T> || std::floating_point<T> JsonText& number(T value) {
    before_value();
    append_json_number(text_, value);
    return *this;
  }
  [[nodiscard]] const std::string& str() const noexcept { return text_; }

 private:
  JsonText& word(std::string_view value) {
    before_value();
    text_ += value;
    return *this;
  }
  void before_value() {
    if (after_key_) {
      after_key_ = false;
    } else if (depth_ > 0) {
      comma();
    }
  }
  void comma() {
    if (!first_) text_ += ',';
    first_ = false;
    new_line();
  }
  void new_line() { text_ += '\n' + std::string(2 * depth_, ' '); }

  std::string text_;
  std::size_t depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace ringmain::formats
