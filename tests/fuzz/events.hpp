// What is said in a fuzz run: nine event types, one for each size of slot, one of them with words.
//
// Every event says which publisher of the journal published it, and its number there; the rest of
// it is made of that, so a callback sees whether it came whole.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "bus/bus.hpp"

namespace ringmain::fuzz {

/// An event's identity, and the number that decides what its hearers do.
struct Mark {
  std::uint16_t publisher = 0;
  std::uint16_t n = 0;  // 0, 1, 2 … of this publisher
  std::uint32_t what = 0;

  [[nodiscard]] std::uint32_t key() const noexcept { return what & 7; }
  [[nodiscard]] std::uint32_t act() const noexcept { return what >> 3 & 31; }
  [[nodiscard]] std::uint32_t more() const noexcept { return what >> 8 & 0xffff; }
  [[nodiscard]] std::uint32_t depth() const noexcept { return what >> 28; }
  [[nodiscard]] std::uint32_t deeper() const noexcept { return what + (1u << 28); }
};

enum : std::size_t { kTypes = 9 };
/// Their channels: patterns meet some of them.
constexpr std::array<std::string_view, kTypes> kNames{
    "left.a", "left.b", "left.c", "right.a", "right.b", "right.words", "far.a", "far.b", "far.c"};
constexpr std::array<std::size_t, kTypes> kBytes{8, 32, 40, 72, 104, 176, 232, 496, 1024};

constexpr std::uint8_t byte_of(const Mark& m, std::size_t i) noexcept {
  return static_cast<std::uint8_t>(m.publisher * 7u + m.n * 13u + m.what + i);
}

template <std::size_t kType>
struct Said {
  Mark mark;
  std::array<std::uint8_t, kBytes[kType] - sizeof(Mark)> rest;

  static Said make(const Mark& m) noexcept {
    Said s;
    s.mark = m;
    for (std::size_t i = 0; i < s.rest.size(); ++i) s.rest[i] = byte_of(m, i);
    return s;
  }
  [[nodiscard]] bool intact() const noexcept {
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] != byte_of(mark, i)) return false;
    }
    return true;
  }
};
template <>
struct Said<0> {
  Mark mark;
  static Said make(const Mark& m) noexcept { return {m}; }
  [[nodiscard]] static bool intact() noexcept { return true; }
};

enum : std::size_t { kWords = 5 };
inline std::string_view word_of(std::uint32_t what) noexcept {
  constexpr std::array<std::string_view, 4> kAll{
      "", "allreduce", "größer als sechs Zeichen",
      "a text that is longer than what the event holds of it, so that it is cut at a character: "
      "ä ö ü ß € and so on, for a hundred and sixty bytes and a good few more than that"};
  return kAll[what % kAll.size()];
}
template <>
struct Said<kWords> {
  Mark mark;
  Name name;
  std::uint32_t pad = 0;
  Text<160> text;

  static Said make(const Mark& m) noexcept {
    return {m, Name(word_of(m.what)), 0, Text<160>(word_of(m.what >> 2))};
  }
  [[nodiscard]] bool intact() const noexcept {
    const std::string_view all = word_of(mark.what >> 2);
    const std::string_view held = text.view();
    return name.view() == word_of(mark.what) && all.substr(0, held.size()) == held &&
           text.cut() == (held.size() < all.size()) && (held == all || held.size() > 150);
  }
};
static_assert(sizeof(Said<kWords>) == kBytes[kWords]);

template <std::size_t kType>
constexpr auto describe(EventOf<Said<kType>>) {
  return event(kNames[kType]);
}

/// splitmix64: the same everywhere for the same seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return static_cast<std::uint32_t>(z ^ (z >> 31));
  }
  std::uint32_t below(std::uint32_t n) { return (*this)() % n; }

 private:
  std::uint64_t state_;
};

}  // namespace ringmain::fuzz
