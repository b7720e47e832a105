// What is in a log that TORCH_TRACE wrote? Lines with one record each, and below a record the lines
// of its payload, a tab before each:
//
//   V1121 19:33:36.710000 8124 torch/_dynamo/utils.py:2350] {"chromium_event": {}, …}
//   	{"name": "dynamo", …}
//
// The reader takes the bytes as they come, in pieces of any size, and gives the records to a tap.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "trace_tap.hpp"

namespace ringmain::compile {

/// Why lines of a log did not reach the tap.
enum class LogSkip : std::uint8_t {
  not_a_record,     // a line that neither begins a record nor belongs to a payload
  orphan_payload,   // a payload's line with no record before it
  damaged_payload,  // a record whose payload is not the one that was written, or is cut short
  too_large         // a record above TraceTap::kBytesMax
};
constexpr std::size_t kLogSkips = static_cast<std::size_t>(LogSkip::too_large) + 1;
[[nodiscard]] std::string_view to_string(LogSkip skip) noexcept;

struct LogCounts {
  std::uint64_t lines = 0;
  std::uint64_t records = 0;       // lines that begin one
  std::uint64_t with_payload = 0;  // of those: that say that they have one
  std::uint64_t given = 0;         // to the tap, which has counts of its own
  std::array<std::uint64_t, kLogSkips> skipped{};
  [[nodiscard]] std::uint64_t skipped_total() const noexcept;
};

/// Threads: one at a time. Memory: the longest record, TraceTap::kBytesMax at most.
class LogReader {
 public:
  /// `before(time_ns)` is asked before each record is published: false ends the reading. Times are
  /// local and of an unknown year, but those of one log can be compared.
  explicit LogReader(TraceTap& tap, std::function<bool(std::int64_t)> before = {})
      : tap_(&tap), before_(std::move(before)) {}

  /// The next bytes. False: `before` ended the reading. Throws std::bad_alloc.
  bool feed(std::string_view bytes);
  /// The end of the log.
  void finish();

  [[nodiscard]] const LogCounts& counts() const noexcept { return counts_; }

 private:
  bool take_line(std::string_view line);
  bool give();
  void append(std::string& to, std::string_view bytes);
  void skip(LogSkip why) noexcept { ++counts_.skipped[static_cast<std::size_t>(why)]; }

  TraceTap* tap_;
  std::function<bool(std::int64_t)> before_;
  LogCounts counts_;
  std::string line_;      // that has not ended yet
  std::string metadata_;  // of the record at hand
  std::string payload_;
  std::int64_t time_ns_ = 0;
  std::uint32_t writer_ = 0;
  bool open_ = false;       // there is a record at hand
  bool has_lines_ = false;  // of payload
  bool too_large_ = false;  // the record at hand
  bool line_cut_ = false;   // line_ is longer than can be kept
  bool over_ = false;
};

}  // namespace ringmain::compile
