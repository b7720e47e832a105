// How does a trivially copyable event carry words? In one of two ways.
//
// Name: an interned string, 4 bytes in the event, its characters in a bounded, append-only table of
// the process. Text<N>: up to N - 2 bytes in place, longer input is cut and marked as such.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace ringmain {

/// An interned string of up to 64 KiB: an operation, a kernel, a reason.
///
/// Two Names are equal exactly when their strings are. The table holds 2^20 names and 256 MiB of
/// characters and is never freed; past either bound a new string becomes the Name that reads
/// "(names full)" and is counted in names_stats().
class Name {
 public:
  constexpr Name() = default;
  /// Interns `s`, cut to 64 KiB at a UTF-8 boundary. Never throws. Threads: any. Progress:
  /// blocking; it takes a lock and may allocate, so make Names before publishing.
  explicit Name(std::string_view s) noexcept;
  /// The string, valid for ever; "" for Name{}. Progress: wait-free.
  [[nodiscard]] std::string_view view() const noexcept;
  /// Progress: wait-free.
  [[nodiscard]] constexpr std::uint32_t id() const noexcept { return id_; }
  friend constexpr bool operator==(Name, Name) = default;

 private:
  std::uint32_t id_ = 0;
};
static_assert(sizeof(Name) == 4 && std::is_trivially_copyable_v<Name>);

struct NamesStats {
  std::uint64_t names = 0;      // distinct strings held
  std::uint64_t bytes = 0;      // their characters
  std::uint64_t refused = 0;    // strings that came after the table was full
  std::uint64_t truncated = 0;  // longer than 64 KiB
};
/// Progress: blocking.
[[nodiscard]] NamesStats names_stats() noexcept;

namespace detail {
/// The longest prefix of `s` of at most `bytes_max` bytes that does not split a UTF-8 sequence.
constexpr std::size_t utf8_prefix(std::string_view s, std::size_t bytes_max) noexcept {
  if (s.size() <= bytes_max) return s.size();
  std::size_t n = bytes_max;
  for (int back = 0; back < 3 && n > 0 && (static_cast<unsigned char>(s[n]) & 0xc0u) == 0x80u;
       ++back)
    --n;
  return (static_cast<unsigned char>(s[n]) & 0xc0u) == 0x80u ? bytes_max : n;
}
}  // namespace detail

/// Up to N - 2 bytes of text inside the event; longer input is cut at a UTF-8 boundary and marked.
/// Progress: wait-free.
template <std::size_t N>
struct Text {
  static_assert(N >= 8 && N % 8 == 0 && N <= 1024);
  static constexpr std::size_t kBytesMax = N - 2;

  constexpr Text() = default;
  constexpr Text(std::string_view s) noexcept {  // NOLINT(google-explicit-constructor): it is text
    const std::size_t n = detail::utf8_prefix(s, kBytesMax);
    for (std::size_t i = 0; i < n; ++i) bytes_[i] = s[i];
    size_and_cut_ = static_cast<std::uint16_t>(n | (n < s.size() ? kCut : 0u));
  }
  [[nodiscard]] constexpr std::string_view view() const noexcept {
    return {bytes_.data(), static_cast<std::size_t>(size_and_cut_ & ~kCut)};
  }
  /// True when the text given was longer than what is held.
  [[nodiscard]] constexpr bool cut() const noexcept { return (size_and_cut_ & kCut) != 0; }

 private:
  static constexpr std::uint16_t kCut = 0x8000;
  std::uint16_t size_and_cut_ = 0;
  std::array<char, N - 2> bytes_{};
};
static_assert(std::is_trivially_copyable_v<Text<64>> && sizeof(Text<64>) == 64);

}  // namespace ringmain
