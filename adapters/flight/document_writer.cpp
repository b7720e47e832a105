#include "adapters/flight/document_writer.hpp"

#include <bit>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "adapters/flight/pickle_opcodes.hpp"
#include "adapters/formats/json_text.hpp"

namespace ringmain::flight {
namespace {

class PickleWriter {
 public:
  explicit PickleWriter(const Document& document) : document_(document) {
    opcode(kProto);
    number(2, 1);
    write(document.root);
    opcode(kStop);
  }
  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  void opcode(std::uint8_t code) { out_ += static_cast<char>(code); }
  void number(std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i));
  }

  void write(const Value& value) {
    switch (value.kind) {
      case Value::Kind::none:
        return opcode(kNone);
      case Value::Kind::boolean:
        return opcode(value.boolean ? kNewTrue : kNewFalse);
      case Value::Kind::whole:
        return write_whole(value.whole);
      case Value::Kind::real:
        opcode(kBinFloat);
        return number(__builtin_bswap64(std::bit_cast<std::uint64_t>(value.real)), 8);
      case Value::Kind::text:
        return write_text(value.str());
      default:
        return write_container(value);
    }
  }

  void write_whole(std::int64_t value) {
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

  void write_text(std::string_view given) {
    const std::string_view text = readable(given);
    const auto found = memo_.find(text);
    if (found != memo_.end()) return memo(kBinGet, kLongBinGet, found->second);
    opcode(kBinUnicode);
    number(text.size(), 4);
    out_ += text;
    const auto place = static_cast<std::uint32_t>(memo_.size());
    memo_.emplace(text, place);
    memo(kBinPut, kLongBinPut, place);
  }

  /// The text as it will be read: two that differ in what is no UTF-8 only are one.
  std::string_view readable(std::string_view text) {
    std::size_t good = 0;
    while (good < text.size()) {
      const std::size_t length = formats::detail::utf8_length(text.substr(good));
      if (length == 0) break;
      good += length;
    }
    if (good == text.size()) return text;
    std::string whole(text.substr(0, good));
    for (std::string_view rest = text.substr(good); !rest.empty();) {
      const std::size_t length = formats::detail::utf8_length(rest);
      whole.append(length == 0 ? std::string_view("\xef\xbf\xbd") : rest.substr(0, length));
      rest.remove_prefix(length == 0 ? 1 : length);
    }
    return mended_.emplace_back(std::move(whole));
  }

  void memo(std::uint8_t one_byte, std::uint8_t four_bytes, std::uint32_t place) {
    opcode(place <= 0xff ? one_byte : four_bytes);
    number(place, place <= 0xff ? 1 : 4);
  }

  void write_container(const Value& value) {
    const auto items = document_.items(value);
    if (value.kind == Value::Kind::tuple) {
      if (items.empty()) return opcode(kEmptyTuple);
      if (items.size() > 3) opcode(kMark);
      for (const Value& item : items) write(item);
      static constexpr std::uint8_t kBySize[] = {kTuple1, kTuple2, kTuple3};
      return opcode(items.size() > 3 ? std::uint8_t{kTuple} : kBySize[items.size() - 1]);
    }
    const bool list = value.kind == Value::Kind::list;
    opcode(list ? kEmptyList : kEmptyDict);
    if (items.empty()) return;
    opcode(kMark);
    for (const Value& item : items) write(item);
    opcode(list ? kAppends : kSetItems);
  }

  const Document& document_;
  std::string out_;
  std::unordered_map<std::string_view, std::uint32_t> memo_;
  std::deque<std::string> mended_;  // what the memo's views of texts that are no UTF-8 lie in
};

void append_key(std::string& to, const Value& key) {
  if (key.is_text()) return formats::append_json_string(to, key.str());
  formats::append_json_string(to, std::to_string(key.whole));
}

void append_real(std::string& to, double value) {
  const std::size_t from = to.size();
  formats::append_json_number(to, value);
  // A whole number's digits would be read back as a whole number.
  if (to.find_first_not_of("-0123456789", from) == to.npos) to += ".0";
}

void append_json(std::string& to, const Document& document, const Value& value) {
  const auto items = document.items(value);
  switch (value.kind) {
    case Value::Kind::none:
      to += "null";
      return;
    case Value::Kind::boolean:
      to += value.boolean ? "true" : "false";
      return;
    case Value::Kind::whole:
      return formats::append_json_number(to, value.whole);
    case Value::Kind::real:
      return append_real(to, value.real);
    case Value::Kind::text:
      return formats::append_json_string(to, value.str());
    case Value::Kind::dict:
      to += '{';
      for (std::size_t i = 0; i < items.size(); i += 2) {
        if (i > 0) to += ',';
        append_key(to, items[i]);
        to += ':';
        append_json(to, document, items[i + 1]);
      }
      to += '}';
      return;
    case Value::Kind::list:
    case Value::Kind::tuple:
      to += '[';
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) to += ',';
        append_json(to, document, items[i]);
      }
      to += ']';
      return;
  }
}

}  // namespace

std::string to_pickle(const Document& document) {
  return PickleWriter(document).take();
}

std::string to_json(const Document& document) {
  std::string made;
  append_json(made, document, document.root);
  return made;
}

}  // namespace ringmain::flight
