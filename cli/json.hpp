// How is an answer for programs written? JSON, member by member, commas and indents seen to.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "adapters/formats/json_line.hpp"

namespace ringmain::cli {

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
    sinks::append_json_string(text_, name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }
  JsonText& text(std::string_view value) {
    before_value();
    sinks::append_json_string(text_, value);
    return *this;
  }
  JsonText& boolean(bool value) { return word(value ? "true" : "false"); }
  JsonText& null() { return word("null"); }
  template <class T>
  requires std::integral<T> || std::floating_point<T> JsonText& number(T value) {
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value)) return null();
    }
    char digits[32];
    return word({digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
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

}  // namespace ringmain::cli
