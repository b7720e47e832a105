#include "adapters/sources/compile/log_reader.hpp"

#include <charconv>
#include <iterator>
#include <numeric>
#include <optional>

#include "adapters/sources/compile/dynamo/md5.hpp"

namespace ringmain::compile {
namespace {

constexpr auto npos = std::string_view::npos;

/// What stands in front of a record.
struct Prefix {
  std::int64_t time_ns = 0;  // since the year began
  std::uint32_t writer = 0;
  std::size_t bytes = 0;
};

std::optional<unsigned> digits(std::string_view text, std::size_t at, std::size_t count) noexcept {
  unsigned number = 0;
  if (text.size() < at + count) return std::nullopt;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = 10 * number + static_cast<unsigned>(text[i] - '0');
  }
  return number;
}

bool has(std::string_view text, std::size_t at, char c) noexcept {
  return at < text.size() && text[at] == c;
}

constexpr unsigned kDaysBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

/// "V1121 19:33:36.710000 8124 torch/_dynamo/utils.py:2350] ", also with "[rank0]:" in front.
std::optional<Prefix> read_prefix(std::string_view line) noexcept {
  std::size_t at = 0;
  if (line.starts_with("[rank")) {
    at = line.find("]:");
    if (at == npos) return std::nullopt;
    at += 2;
  }
  if (at >= line.size() || std::string_view("VDIWEC").find(line[at]) == npos) return std::nullopt;
  const auto month = digits(line, at + 1, 2);
  const auto day = digits(line, at + 3, 2);
  const auto hour = digits(line, at + 6, 2);
  const auto minute = digits(line, at + 9, 2);
  const auto second = digits(line, at + 12, 2);
  const auto micros = digits(line, at + 15, 6);
  const bool signs = has(line, at + 5, ' ') && has(line, at + 8, ':') && has(line, at + 11, ':') &&
                     has(line, at + 14, '.') && has(line, at + 21, ' ');
  if (!signs || !month || !day || !hour || !minute || !second || !micros) return std::nullopt;
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31) return std::nullopt;
  Prefix read;
  const std::int64_t days = std::int64_t{kDaysBefore[*month - 1]} + *day - 1;
  read.time_ns = ((days * 24 + *hour) * 60 + *minute) * 60 + *second;
  read.time_ns = (read.time_ns * 1'000'000 + *micros) * 1000;
  const std::size_t writer = line.find_first_not_of(' ', at + 22);
  if (writer == npos) return std::nullopt;
  std::uint64_t id = 0;
  const auto got = std::from_chars(line.data() + writer, line.data() + line.size(), id);
  if (got.ec != std::errc{}) return std::nullopt;
  read.writer = static_cast<std::uint32_t>(id);  // some versions write a pthread_t: its low half
  const std::size_t end = line.find("] ", writer);
  if (end == npos) return std::nullopt;
  read.bytes = end + 2;
  return read;
}

/// The sum that a record gives of its payload; "" where it has none, nullopt: it has one and says
/// no sum that is known.
std::optional<std::string_view> sum_of(std::string_view metadata) noexcept {
  constexpr std::string_view kKey = "\"has_payload\": ";
  const std::size_t at = metadata.rfind(kKey);
  if (at == npos) return "";
  const std::string_view value = metadata.substr(at + kKey.size());
  const std::string_view sum = value.substr(0, 34);
  const bool known = sum.size() == 34 && sum.front() == '"' && sum.back() == '"' &&
                     sum.substr(1, 32).find_first_not_of("0123456789abcdef") == npos;
  if (!known) return std::nullopt;
  return sum.substr(1, 32);
}

}  // namespace

std::string_view to_string(LogSkip skip) noexcept {
  static constexpr std::string_view kNames[] = {"not_a_record", "orphan_payload", "damaged_payload",
                                                "too_large"};
  static_assert(std::size(kNames) == kLogSkips);
  return kNames[static_cast<std::size_t>(skip)];
}

std::uint64_t LogCounts::skipped_total() const noexcept {
  return std::accumulate(skipped.begin(), skipped.end(), std::uint64_t{0});
}

void LogReader::append(std::string& to, std::string_view bytes) {
  if (to.size() + bytes.size() > TraceTap::kBytesMax) {
    line_cut_ = true;
    return;
  }
  to += bytes;
}

bool LogReader::feed(std::string_view bytes) {
  while (!bytes.empty() && !over_) {
    const std::size_t end = bytes.find('\n');
    if (end == npos) {
      append(line_, bytes);
      break;
    }
    if (line_.empty() && !line_cut_) {
      over_ = !take_line(bytes.substr(0, end));
    } else {
      append(line_, bytes.substr(0, end));
      over_ = !take_line(line_);
    }
    line_.clear();
    line_cut_ = false;
    bytes.remove_prefix(end + 1);
  }
  return !over_;
}

void LogReader::finish() {
  if (over_) return;
  if (!line_.empty() || line_cut_) over_ = !take_line(line_);
  if (!over_) (void)give();
  over_ = true;
}

/// False: the reading is over.
bool LogReader::take_line(std::string_view line) {
  ++counts_.lines;
  if (line.starts_with('\t')) {
    if (!open_) {
      skip(LogSkip::orphan_payload);
      return true;
    }
    too_large_ |= line_cut_ || payload_.size() + line.size() > TraceTap::kBytesMax;
    if (too_large_) return true;
    if (has_lines_) payload_ += '\n';
    payload_ += line.substr(1);
    has_lines_ = true;
    return true;
  }
  if (!give()) return false;
  const auto prefix = read_prefix(line);
  if (!prefix) {
    skip(LogSkip::not_a_record);
    return true;
  }
  ++counts_.records;
  open_ = true;
  too_large_ = line_cut_;
  metadata_ = line.substr(prefix->bytes);
  time_ns_ = prefix->time_ns;
  writer_ = prefix->writer;
  return true;
}

/// Gives the tap the record at hand, if there is one.
bool LogReader::give() {
  if (!open_) return true;
  open_ = false;
  const bool has_lines = std::exchange(has_lines_, false);
  bool go_on = true;
  const auto sum = sum_of(metadata_);
  if (!sum || !sum->empty()) ++counts_.with_payload;
  if (too_large_) {
    skip(LogSkip::too_large);
  } else if (sum && (sum->empty() ? has_lines : *sum != md5_hex(payload_))) {
    skip(LogSkip::damaged_payload);
  } else {
    go_on = !before_ || before_(time_ns_);
    if (go_on) {
      ++counts_.given;
      tap_->record(metadata_, payload_, time_ns_, writer_);
    }
  }
  payload_.clear();
  return go_on;
}

}  // namespace ringmain::compile
