#include "adapters/sources/replay/kineto_splitter.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace ringmain::replay {
namespace {

constexpr std::size_t kRoomBytes = std::size_t{256} << 10;

constexpr bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

constexpr std::array<bool, 256> kStructural = [] {
  std::array<bool, 256> table{};
  for (const char c : {'"', '{', '}', '[', ']'}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

struct Magic {
  std::string_view bytes;
  std::string_view what;
};
constexpr Magic kMagics[] = {
    {"<", "a web page or XML"},
    {"\x89PNG", "a picture"},
    {"PK", "a zip archive; unpack it first"},
    {"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"},
    {"\xfd"
     "7zXZ",
     "compressed with xz; unpack it first"},
    {"BZh", "compressed with bzip2; unpack it first"},
    {"\xff\xfe", "text in UTF-16; a trace is UTF-8"},
    {"\xfe\xff", "text in UTF-16; a trace is UTF-8"},
};

std::string printable(char c) {
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

}  // namespace

RecordSplitter::RecordSplitter(KinetoBytes bytes, const KinetoOptions& options)
    : bytes_(std::move(bytes)),
      record_bytes_max_(options.record_bytes_max()),
      idle_bytes_max_(options.idle_bytes_max),
      room_(kRoomBytes + kPadding) {}

void RecordSplitter::rewind() {
  bytes_.rewind();
  begin_ = at_ = end_ = 0;
  passed_ = idle_from_ = 0;
  stage_ = Stage::start;
  bare_array_ = found_array_ = comma_due_ = false;
  records_ = 0;
  members_.clear();
  failed_.reset();
}

Result<bool> RecordSplitter::next(RecordText& record) {
  record = {};
  while (!failed_) {
    switch (stage_) {
      case Stage::start:
        begin();
        break;
      case Stage::members:
        read_member();
        break;
      case Stage::records:
        if (read_element(record)) return true;
        break;
      case Stage::tail:
        if (look())
          fail_unexpected("the end of the file");
        else if (!failed_)
          stage_ = Stage::over;
        break;
      case Stage::over:
        return false;
    }
  }
  return *failed_;
}

bool RecordSplitter::more() {
  if (position() - idle_from_ > idle_bytes_max_) {
    return fail("has no record in the " + std::to_string(idle_bytes_max_) + " bytes before " +
                place() + ": it is not a trace.");
  }
  if (hold_bytes_max_ > 0 && at_ - begin_ > hold_bytes_max_) too_large_ = true;
  if (hold_bytes_max_ == 0 || too_large_) begin_ = at_;
  std::memmove(room_.data(), room_.data() + begin_, end_ - begin_);
  passed_ += begin_;
  at_ -= begin_;
  end_ -= begin_;
  begin_ = 0;
  if (end_ + kPadding == room_.size()) room_.resize(2 * room_.size());  // < twice hold_bytes_max_
  const auto got = bytes_.read({room_.data() + end_, room_.size() - kPadding - end_});
  if (!got) {
    failed_ = got.error();
    return false;
  }
  end_ += got.value();
  return got.value() > 0;
}

/// Moves to the next character that is not white space.
bool RecordSplitter::look() {
  hold_bytes_max_ = 0;
  for (;;) {
    while (at_ < end_ && is_space(room_[at_])) ++at_;
    if (at_ < end_) return true;
    if (!more()) return false;
  }
}

bool RecordSplitter::begin() {
  if (!look()) return failed_ ? false : fail("is empty: it holds no trace.");
  while (end_ - at_ < 4 && more()) {  // a pipe may give one byte at a time
  }
  if (failed_) return false;
  if (std::string_view(room_.data() + at_, end_ - at_).starts_with("\xef\xbb\xbf")) {
    at_ += 3;  // a byte order mark
    if (!look()) return failed_ ? false : fail("is empty: it holds no trace.");
  }
  bare_array_ = here() == '[';
  found_array_ = bare_array_;
  if (!bare_array_ && here() != '{') return fail_start();
  stage_ = bare_array_ ? Stage::records : Stage::members;
  ++at_;
  return true;
}

/// One `"key": value` of the top-level object, or its end.
bool RecordSplitter::read_member() {
  if (!look()) return fail_cut_short();
  if (here() == '}') {
    ++at_;
    if (!found_array_) return fail("is JSON but no trace: it has no \"traceEvents\".");
    stage_ = Stage::tail;
    return true;
  }
  if (here() != '"') return fail_unexpected("the name of a member");
  if (!scan_value(record_bytes_max_)) return false;
  std::string key = too_large_ ? std::string() : std::string(held().substr(1, held().size() - 2));
  if (!look()) return fail_cut_short();
  if (here() != ':') return fail_unexpected("':'");
  ++at_;
  if (!look()) return fail_cut_short();
  if (key == "traceEvents") {
    if (here() != '[') return fail_unexpected("'[' after \"traceEvents\"");
    ++at_;
    found_array_ = true;
    stage_ = Stage::records;
    return true;
  }
  if (!scan_value(record_bytes_max_)) return false;
  keep_member(std::move(key));
  return after_member();
}

/// After a member: a comma, or the object's end, which read_member() sees.
bool RecordSplitter::after_member() {
  if (!look()) return fail_cut_short();
  if (here() == ',')
    ++at_;
  else if (here() != '}')
    return fail_unexpected("',' or '}'");
  return true;
}

/// True with an element; false at the array's end, with the next stage set, or on failure.
bool RecordSplitter::read_element(RecordText& record) {
  if (!look()) return fail_cut_short();
  if (comma_due_ && here() == ',') {
    ++at_;
    comma_due_ = false;
    if (!look()) return fail_cut_short();
  }
  if (here() == ']') {  // also after a comma: some writers end that way
    ++at_;
    idle_from_ = position();
    stage_ = bare_array_ ? Stage::tail : Stage::members;
    if (!bare_array_) after_member();
    return false;
  }
  if (comma_due_) return fail_unexpected("',' or ']'");
  const bool object = here() == '{';
  if (!scan_value(record_bytes_max_)) return false;
  ++records_;
  comma_due_ = true;
  idle_from_ = position();
  if (!object)
    record.skip = Skip::not_an_object;
  else if (too_large_)
    record.skip = Skip::too_large;
  else if (deepest_ > kDepthMax)
    record.skip = Skip::too_deep;
  else
    record.text = held();
  return true;
}

/// Passes one value. held() is its text afterwards, unless too_large_.
bool RecordSplitter::scan_value(std::size_t hold_bytes_max) {
  hold_bytes_max_ = hold_bytes_max;
  too_large_ = false;
  depth_ = deepest_ = 0;
  begin_ = at_;
  const char first = here();
  bool whole = false;
  if (first == '"') {
    ++at_;
    whole = scan_string();
  } else if (first == '{' || first == '[') {
    whole = scan_brackets(first);
  } else if (first == '}' || first == ']' || first == ':' || first == ',') {
    return fail_unexpected("a value");
  } else {
    whole = scan_scalar();
  }
  if (at_ - begin_ > hold_bytes_max) too_large_ = true;
  return whole;
}

/// From after the opening quote to after the closing one.
bool RecordSplitter::scan_string() {
  for (;;) {
    const char* p = room_.data() + at_;
    const char* const end = room_.data() + end_;
    while (p != end && *p != '"' && *p != '\\') ++p;
    at_ = static_cast<std::size_t>(p - room_.data());
    if (p == end) {
      if (!more()) return fail_cut_short();
      continue;
    }
    const bool closing = *p == '"';
    ++at_;
    if (closing) return true;
    if (at_ == end_ && !more()) return fail_cut_short();
    ++at_;  // the escaped character
  }
}

/// A number, a literal, or nonsense: up to what may follow a value.
bool RecordSplitter::scan_scalar() {
  for (;;) {
    while (at_ < end_) {
      const char c = here();
      if (is_space(c) || c == ',' || kStructural[static_cast<unsigned char>(c)]) return true;
      ++at_;
    }
    if (!more()) return fail_cut_short();  // a value is never the last of a trace
  }
}

bool RecordSplitter::scan_brackets(char opening) {
  ++at_;
  depth_ = deepest_ = 1;
  is_array_[0] = opening == '[' ? 1 : 0;
  while (depth_ > 0) {
    const char* p = room_.data() + at_;
    const char* const end = room_.data() + end_;
    while (p != end && !kStructural[static_cast<unsigned char>(*p)]) ++p;
    at_ = static_cast<std::size_t>(p - room_.data());
    if (p == end) {
      if (!more()) return fail_cut_short();
      continue;
    }
    const char c = *p;
    if (c == '"') {
      ++at_;
      if (!scan_string()) return false;
    } else if (c == '{' || c == '[') {
      ++at_;
      if (depth_ < kDepthMax) {
        const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
        std::uint64_t& word = is_array_[depth_ / 64];
        word = c == '[' ? word | bit : word & ~bit;
      }
      if (++depth_ > deepest_) deepest_ = depth_;
    } else if (!close_bracket(c)) {
      return false;
    }
  }
  return true;
}

/// Brackets deeper than kDepthMax are only counted: their record is skipped.
bool RecordSplitter::close_bracket(char closing) {
  const std::size_t level = depth_ - 1;
  if (level < kDepthMax) {
    const bool array = ((is_array_[level / 64] >> (level % 64)) & 1) != 0;
    if (array != (closing == ']')) return fail_unexpected(array ? "']'" : "'}'");
  }
  ++at_;
  --depth_;
  return true;
}

void RecordSplitter::keep_member(std::string key) {
  if (too_large_ || (key != "baseTimeNanoseconds" && key != "distributedInfo")) return;
  for (TopMember& known : members_) {
    if (known.key == key) {
      known.text = held();  // of duplicates the last counts
      return;
    }
  }
  members_.push_back({std::move(key), std::string(held())});
}

std::string RecordSplitter::place() const {
  return "byte " + std::to_string(position()) +
         (bytes_.compressed() ? " of its unpacked text" : "") + " (record " +
         std::to_string(records_ + 1) + ")";
}

bool RecordSplitter::fail(std::string message) {
  if (!failed_) failed_ = Error{Error::Code::refused, bytes_.path() + " " + std::move(message)};
  return false;
}

bool RecordSplitter::fail_start() {
  const std::string_view start(room_.data() + at_, end_ - at_);
  for (const Magic& magic : kMagics) {
    if (start.starts_with(magic.bytes)) {
      return fail("is not a Chrome JSON trace: it is " + std::string(magic.what) + ".");
    }
  }
  return fail("is not a Chrome JSON trace: it begins with " + printable(start.front()) +
              " where '{' or '[' belongs.");
}

bool RecordSplitter::fail_cut_short() {
  return fail("ends at " + place() +
              " before the trace does: it was cut short; copy or record it "
              "again.");
}

bool RecordSplitter::fail_unexpected(std::string_view wanted) {
  return fail("is damaged at " + place() + ": " + printable(here()) + " stands where " +
              std::string(wanted) + " belongs; copy or record it again.");
}

}  // namespace ringmain::replay
