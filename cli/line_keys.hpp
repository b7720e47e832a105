// Which keys does every event's line have in front, and is a line an event? The one place where
// lines are taken apart, for all verbs that read them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/json_value.hpp"
#include "cli/line_event.hpp"

namespace ringmain::cli {

/// Of "origin_process". What is missing or of another type is not there.
struct ProcessKeys {
  std::optional<std::int64_t> monotonic, realtime, rank, pid;
  std::optional<std::string_view> host, program, job, launcher;
};

/// Texts are valid until the next line is read. If a key comes twice the first one counts.
struct LineKeys {
  bool channel = false, time = false, origin = false, process = false;
  std::optional<std::string_view> channel_is, origin_is;
  std::optional<std::int64_t> time_is;
  ProcessKeys process_is;
};

/// Hears of all other keys; it reads the value or gives it to check_json().
class OtherKeys {
 public:
  virtual error_code hear(std::string_view key, json::value value) = 0;

 protected:
  ~OtherKeys() = default;
};

/// Reads and checks all of a line.
[[nodiscard]] error_code read_line_keys(json::document& line, LineKeys& into, OtherKeys& others);

/// "" and fills `into`; else says what is wrong with the line, in words that follow "it is".
[[nodiscard]] std::string_view event_of(const LineKeys& keys, LineEvent& into);

}  // namespace ringmain::cli
