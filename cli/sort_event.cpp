#include "cli/sort_event.hpp"

#include "cli/line_keys.hpp"

namespace ringmain::cli {
namespace {

/// A line's own fields decide nothing here.
class OnlyChecked final : public OtherKeys {
 public:
  error_code hear(std::string_view, json::value value) override { return check_json(value, 1); }
};

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
  LineKeys keys;
  OnlyChecked others;
  json::document document;
  const simdjson::padded_string_view padded(line.data(), line.size(), line.size() + padding());
  error_code error = parser_->json.iterate(padded).get(document);
  if (!error) error = read_line_keys(document, keys, others);
  LineEvent event;
  fault_ = error ? "no JSON object, as an event's line is" : event_of(keys, event);
  return fault_.empty() ? std::optional(event) : std::nullopt;
}

}  // namespace ringmain::cli
