#include "adapters/flight/document_stream.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "adapters/flight/pickle_opcodes.hpp"
#include "adapters/formats/json_text.hpp"

namespace ringmain::flight {
namespace {

/// The text as it will be read: bytes that are no UTF-8 become U+FFFD.
template <class F>
void each_readable(std::string_view text, F take) {
  while (!text.empty()) {
    std::size_t good = 0, length = 0;
    while (good < text.size() && (length = formats::detail::utf8_length(text.substr(good))) != 0)
      good += length;
    if (good != 0) take(text.substr(0, good));
    if (good == text.size()) return;
    take(std::string_view("\xef\xbf\xbd"));
    text.remove_prefix(good + 1);
  }
}

std::size_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

}  // namespace

void PickleMemo::clear() noexcept {
  cells_.fill(0);
  texts_ = used_ = 0;
}

PickleMemo::Place PickleMemo::find(std::size_t bytes) noexcept {
  const std::string_view text(stage(), bytes);
  std::size_t cell = hash_of(text) % kCells;
  for (; cells_[cell] != 0; cell = (cell + 1) % kCells) {
    const Text& known = known_[cells_[cell] - 1u];
    if (text == std::string_view(bytes_.data() + known.from, known.bytes))
      return {cells_[cell] - 1u, false};
  }
  if (texts_ == kTexts || used_ + bytes > kBytes) return {};
  known_[texts_] = {used_, static_cast<std::uint32_t>(bytes)};
  used_ += static_cast<std::uint32_t>(bytes);
  cells_[cell] = static_cast<std::uint16_t>(++texts_);
  return {texts_ - 1, true};
}

DocumentStream::DocumentStream(ByteSink& to, DumpFormat format, PickleMemo& memo)
    : to_(to), memo_(memo), pickle_(format == DumpFormat::pickle) {
  if (!pickle_) return;
  memo_.clear();
  opcode(kProto);
  number(2, 1);
}

void DocumentStream::end() {
  if (pickle_) opcode(kStop);
  to_.flush();
}

void DocumentStream::before_value() {
  if (pickle_) return;
  if (!after_key_ && !first_) to_ += ',';
  after_key_ = first_ = false;
}

void DocumentStream::open(Value::Kind kind, bool is_empty) {
  before_value();
  const bool dict = kind == Value::Kind::dict;
  if (!pickle_) {
    to_ += dict ? '{' : '[';
    first_ = true;
  } else if (kind != Value::Kind::tuple) {
    opcode(dict ? kEmptyDict : kEmptyList);
    if (!is_empty) opcode(kMark);
  }
}

void DocumentStream::close(Value::Kind kind, bool is_empty) {
  const bool dict = kind == Value::Kind::dict;
  if (!pickle_) {
    to_ += dict ? '}' : ']';
    first_ = false;
  } else if (kind == Value::Kind::tuple) {
    opcode(kTuple2);
  } else if (!is_empty) {
    opcode(dict ? kSetItems : kAppends);
  }
}

void DocumentStream::key(std::string_view name) {
  text(name);
  if (pickle_) return;
  to_ += ':';
  after_key_ = true;
}

void DocumentStream::text(std::string_view text) {
  before_value();
  if (pickle_) return pickle_text(text);
  formats::append_json_string(to_, text);
}

void DocumentStream::pickle_text(std::string_view text) {
  std::size_t bytes = 0;
  char* const stage = memo_.stage();
  each_readable(text, [&](std::string_view piece) {
    if (bytes + piece.size() <= PickleMemo::kLongest) piece.copy(stage + bytes, piece.size());
    bytes += piece.size();
  });
  PickleMemo::Place place;
  if (bytes <= PickleMemo::kLongest) place = memo_.find(bytes);
  if (place.number != PickleMemo::kNowhere && !place.is_new)
    return memo(kBinGet, kLongBinGet, place.number);
  opcode(kBinUnicode);
  number(bytes, 4);
  each_readable(text, [this](std::string_view piece) { to_ += piece; });
  if (place.is_new) memo(kBinPut, kLongBinPut, place.number);
}

void DocumentStream::open_text(std::size_t bytes) {
  before_value();
  if (!pickle_) {
    to_ += '"';
    return;
  }
  opcode(kBinUnicode);
  number(bytes, 4);
}

void DocumentStream::close_text() {
  if (!pickle_) to_ += '"';
}

void DocumentStream::whole(std::int64_t number) {
  before_value();
  if (pickle_) return pickle_whole(number);
  formats::append_json_number(to_, number);
}

void DocumentStream::pickle_whole(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (bits <= 0xff) {
    opcode(kBinInt1);
    number(bits, 1);
  } else if (bits <= 0xffff) {
    opcode(kBinInt2);
    number(bits, 2);
  } else if (value == static_cast<std::int32_t>(value)) {
    opcode(kBinInt);
    number(bits, 4);
  } else {
    opcode(kLong1);
    number(8, 1);
    number(bits, 8);
  }
}

void DocumentStream::real(double value) {
  before_value();
  if (pickle_) {
    opcode(kBinFloat);
    return number(__builtin_bswap64(std::bit_cast<std::uint64_t>(value)), 8);
  }
  formats::append_json_number(to_, value);
  char digits[32];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  // A whole number's digits would be read back as a whole number.
  const std::string_view written(digits, static_cast<std::size_t>(end - digits));
  if (std::isfinite(value) && written.find_first_not_of("-0123456789") == written.npos) to_ += ".0";
}

void DocumentStream::boolean(bool is_true) {
  before_value();
  if (pickle_) return opcode(is_true ? kNewTrue : kNewFalse);
  to_ += is_true ? std::string_view("true") : std::string_view("false");
}

void DocumentStream::none() {
  before_value();
  if (pickle_) return opcode(kNone);
  to_ += std::string_view("null");
}

void DocumentStream::number(std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to_ += static_cast<char>(value >> (8 * i));
}

void DocumentStream::memo(std::uint8_t one_byte, std::uint8_t four_bytes, std::uint32_t place) {
  opcode(place <= 0xff ? one_byte : four_bytes);
  number(place, place <= 0xff ? 1 : 4);
}

}  // namespace ringmain::flight
