#include "adapters/sources/replay/kineto_parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <simdjson.h>
#include <string>

namespace ringmain::replay {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kPaddingBytes = 64;
static_assert(simdjson::SIMDJSON_PADDING <= kPaddingBytes);
constexpr std::int64_t kNsMax = std::int64_t{1} << 62;  // the difference of two times still fits

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A token as simdjson gives it, without the white space after it.
std::string_view trimmed(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

bool is_string(std::string_view token) {
  return token.size() >= 2 && token.front() == '"';
}

std::string_view without_quotes(std::string_view token) {
  return is_string(token) ? token.substr(1, token.size() - 2) : token;
}

template <class T>
struct Key {
  std::string_view name;
  T KinetoArgs::*field;
};

constexpr Key<std::int64_t> kIntegers[] = {
    {"cbid", &KinetoArgs::cbid},
    {"device", &KinetoArgs::device},
    {"context", &KinetoArgs::context},
    {"stream", &KinetoArgs::stream},
    {"bytes", &KinetoArgs::bytes},
    {"Bytes", &KinetoArgs::bytes},
    {"Addr", &KinetoArgs::address},
    {"Rank", &KinetoArgs::rank},
    {"Seq", &KinetoArgs::sequence},
    {"Src Rank", &KinetoArgs::source_rank},
    {"Dst Rank", &KinetoArgs::target_rank},
    {"Device Id", &KinetoArgs::device_id},
    {"Group size", &KinetoArgs::group_size},
    {"correlation", &KinetoArgs::correlation},
    {"External id", &KinetoArgs::external_id},
    {"external id", &KinetoArgs::external_id},
    {"Device Type", &KinetoArgs::device_type},
    {"In msg nelems", &KinetoArgs::in_elements},
    {"Out msg nelems", &KinetoArgs::out_elements},
    {"wait_on_stream", &KinetoArgs::wait_on_stream},
    {"Total Reserved", &KinetoArgs::reserved_bytes},
    {"Total Allocated", &KinetoArgs::allocated_bytes},
    {"wait_on_cuda_event_id", &KinetoArgs::wait_on_event},
    {"wait_on_cuda_event_record_corr_id", &KinetoArgs::wait_on_correlation},
};
constexpr Key<std::string_view> kTexts[] = {
    {"name", &KinetoArgs::value},
    {"labels", &KinetoArgs::value},
    {"sort_index", &KinetoArgs::value},
    {"dtype", &KinetoArgs::dtype},
    {"Collective name", &KinetoArgs::collective},
    {"Process Group Name", &KinetoArgs::group},
};
constexpr Key<std::string_view> kArrays[] = {
    {"Input Dims", &KinetoArgs::input_dims},
    {"Input type", &KinetoArgs::input_types},
};
constexpr std::string_view kAsynchronous = "Is asynchronized op";

template <class T, std::size_t N>
const Key<T>* find(const Key<T> (&keys)[N], std::string_view name) {
  const auto* const found = std::find_if(std::begin(keys), std::end(keys),
                                         [name](const Key<T>& key) { return key.name == name; });
  return found == std::end(keys) ? nullptr : found;
}

/// The characters between a key's quotes. A key with escapes is none that anybody asks for.
std::string_view key_text(const ondemand::field& field, std::string_view record) {
  const char* const start = field.key().raw();
  const auto left = static_cast<std::size_t>(record.data() + record.size() - start);
  const auto* const quote = static_cast<const char*>(std::memchr(start, '"', left));
  return {start, quote == nullptr ? 0 : static_cast<std::size_t>(quote - start)};
}

/// A string's characters, a number's as written, "" for null, booleans, arrays and objects.
Skip read_text(ondemand::value& value, std::string_view token, std::string_view& text) {
  text = {};
  if (is_string(token)) {
    text = without_quotes(token);
    if (std::memchr(text.data(), '\\', text.size()) == nullptr) return Skip::none;
    return value.get_string().get(text) == simdjson::SUCCESS ? Skip::none : Skip::bad_json;
  }
  if (!token.empty() && (is_digit(token.front()) || token.front() == '-')) text = token;
  return Skip::none;
}

Skip read_label(ondemand::value& value, std::string_view token, KinetoLabel& label) {
  const Skip skip = read_text(value, token, label.text);
  label.numeric = !is_string(token) && parse_integer(label.text, label.number);
  return skip;
}

Skip skip_of(simdjson::error_code error) {
  return error == simdjson::UTF8_ERROR ? Skip::bad_utf8 : Skip::bad_json;
}

/// What "ts" or "dur" held.
enum class Time : std::uint8_t { absent, good, bad };

Time read_time(std::string_view token, std::int64_t& ns) {
  if (token == "null") return Time::absent;
  return parse_time_ns(without_quotes(token), ns) ? Time::good : Time::bad;
}

bool phase_exists(char phase) {
  return phase != '\0' &&
         std::string_view("XBEiICMstfbneSTFPNODVvRc(),").find(phase) != std::string_view::npos;
}

}  // namespace

bool parse_time_ns(std::string_view text, std::int64_t& ns) noexcept {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() || !is_digit(digits.front())) return false;
  constexpr std::uint64_t kMicrosecondsMax = static_cast<std::uint64_t>(kNsMax) / 1000 - 1;
  std::uint64_t whole = 0;
  std::uint64_t thousandths = 0;
  std::size_t at = 0;
  for (; at < digits.size() && is_digit(digits[at]); ++at) {
    whole = whole * 10 + static_cast<std::uint64_t>(digits[at] - '0');
    if (whole > kMicrosecondsMax) return false;
  }
  if (at < digits.size() && digits[at] == '.') {
    int places = 0;
    for (++at; at < digits.size() && is_digit(digits[at]); ++at, ++places) {
      const auto digit = static_cast<std::uint64_t>(digits[at] - '0');
      if (places < 3) thousandths = thousandths * 10 + digit;
      if (places == 3 && digit >= 5) ++thousandths;
    }
    for (; places < 3; ++places) thousandths *= 10;
  }
  if (at < digits.size()) {  // an exponent, or nonsense
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return false;
    if (!(std::abs(value) < static_cast<double>(kMicrosecondsMax))) return false;
    ns = std::llround(value * 1000);
    return true;
  }
  const auto magnitude = static_cast<std::int64_t>(whole * 1000 + thousandths);
  ns = negative ? -magnitude : magnitude;
  return true;
}

