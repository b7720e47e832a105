// Is this line an event, when was it published, and by which process? One line of JSON at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/line_event.hpp"

namespace ringmain::cli {

/// Reads lines one after the other, and reuses its memory.
class LineReader {
 public:
  LineReader();
  ~LineReader();

  /// As many readable bytes must follow each line.
  [[nodiscard]] static std::size_t padding() noexcept;

  /// nullopt where `line` is no whole event: fault() says why, in words that follow "it is".
  [[nodiscard]] std::optional<LineEvent> read(std::string_view line);
  [[nodiscard]] std::string_view fault() const noexcept { return fault_; }

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
  std::string_view fault_;
};

}  // namespace ringmain::cli
