#include "cli/line_keys.hpp"

#include <charconv>
#include <utility>

namespace ringmain::cli {
namespace {

/// `seen`: which keys came already.
error_code read_process_key(std::string_view key, json::value value, ProcessKeys& into,
                            unsigned& seen) {
  const auto is = [&](std::string_view name, unsigned bit) {
    return key == name && (std::exchange(seen, seen | bit) & bit) == 0;
  };
  if (is("monotonic_ns", 1)) return read_whole(value, into.monotonic);
  if (is("realtime_ns", 2)) return read_whole(value, into.realtime);
  if (is("rank", 4)) return read_whole(value, into.rank);
  if (is("pid", 8)) return read_whole(value, into.pid);
  if (is("host", 16)) return read_text(value, into.host);
  if (is("program", 32)) return read_text(value, into.program);
  if (is("job", 64)) return read_text(value, into.job);
  if (is("launcher", 128)) return read_text(value, into.launcher);
  return check_json(value, 2);
}

error_code read_process(json::value value, ProcessKeys& into) {
  json::json_type type{};
  if (const auto error = value.type().get(type)) return error;
  if (type != json::json_type::object) return check_json(value, 1);
  json::object object;
  if (const auto error = value.get_object().get(object)) return error;
  unsigned seen = 0;
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return error;
    json::value member;
    if (const auto error = field.value().get(member)) return error;
    if (const auto error = read_process_key(key, member, into, seen)) return error;
  }
  return simdjson::SUCCESS;
}

/// 16 hexadecimal digits.
bool read_origin(const std::optional<std::string_view>& text, std::uint64_t& into) {
  if (!text || text->size() != 16 || text->find_first_not_of("0123456789abcdef") != text->npos) {
    return false;
  }
  std::from_chars(text->data(), text->data() + text->size(), into, 16);
  return true;
}

}  // namespace

error_code read_line_keys(json::document& line, LineKeys& into, OtherKeys& others) {
  json::object object;
  if (const auto error = line.get_object().get(object)) return error;
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
      error = read_process(value, into.process_is);
    } else {
      error = others.hear(key, value);
    }
    if (error) return error;
  }
  const bool over = line.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return over ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
}

std::string_view event_of(const LineKeys& keys, LineEvent& into) {
  if (!keys.channel_is) return "no event: \"channel\" is missing, or no text";
  if (!keys.time_is) return "no event: \"time_ns\" is missing, or no whole number of 64 bits";
  if (!read_origin(keys.origin_is, into.origin)) {
    return "no event: \"origin\" is missing, or not 16 hexadecimal digits";
  }
  into.time_ns = *keys.time_is;
  if (!keys.process) return "";
  if (!keys.process_is.monotonic || !keys.process_is.realtime) {
    return "no event: \"origin_process\" lacks monotonic_ns or realtime_ns, or they are no whole "
           "numbers";
  }
  std::int64_t between = 0;
  if (__builtin_sub_overflow(*keys.process_is.realtime, *keys.process_is.monotonic, &between)) {
    return "no event: the two clocks in \"origin_process\" are too far apart";
  }
  into.to_realtime_ns = between;
  return "";
}

}  // namespace ringmain::cli
