// Where does one record of a trace end? Splits the "traceEvents" array into the texts of its
// records.
//
// It looks only at strings, escapes and brackets; the parser reads what is between two brackets. A
// value that is too large or too deep is skipped without being held, so memory is the size of one
// record, whatever the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bus/result.hpp"

#include "adapters/sources/replay/kineto_bytes.hpp"
#include "adapters/sources/replay/kineto_options.hpp"

namespace ringmain::replay {

/// One element of "traceEvents". Valid until the next call; RecordSplitter::kPadding bytes after
/// the text may be read.
struct RecordText {
  std::string_view text;
  Skip skip = Skip::none;  // otherwise text is empty
};

/// A top-level member beside "traceEvents" that somebody asks for, its value as written.
struct TopMember {
  std::string key;
  std::string text;
};

/// Threads: one at a time. Cost: about a nanosecond per byte.
class RecordSplitter {
 public:
  static constexpr std::size_t kPadding = 64;    // what simdjson may read after a text
  static constexpr std::size_t kDepthMax = 128;  // of one record; Kineto's are below 10

  RecordSplitter(KinetoBytes bytes, const KinetoOptions& options);

  /// The next record; false after the last. After an Error: the same Error.
  Result<bool> next(RecordText& record);
  void rewind();

  /// "baseTimeNanoseconds" and "distributedInfo", as far as they have been met.
  [[nodiscard]] const std::vector<TopMember>& members() const noexcept { return members_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] const KinetoBytes& bytes() const noexcept { return bytes_; }

 private:
  enum class Stage : std::uint8_t { start, members, records, tail, over };

  // Each returns false when failed_ says why; more() and look() also at the end of the text.
  bool more();
  bool look();
  bool begin();
  bool read_member();
  bool read_element(RecordText& record);
  bool after_member();
  bool scan_value(std::size_t hold_bytes_max);
  bool scan_string();
  bool scan_scalar();
  bool scan_brackets(char opening);
  bool close_bracket(char closing);
  void keep_member(std::string key);

  [[nodiscard]] char here() const noexcept { return room_[at_]; }
  [[nodiscard]] std::string_view held() const noexcept {
    return {room_.data() + begin_, at_ - begin_};
  }
  [[nodiscard]] std::uint64_t position() const noexcept { return passed_ + at_; }
  [[nodiscard]] std::string place() const;
  bool fail(std::string message);
  bool fail_start();
  bool fail_cut_short();
  bool fail_unexpected(std::string_view wanted);

  KinetoBytes bytes_;
  std::size_t record_bytes_max_;
  std::uint64_t idle_bytes_max_;
  std::vector<char> room_;  // the text from `passed_` on: [begin_, at_) held, [at_, end_) unread
  std::size_t begin_ = 0;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t passed_ = 0;
  std::uint64_t idle_from_ = 0;  // where the last record ended
  std::size_t hold_bytes_max_ = 0;
  bool too_large_ = false;  // the value at hand was longer than that
  std::size_t depth_ = 0;
  std::size_t deepest_ = 0;
  std::uint64_t is_array_[kDepthMax / 64] = {};  // one bit per open bracket
  Stage stage_ = Stage::start;
  bool bare_array_ = false;
  bool found_array_ = false;
  bool comma_due_ = false;  // a record has just ended
  std::uint64_t records_ = 0;
  std::vector<TopMember> members_;
  std::optional<Error> failed_;
};

}  // namespace ringmain::replay
