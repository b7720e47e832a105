#include "cli/sort_event.hpp"

#include <algorithm>
#include <charconv>
#include <simdjson.h>
#include <utility>

namespace ringmain::cli {
namespace {

namespace json = simdjson::ondemand;
using simdjson::error_code;

constexpr unsigned kDepthMax = 64;  // a sink's own lines have two

/// A number as RFC 8259 has it, of any size: simdjson refuses whole numbers above 2^64, which a
/// float field may well hold.
bool is_number(std::string_view text) {
  const auto digits = [&text] {
    const std::size_t n = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(n);
    return n;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool zero = text.starts_with('0');
  const std::size_t before = digits();
  if (before == 0 || (zero && before > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (digits() == 0) return false;
  }
  return text.empty();
}

std::string_view number_text(json::value& value) {
  const std::string_view token = value.raw_json_token();
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

error_code check(json::value value, unsigned depth);

error_code check_object(json::value& value, unsigned depth) {
  json::object object;
  if (const auto error = value.get_object().get(object)) return error;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value member;
    if (const auto error = field.value().get(member)) return error;
    if (const auto error = check(member, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

error_code check_array(json::value& value, unsigned depth) {
  json::array array;
  if (const auto error = value.get_array().get(array)) return error;
  for (auto element : array) {
    json::value member;
    if (const auto error = element.get(member)) return error;
    if (const auto error = check(member, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

/// Reads all of a value, because simdjson does not check what it is not asked for.
error_code check(json::value value, unsigned depth) {
  if (depth > kDepthMax) return simdjson::DEPTH_ERROR;
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  switch (type) {
    case json::json_type::object:
      return check_object(value, depth);
    case json::json_type::array:
      return check_array(value, depth);
    case json::json_type::string:
      return value.get_string().error();
    case json::json_type::boolean:
      return value.get_bool().error();
    case json::json_type::null: {
      bool null = false;
      const auto error = value.is_null().get(null);
      return error || null ? error : simdjson::N_ATOM_ERROR;
    }
    case json::json_type::number:
      return is_number(number_text(value)) ? simdjson::SUCCESS : simdjson::NUMBER_ERROR;
  }
  return simdjson::TAPE_ERROR;
}

/// A whole number of 64 bits; nullopt for any other value, which has been checked then.
error_code read_whole(json::value value, std::optional<std::int64_t>& into) {
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != json::json_type::number) return check(value, 1);
  const std::string_view text = number_text(value);
  if (!is_number(text)) return simdjson::NUMBER_ERROR;
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc{} && read.ptr == text.data() + text.size()) into = number;
  return simdjson::SUCCESS;
}

error_code read_text(json::value value, std::optional<std::string_view>& into) {
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != json::json_type::string) return check(value, 1);
  std::string_view text;
  if (const auto error = value.get_string().get(text)) return error;
  into = text;
  return simdjson::SUCCESS;
}

struct Clocks {
  std::optional<std::int64_t> monotonic, realtime;
};

error_code read_clocks(json::value value, Clocks& into) {
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != json::json_type::object) return check(value, 1);
  json::object object;
  if (const auto error = value.get_object().get(object)) return error;
  bool monotonic = false, realtime = false;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value member;
    if (const auto error = field.value().get(member)) return error;
    error_code error = simdjson::SUCCESS;
    if (key == "monotonic_ns" && !std::exchange(monotonic, true)) {
      error = read_whole(member, into.monotonic);
    } else if (key == "realtime_ns" && !std::exchange(realtime, true)) {
      error = read_whole(member, into.realtime);
    } else {
      error = check(member, 2);
    }
    if (error) return error;
  }
  return simdjson::SUCCESS;
}

/// If a key comes twice the first one counts.
struct Keys {
  bool channel = false, time = false, origin = false, process = false;
  std::optional<std::string_view> channel_is, origin_is;
  std::optional<std::int64_t> time_is;
  Clocks clocks;
};

error_code read_keys(json::document& document, Keys& into) {
  json::object object;
  if (const auto error = document.get_object().get(object)) return error;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value value;
    if (const auto error = field.value().get(value)) return error;
    error_code error = simdjson::SUCCESS;
    if (key == "channel" && !std::exchange(into.channel, true)) {
      error = read_text(value, into.channel_is);
    } else if (key == "time_ns" && !std::exchange(into.time, true)) {
      error = read_whole(value, into.time_is);
    } else if (key == "origin" && !std::exchange(into.origin, true)) {
      error = read_text(value, into.origin_is);
    } else if (key == "origin_process" && !std::exchange(into.process, true)) {
      error = read_clocks(value, into.clocks);
    } else {
      error = check(value, 1);
    }
    if (error) return error;
  }
  const bool over = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return over ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
}

/// 16 hexadecimal digits.
bool read_origin(const std::optional<std::string_view>& text, std::uint64_t& into) {
  if (!text || text->size() != 16 || text->find_first_not_of("0123456789abcdef") != text->npos) {
    return false;
  }
  std::from_chars(text->data(), text->data() + text->size(), into, 16);
  return true;
}

/// "" and fills `into`; else says what is wrong with the line.
std::string_view event_of(const Keys& keys, LineEvent& into) {
  if (!keys.channel_is) return "no event: \"channel\" is missing, or no text";
  if (!keys.time_is) return "no event: \"time_ns\" is missing, or no whole number of 64 bits";
  if (!read_origin(keys.origin_is, into.origin)) {
    return "no event: \"origin\" is missing, or not 16 hexadecimal digits";
  }
  into.time_ns = *keys.time_is;
  if (!keys.process) return "";
  if (!keys.clocks.monotonic || !keys.clocks.realtime) {
    return "no event: \"origin_process\" lacks monotonic_ns or realtime_ns, or they are no whole "
           "numbers";
  }
  std::int64_t between = 0;
  if (__builtin_sub_overflow(*keys.clocks.realtime, *keys.clocks.monotonic, &between)) {
    return "no event: the two clocks in \"origin_process\" are too far apart";
  }
  into.to_realtime_ns = between;
  return "";
}

}  // namespace

struct LineReader::Parser {
  json::parser json;
};

LineReader::LineReader() : parser_(std::make_unique<Parser>()) {}
LineReader::~LineReader() = default;

std::size_t LineReader::padding() noexcept {
  return simdjson::SIMDJSON_PADDING;
}

std::optional<LineEvent> LineReader::read(std::string_view line) {
  fault_ = "";
  Keys keys;
  json::document document;
  const simdjson::padded_string_view padded(line.data(), line.size(), line.size() + padding());
  error_code error = parser_->json.iterate(padded).get(document);
  if (!error) error = read_keys(document, keys);
  LineEvent event;
  fault_ = error ? "no JSON object, as an event's line is" : event_of(keys, event);
  return fault_.empty() ? std::optional(event) : std::nullopt;
}

}  // namespace ringmain::cli
