#include "cli/summary_line.hpp"

#include <algorithm>
#include <utility>

#include "cli/line_keys.hpp"

namespace ringmain::cli {
namespace {

constexpr std::array<std::string_view, 8> kOperationKeys = {"op",       "func", "name", "message",
                                                            "function", "kind", "api",  "what"};

/// `_ns` after one of these words is a point in time, or a limit, and no duration.
constexpr std::array<std::string_view, 16> kNoDurations = {
    "time",  "began", "begin", "ended", "end",      "first",  "last",    "since",
    "armed", "start", "at",    "now",   "deadline", "budget", "started", "timeout"};

/// Of bus.loss, and of what sources say of themselves. Each of the latter is a count since the
/// source began.
constexpr std::array<std::string_view, 4> kLost = {"full", "no_memory", "too_deep", "evicted"};
constexpr std::array<std::string_view, 6> kSourceLost = {"refused",    "unkept",      "no_room",
                                                         "no_context", "lost_starts", "unfollowed"};

template <class All>
bool is_one_of(const All& all, std::string_view key) {
  return std::find(all.begin(), all.end(), key) != all.end();
}

bool is_measure(std::string_view key) {
  if (key == "bytes" || key.ends_with("_bytes")) return true;
  if (!key.ends_with("_ns")) return false;
  key.remove_suffix(3);
  const std::size_t last = key.rfind('_');
  return !is_one_of(kNoDurations, last == key.npos ? key : key.substr(last + 1));
}

/// Gathers a line's own fields. What they mean is only known at its end, for `channel` may come
/// late.
class Gatherer final : public OtherKeys {
 public:
  error_code hear(std::string_view key, json::value value) override {
    json::json_type type{};
    if (const auto error = value.type().get(type)) return error;
    if (type == json::json_type::number) return hear_number(key, value);
    if (type == json::json_type::string) return hear_text(key, value);
    return check_json(value, 1);
  }

  void tell(SummaryLine& into) const {
    into.publisher = publisher_;
    into.sequence = sequence_;
    into.op_id = op_id_;
    into.step = in_step_;
    into.measures = measures_;
    if (operation_ < kOperationKeys.size()) into.operation = operation_is_;
    if (into.channel == "train.step") {
      if (step_) into.step = step_;
      into.operation = !phase_.empty() ? phase_ : micro_batch_ > 0 ? "micro-batch" : "step";
    } else if (into.channel == "bus.loss") {
      into.losses = losses_;
      into.lost_of = lost_of_;
    } else if (into.channel == "cuda.source" || into.channel == "nccl.plugin") {
      into.losses = source_losses_;
      into.lost_of = into.channel;
    }
  }

 private:
  error_code hear_number(std::string_view key, json::value value) {
    std::optional<std::int64_t> whole;
    if (const auto error = read_whole(value, whole)) return error;
    if (!whole || *whole < 0) return simdjson::SUCCESS;
    const auto number = static_cast<std::uint64_t>(*whole);
    if (key == "publisher") return keep(publisher_, number);
    if (key == "sequence") return keep(sequence_, number);
    if (key == "op_id") return keep(op_id_, number);
    if (key == "in_step") return keep(in_step_, number);
    if (key == "step") return keep(step_, number);
    if (key == "micro_batch") micro_batch_ = number;
    if (number == 0) return simdjson::SUCCESS;
    if (is_measure(key)) measures_.add(key, number);
    if (is_one_of(kLost, key)) losses_.add(key, number);
    if (is_one_of(kSourceLost, key)) source_losses_.add(key, number);
    return simdjson::SUCCESS;
  }
  static error_code keep(std::optional<std::uint64_t>& at, std::uint64_t number) {
    if (!at) at = number;
    return simdjson::SUCCESS;
  }

  error_code hear_text(std::string_view key, json::value value) {
    std::optional<std::string_view> text;
    if (const auto error = read_text(value, text)) return error;
    if (!text || text->empty()) return simdjson::SUCCESS;
    if (key == "phase") phase_ = *text;
    if (key == "event_channel") lost_of_ = *text;
    const auto place = static_cast<std::size_t>(
        std::find(kOperationKeys.begin(), kOperationKeys.end(), key) - kOperationKeys.begin());
    if (place < operation_) {
      operation_ = place;
      operation_is_ = *text;
    }
    return simdjson::SUCCESS;
  }

  std::optional<std::uint64_t> publisher_, sequence_, op_id_, in_step_, step_;
  std::uint64_t micro_batch_ = 0;
  LineFigures measures_, losses_, source_losses_;
  std::string_view phase_, lost_of_, operation_is_;
  std::size_t operation_ = kOperationKeys.size();
};

LineProcess process_of(const ProcessKeys& keys) {
  // A launcher itself, and a program without one, says 0 and has none.
  const bool has_rank = keys.launcher != "none";
  return {has_rank ? keys.rank : std::nullopt, keys.pid, keys.host.value_or(""),
          keys.program.value_or(""), keys.job.value_or("")};
}

}  // namespace

std::span<const std::string_view> operation_keys() noexcept {
  return kOperationKeys;
}

struct SummaryReader::Parser {
  json::parser json;
};

SummaryReader::SummaryReader() : parser_(std::make_unique<Parser>()) {}
SummaryReader::~SummaryReader() = default;

std::size_t SummaryReader::padding() noexcept {
  return simdjson::SIMDJSON_PADDING;
}

bool SummaryReader::read(std::string_view line, SummaryLine& into) {
  LineKeys keys;
  Gatherer fields;
  json::document document;
  const simdjson::padded_string_view padded(line.data(), line.size(), line.size() + padding());
  error_code error = parser_->json.iterate(padded).get(document);
  if (!error) error = read_line_keys(document, keys, fields);
  into = {};
  fault_ = error ? "no JSON object, as an event's line is" : event_of(keys, into.event);
  if (!fault_.empty()) return false;
  into.channel = *keys.channel_is;
  if (keys.process) into.process = process_of(keys.process_is);
  fields.tell(into);
  return true;
}

}  // namespace ringmain::cli
