// What does a person see? Numbers in columns, colours and a progress line where a terminal shows
// them.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace ringmain::cli {

[[nodiscard]] bool is_terminal(std::FILE* file) noexcept;
/// Columns of the terminal that `file` leads to, 80 if it does not say.
[[nodiscard]] std::size_t columns(std::FILE* file) noexcept;
/// True unless NO_COLOR is set, TERM is "dumb" or `file` is no terminal.
[[nodiscard]] bool coloured(std::FILE* file) noexcept;

enum class Colour { bold, green, red, yellow, dim };
[[nodiscard]] std::string painted(bool colours, Colour colour, std::string_view text);

[[nodiscard]] std::string with_commas(std::uint64_t number);              // 1,234,567
[[nodiscard]] std::string duration_text(double ns);                       // 12.3 us
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);                // 1.5 MiB
[[nodiscard]] std::string rate_text(double per_second);                   // 1.23 M/s
[[nodiscard]] std::string plural(std::uint64_t n, std::string_view one);  // 1 worker, 2 workers

/// A text that anybody may have written: nothing in it moves the cursor or changes colours.
[[nodiscard]] std::string shown(std::string_view text);
/// In so many columns of UTF-8, cut with an ellipsis or filled with blanks.
[[nodiscard]] std::string in_columns(std::string_view text, std::size_t width);

/// One line that is written over: only where standard error is a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool shown() const noexcept { return shown_; }
  /// `share` of 0 … 1 as a bar, below 0 for "unknown"; then the text, cut to the terminal.
  void show(std::string_view what, double share, std::string_view text);
  void clear();

 private:
  const bool shown_;
  const bool utf8_;
  bool drawn_ = false;
};

}  // namespace ringmain::cli
