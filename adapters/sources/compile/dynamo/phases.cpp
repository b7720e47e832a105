// Phases, and sizes that become symbols.
#include <cmath>

#include "adapters/sources/compile/dynamo/interpreter.hpp"
#include "adapters/sources/compile/ids.hpp"

namespace ringmain::compile {
namespace {

constexpr std::string_view kFrame = "dynamo";
constexpr std::string_view kBackward = "entire_backward_compile";
constexpr std::string_view kBackend = "backend_compile";

std::int64_t time_of_event(const Json& event) noexcept {
  double ts_us = 0;  // since the epoch: as nanoseconds a double would be 256 of them too coarse
  if (!event || event.object()["ts"].get(ts_us) != simdjson::SUCCESS) return 0;
  if (!(std::fabs(ts_us) < 4e15)) return 0;
  const double whole_us = std::floor(ts_us);
  return static_cast<std::int64_t>(whole_us) * 1000 + std::llround((ts_us - whole_us) * 1000);
}

}  // namespace

Interpreter::Read Interpreter::on_phase(Here& here) {
  const Json event = payload(here);
  if (!event) return Read::bad_payload;
  const std::string_view letter = event.text("ph");
  const std::string_view name = event.text("name");
  if (name.empty()) return Read::bad_payload;
  learn_clock(here.record.time_ns, time_of_event(event));
  if (recorded_) here.time_ns = time_of(here.record);
  const Json arguments = event.object("args");
  if (here.id.frame < 0) {
    here.id = parse_id(arguments.text("compile_id")).value_or(Id{});
    here.id.reset = epochs_.current();
  }
  if (letter == "B") {
    if (name == kFrame) begins(here, Epochs::Sign::phase);
    publish_phase(here, event, Edge::begin);
    if (name == kBackward) {
      Start start;
      start.trigger = Trigger::lazy_backward;
      open_from_trace(here, start);
    }
  } else if (letter == "E") {
    publish_phase(here, event, Edge::end);
  } else if (letter == "i" || letter == "I") {
    publish_phase(here, event, Edge::instant);
    if (name == "automatic_dynamic") publish_automatic(here, arguments);
  } else {
    return Read::passed;  // counters and the like
  }
  return Read::mapped;
}

void Interpreter::publish_phase(Here& here, const Json& event, Edge edge) {
  Phase said;
  static_cast<Id&>(said) = here.id;
  said.edge = edge;
  said.name = event.name("name");
  said.what = event.object("args").name("fn_name");
  const std::int64_t now_ns = time_of_event(event);
  if (phases_.size() >= kThreadsMost && !phases_.contains(here.record.thread)) phases_.clear();
  auto& stack = phases_[here.record.thread];
  if (edge == Edge::end) {
    auto begun = stack.size();
    while (begun > 0 && stack[begun - 1].name != said.name) --begun;
    if (begun > 0) {  // phases inside it that did not end have ended with it
      said.took_ns = now_ns - stack[begun - 1].began_ns;
      stack.resize(begun - 1);
    }
  }
  said.depth = static_cast<std::uint32_t>(stack.size());
  if (edge == Edge::begin && stack.size() < kPhasesMost) stack.push_back({said.name, now_ns});
  here.publish(said);
  if (said.name.view() != kBackend || edge == Edge::instant) return;
  Backend backend;
  static_cast<Id&>(backend) = here.id;
  backend.what = edge == Edge::begin ? Backend::What::begin : Backend::What::end;
  backend.took_ns = said.took_ns;
  if (const OpenCompile* const frame = open_.find(here.id, Trigger::dynamo)) {
    backend.name = frame->start.backend;
  }
  here.publish(backend);
}

void Interpreter::publish_automatic(Here& here, const Json& arguments) {
  DynamicShape said;
  static_cast<Id&>(said) = here.id;
  said.what = DynamicShape::What::automatic;
  said.source = arguments.name("name");
  said.dimension = arguments.integer<std::int32_t>("dim_changed", -1);
  said.value = arguments.name("new");
  said.reason = arguments.name("reason");
  here.publish(said);
}

Interpreter::Read Interpreter::on_symbol(Here& here) {
  const Json fields = here.fields();
  if (!fields) return Read::bad_record;
  DynamicShape said;
  static_cast<Id&>(said) = here.id;
  said.symbol = fields.name("symbol");
  said.value = fields.name("val");
  said.range = fields.name("vr");
  said.source = fields.name("source");
  const Json frame = fields.last("user_stack");
  said.file = file_of(frame);
  said.line = frame.integer<std::uint32_t>("line");
  if (here.kind == "create_unbacked_symbol") said.what = DynamicShape::What::unbacked;
  here.publish(said);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_unbacked(Here& here) {
  return on_symbol(here);
}

Interpreter::Read Interpreter::on_specialised(Here& here) {
  const Json fields = here.fields();
  if (!fields) return Read::bad_record;
  DynamicShape said;
  static_cast<Id&>(said) = here.id;
  said.what = DynamicShape::What::specialised;
  said.symbol = fields.name("symbol");
  said.value = fields.name("value");
  said.reason = fields.name("reason");
  simdjson::dom::array sources;
  std::string_view source;
  if (fields.object()["sources"].get(sources) == simdjson::SUCCESS &&
      sources.at(0).get(source) == simdjson::SUCCESS) {
    said.source = Name(source);
  }
  const Json frame = fields.last("user_stack");
  said.file = file_of(frame);
  said.line = frame.integer<std::uint32_t>("line");
  here.publish(said);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_guarded(Here& here) {
  const Json fields = here.fields();
  if (!fields) return Read::bad_record;
  DynamicShape said;
  static_cast<Id&>(said) = here.id;
  said.what = DynamicShape::What::guarded;
  said.value = fields.name("expr");
  const Json frame = fields.last("user_stack");
  said.file = file_of(frame);
  said.line = frame.integer<std::uint32_t>("line");
  here.publish(said);
  return Read::mapped;
}

}  // namespace ringmain::compile