bool parse_integer(std::string_view text, std::int64_t& value) noexcept {
  text = without_quotes(text);
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint64_t bits = 0;
    const auto hex = std::from_chars(text.data() + 2, end, bits, 16);
    value = static_cast<std::int64_t>(bits);
    return hex.ec == std::errc{} && hex.ptr == end;
  }
  const auto whole = std::from_chars(text.data(), end, value);
  if (whole.ec == std::errc{} && whole.ptr == end) return value != KinetoArgs::kAbsent;
  std::uint64_t large = 0;  // a handle or an address in the upper half
  const auto upper = std::from_chars(text.data(), end, large);
  if (upper.ec == std::errc{} && upper.ptr == end) {
    value = static_cast<std::int64_t>(large);
    return value != KinetoArgs::kAbsent;
  }
  double real = 0;
  const auto fraction = std::from_chars(text.data(), end, real);
  if (fraction.ec != std::errc{} || fraction.ptr != end) return false;
  if (!(std::abs(real) < 9e15) || real != std::trunc(real)) return false;
  value = static_cast<std::int64_t>(real);
  return true;
}

KinetoRanks parse_distributed_info(std::string_view json) {
  KinetoRanks ranks;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(std::string(json)).get(object) != simdjson::SUCCESS) return ranks;
  const auto read = [&object](std::string_view key, std::int64_t& to) {
    std::int64_t value = 0;
    if (object[key].get(value) == simdjson::SUCCESS && value >= 0 && value < (1 << 30)) to = value;
  };
  read("rank", ranks.rank);
  read("world_size", ranks.world_size);
  read("pg_count", ranks.groups);
  return ranks;
}

struct RecordParser::Core {
  ondemand::parser parser;

  Skip parse_args(ondemand::object args, std::string_view text, KinetoRecord& record);
  Skip parse_arg(std::string_view key, ondemand::value& value, KinetoRecord& record);
  Skip parse_members(ondemand::object object, std::string_view text, KinetoRecord& record);

  Time ts = Time::absent;
  Time duration = Time::absent;
};

RecordParser::RecordParser() : core_(std::make_unique<Core>()) {}
RecordParser::RecordParser(RecordParser&&) noexcept = default;
RecordParser& RecordParser::operator=(RecordParser&&) noexcept = default;
RecordParser::~RecordParser() = default;

