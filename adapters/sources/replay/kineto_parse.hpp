// What do a record's characters mean? JSON text to a KinetoRecord.
//
// simdjson's on-demand parser: members that nobody asks for are passed over without being made, so
// the nan and inf that Kineto writes among kernel figures do no harm. Times are read from their
// digits, not through a double, which at today's microseconds would be off by 250 ns.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

/// `text`, a JSON number or the inside of a JSON string, as microseconds; to the nearest
/// nanosecond. False for anything else, and beyond 146 years.
[[nodiscard]] bool parse_time_ns(std::string_view text, std::int64_t& ns) noexcept;

/// A JSON number with an integral value, or a string that holds one (0x… too). False otherwise.
[[nodiscard]] bool parse_integer(std::string_view text, std::int64_t& value) noexcept;

/// What the top-level "distributedInfo" says.
struct KinetoRanks {
  std::int64_t rank = -1;
  std::int64_t world_size = 0;
  std::int64_t groups = 0;  // process groups, 0 where not said
};
[[nodiscard]] KinetoRanks parse_distributed_info(std::string_view json);

/// Threads: one at a time. Allocates for a longer record than any before.
class RecordParser {
 public:
  static constexpr std::size_t kSeriesMax = 1024;  // of one counter record; more: too_large

  RecordParser();
  RecordParser(RecordParser&&) noexcept;
  RecordParser& operator=(RecordParser&&) noexcept;
  ~RecordParser();

  /// Fills `record`, but for its number. RecordSplitter::kPadding bytes after `text` must be
  /// readable.
  [[nodiscard]] Skip parse(std::string_view text, KinetoRecord& record);

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::replay
