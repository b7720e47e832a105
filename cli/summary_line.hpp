// What does a summary take from a line? Where it belongs, and the times, sizes and losses that it
// tells.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "cli/line_event.hpp"

namespace ringmain::cli {

/// A number of a line under its key.
struct LineFigure {
  std::string_view key;
  std::uint64_t value = 0;
};

/// As many figures as a line may have; more are not looked at. No event of ours has more than nine.
class LineFigures {
 public:
  void add(std::string_view key, std::uint64_t value) noexcept {
    if (count_ < all_.size()) all_[count_++] = {key, value};
  }
  [[nodiscard]] std::span<const LineFigure> all() const noexcept { return {all_.data(), count_}; }

 private:
  std::array<LineFigure, 16> all_;
  std::size_t count_ = 0;
};

/// What a process says of itself in its first line.
struct LineProcess {
  std::optional<std::int64_t> rank, pid;
  std::string_view host, program, job;
};

/// Texts are valid until the next line is read.
struct SummaryLine {
  LineEvent event;
  std::string_view channel;
  /// What was done: a collective's op, a range's message, a call's name …, as the first that is
  /// there and not empty of the keys in operation_keys().
  std::string_view operation;
  std::optional<LineProcess> process;  // in a process's first line
  std::optional<std::uint64_t> publisher, sequence, op_id, step;
  /// Durations and sizes: keys that end in _ns and bytes, but for points in time. 0 and less are
  /// left out, for that is how an event says that it does not know.
  LineFigures measures;
  /// What the line says was lost, and of which channel (bus.loss).
  LineFigures losses;
  std::string_view lost_of;
};

/// In the order in which they are looked for.
[[nodiscard]] std::span<const std::string_view> operation_keys() noexcept;

/// Reads lines one after the other, and reuses its memory.
class SummaryReader {
 public:
  SummaryReader();
  ~SummaryReader();
  /// As many readable bytes must follow each line.
  [[nodiscard]] static std::size_t padding() noexcept;
  /// False where `line` is no whole event: fault() says why, in words that follow "it is".
  [[nodiscard]] bool read(std::string_view line, SummaryLine& into);
  [[nodiscard]] std::string_view fault() const noexcept { return fault_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string_view fault_;
};

}  // namespace ringmain::cli
