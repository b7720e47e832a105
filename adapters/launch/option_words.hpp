// How are the words after a provider's colon read, as in `cuda:driver,lane=32768`, and what is said
// of a wrong one?
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "bus/result.hpp"

namespace ringmain::words {

/// As it stands in a sentence: bounded, and on one line.
inline std::string quoted(std::string_view written) {
  std::string made(written.substr(0, 64));
  std::replace_if(
      made.begin(), made.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return "'" + made + (written.size() > 64 ? "…'" : "'");
}

/// One of a provider's options that is a number: its word, and its field in C++.
template <class Options, class T>
struct Number {
  std::string_view name;
  std::string_view field;
  std::string_view unit;
  T Options::*member;
  T least, most;

  [[nodiscard]] std::string limits() const {
    return "a number of " + std::string(unit) + " from " + std::to_string(least) + " to " +
           std::to_string(most);
  }
  [[nodiscard]] bool allows(T given) const noexcept { return given >= least && given <= most; }
  /// "" or what is wrong with `word`, whose part behind = is `value`.
  std::string read(std::string_view provider, std::string_view value, std::string_view word,
                   Options& options) const {
    const char* const end = value.data() + value.size();
    T given = 0;
    const auto [stopped, fault] = std::from_chars(value.data(), end, given);
    if (value.empty() || fault != std::errc{} || stopped != end || !allows(given)) {
      return std::string(provider) + " wants " + std::string(name) + "= with " + limits() +
             ", and not " + quoted(word);
    }
    options.*member = given;
    return "";
  }
  /// What is wrong with the field of a program's own, which is called `type`.
  [[nodiscard]] std::optional<Error> fault(std::string_view type, const Options& options) const {
    const T given = options.*member;
    if (allows(given)) return std::nullopt;
    return Error{Error::Code::refused, std::string(type) + "::" + std::string(field) + " is " +
                                           std::to_string(given) + ": give it " + limits()};
  }
};

/// Gives the words between commas to `read(word)` one after the other, which says "" or what is
/// wrong. A name twice is wrong unless it `may_repeat(name)`.
template <class Read, class MayRepeat>
std::optional<Error> read_all(std::string_view provider, std::string_view written, Read read,
                              MayRepeat may_repeat) {
  std::vector<std::string_view> named;
  for (std::size_t at = 0; !written.empty() && at <= written.size();) {
    const std::size_t end = std::min(written.find(',', at), written.size());
    const std::string_view word = written.substr(at, end - at);
    at = end + 1;
    if (std::string fault = read(word); !fault.empty())
      return Error{Error::Code::refused, std::move(fault)};
    const std::string_view name = word.substr(0, word.find('='));
    if (may_repeat(name)) continue;
    if (std::find(named.begin(), named.end(), name) != named.end()) {
      return Error{Error::Code::refused, std::string(provider) + " takes " + std::string(name) +
                                             " once, and here it is twice"};
    }
    named.push_back(name);
  }
  return std::nullopt;
}

}  // namespace ringmain::words
