#include "cli/json_value.hpp"

#include <algorithm>
#include <charconv>

namespace ringmain::cli {
namespace {

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

error_code check_object(json::value& value, unsigned depth) {
  json::object object;
  if (const auto error = value.get_object().get(object)) return error;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value member;
    if (const auto error = field.value().get(member)) return error;
    if (const auto error = check_json(member, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

error_code check_array(json::value& value, unsigned depth) {
  json::array array;
  if (const auto error = value.get_array().get(array)) return error;
  for (auto element : array) {
    json::value member;
    if (const auto error = element.get(member)) return error;
    if (const auto error = check_json(member, depth + 1)) return error;
  }
  return simdjson::SUCCESS;
}

}  // namespace

error_code check_json(json::value value, unsigned depth) {
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

error_code read_whole(json::value value, std::optional<std::int64_t>& into) {
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != json::json_type::number) return check_json(value, 1);
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
  if (type != json::json_type::string) return check_json(value, 1);
  std::string_view text;
  if (const auto error = value.get_string().get(text)) return error;
  into = text;
  return simdjson::SUCCESS;
}

}  // namespace ringmain::cli
