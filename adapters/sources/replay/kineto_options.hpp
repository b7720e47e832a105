// How much may reading a trace cost, and how is what was left out counted?
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringmain::replay {

struct KinetoOptions {
  /// All that reading may hold at a time, at least kMemoryMin: a quarter for the index while it
  /// grows, the rest for matching it, for the parser and for the buffers. Names are outside it:
  /// they live in the process's table, which has its own bound.
  std::uint64_t memory_max = std::uint64_t{1} << 30;
  /// Input that cannot be read twice (a pipe) is kept in an unlinked file in $TMPDIR, else
  /// /var/tmp, else /tmp, as it comes (compressed input stays so), up to this many bytes.
  std::uint64_t spool_bytes_max = std::uint64_t{64} << 30;

  /// Text of this length in which no record ends is no trace: a bound for endless white space.
  std::uint64_t idle_bytes_max = std::uint64_t{4} << 30;

  static constexpr std::uint64_t kMemoryMin = std::uint64_t{4} << 20;
  /// A record larger than this is skipped: too_large. Its parser takes some eight times as much.
  [[nodiscard]] constexpr std::size_t record_bytes_max() const noexcept {
    const std::uint64_t share = memory_max / 32;
    return static_cast<std::size_t>(share < (4u << 20) ? share : (4u << 20));
  }
};

/// Why a record was not delivered.
enum class Skip : std::uint8_t {
  none,
  not_an_object,      // a number, a string, null … where a record should be
  bad_json,           // not JSON inside the record, or an escape that means no character
  bad_utf8,           // text that is not UTF-8
  too_large,          // more than KinetoOptions::record_bytes_max()
  too_deep,           // nested deeper than 128 levels
  no_phase,           // "ph" is missing or not one letter
  unknown_phase,      // a letter that the format does not have
  bad_timestamp,      // "ts" is missing, not a number, or beyond 146 years
  bad_duration,       // "dur" is not a number, or ends beyond 146 years
  negative_duration,  // the clock of the recorder went backwards
  count
};
[[nodiscard]] std::string_view to_string(Skip reason) noexcept;

struct KinetoCounts {
  std::uint64_t read = 0;  // records seen, skipped ones included
  std::array<std::uint64_t, static_cast<std::size_t>(Skip::count)> skipped{};

  [[nodiscard]] std::uint64_t skipped_total() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : skipped) sum += n;
    return sum;
  }
};

}  // namespace ringmain::replay