Skip RecordParser::Core::parse_arg(std::string_view key, ondemand::value& value,
                                   KinetoRecord& record) {
  const std::string_view token = trimmed(value.raw_json_token());
  if (token.empty()) return Skip::bad_json;
  if (const auto* integer = find(kIntegers, key)) {
    std::int64_t number = 0;
    if (parse_integer(token, number)) record.args.*(integer->field) = number;
  } else if (const auto* words = find(kTexts, key)) {
    return read_text(value, token, record.args.*(words->field));
  } else if (const auto* array = find(kArrays, key)) {
    ondemand::array elements;
    if (token.front() != '[') return Skip::none;
    if (const auto error = value.get_array().get(elements)) return skip_of(error);
    if (const auto error = elements.raw_json().get(record.args.*(array->field)))
      return skip_of(error);
  } else if (key == kAsynchronous) {
    record.args.asynchronous = token == "true" || token == "\"true\"" || token == "1";
  }
  return Skip::none;
}

Skip RecordParser::Core::parse_args(ondemand::object args, std::string_view text,
                                    KinetoRecord& record) {
  for (auto member : args) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return skip_of(error);
    const std::string_view key = key_text(field, text);
    ondemand::value value = field.value();
    if (record.phase == 'C' || record.phase == '\0') {
      const std::string_view token = trimmed(value.raw_json_token());
      double number = 0;
      if (!token.empty() && (is_digit(token.front()) || token.front() == '-') &&
          std::from_chars(token.data(), token.data() + token.size(), number).ec == std::errc{}) {
        if (record.series.size() == kSeriesMax) return Skip::too_large;
        record.series.push_back({key, number});
      }
    }
    if (const Skip skip = parse_arg(key, value, record); skip != Skip::none) return skip;
  }
  return Skip::none;
}

Skip RecordParser::Core::parse_members(ondemand::object object, std::string_view text,
                                       KinetoRecord& record) {
  for (auto member : object) {
    ondemand::field field;
    if (const auto error = std::move(member).get(field)) return skip_of(error);
    const std::string_view key = key_text(field, text);
    ondemand::value value = field.value();
    const std::string_view token = trimmed(value.raw_json_token());
    if (token.empty()) return Skip::bad_json;
    Skip skip = Skip::none;
    if (key == "ph") {
      const std::string_view letters = without_quotes(token);
      record.phase = is_string(token) && letters.size() == 1 ? letters.front() : '\0';
    } else if (key == "ts") {
      ts = read_time(token, record.ts_ns);
    } else if (key == "dur") {
      duration = read_time(token, record.duration_ns);
    } else if (key == "name") {
      skip = read_text(value, token, record.name);
    } else if (key == "cat") {
      skip = read_text(value, token, record.category);
    } else if (key == "pid") {
      skip = read_label(value, token, record.process);
    } else if (key == "tid") {
      skip = read_label(value, token, record.thread);
    } else if (key == "id") {
      skip = read_label(value, token, record.id);
    } else if (key == "args" && token.front() == '{') {
      ondemand::object args;
      if (const auto error = value.get_object().get(args)) return skip_of(error);
      record.args = {};
      record.series.clear();
      skip = parse_args(args, text, record);
    }
    if (skip != Skip::none) return skip;
  }
  return Skip::none;
}

Skip RecordParser::parse(std::string_view text, KinetoRecord& record) {
  record.phase = '\0';
  record.name = record.category = {};
  record.process = record.thread = record.id = {};
  record.ts_ns = record.duration_ns = 0;
  record.args = {};
  record.series.clear();
  core_->ts = core_->duration = Time::absent;

  ondemand::document document;
  ondemand::object object;
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + kPaddingBytes);
  if (const auto error = core_->parser.iterate(padded).get(document)) return skip_of(error);
  if (const auto error = document.get_object().get(object)) return skip_of(error);
  if (const Skip skip = core_->parse_members(object, text, record); skip != Skip::none) return skip;

  if (record.phase == '\0') return Skip::no_phase;
  if (!phase_exists(record.phase)) return Skip::unknown_phase;
  if (record.phase != 'C') record.series.clear();
  if (core_->ts == Time::bad || (core_->ts == Time::absent && record.phase != 'M')) {
    return Skip::bad_timestamp;
  }
  record.has_time = core_->ts == Time::good;
  if (record.phase != 'X')
    record.duration_ns = 0;
  else if (core_->duration == Time::bad)
    return Skip::bad_duration;
  else if (record.duration_ns < 0)
    return Skip::negative_duration;
  else if (record.ts_ns > kNsMax - record.duration_ns)
    return Skip::bad_duration;
  return Skip::none;
}

}  // namespace ringmain::replay
