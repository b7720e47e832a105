// What each kind of record, and each artifact, becomes.
#include <algorithm>
#include <iterator>

#include "adapters/sources/compile/dynamo/interpreter.hpp"
#include "adapters/sources/compile/dynamo/text.hpp"
#include "adapters/sources/compile/ids.hpp"

namespace ringmain::compile {
namespace {

constexpr TraceKind kKinds[] = {
    {"str", &Interpreter::on_file, false},
    {"dynamo_start", &Interpreter::on_start, false},
    {"compilation_metrics", &Interpreter::on_metrics, false},
    {"bwd_compilation_metrics", &Interpreter::on_metrics, false},
    {"artifact", &Interpreter::on_artifact, false},
    {"chromium_event", &Interpreter::on_phase, true},
    {"dynamo_output_graph", &Interpreter::on_graph, true},
    {"dynamo_cpp_guards_str", &Interpreter::on_guards, true},
    {"create_symbol", &Interpreter::on_symbol, false},
    {"create_unbacked_symbol", &Interpreter::on_unbacked, false},
    {"symbolic_shape_specialization", &Interpreter::on_specialised, false},
    {"guard_added", &Interpreter::on_guarded, false},
    {"guard_added_fast", &Interpreter::on_guarded, false},
};
constexpr TraceKind kArtifacts[] = {
    {"dynamo_graph_break_reason", &Interpreter::on_break, true},
    {"recompile_reasons", &Interpreter::on_recompile, true},
    {"fx_graph_cache_hit", &Interpreter::on_cache, true},
    {"fx_graph_cache_miss", &Interpreter::on_cache, true},
    {"fx_graph_cache_bypass", &Interpreter::on_cache, true},
    {"aotautograd_cache_hit", &Interpreter::on_cache, true},
    {"aotautograd_cache_miss", &Interpreter::on_cache, true},
    {"aotautograd_cache_bypass", &Interpreter::on_cache, true},
};

const TraceKind* find(std::span<const TraceKind> among, std::string_view name) noexcept {
  const auto found = std::find_if(among.begin(), among.end(),
                                  [name](const TraceKind& kind) { return kind.name == name; });
  return found == among.end() ? nullptr : &*found;
}

template <std::size_t N>
std::array<std::string_view, N> names_of(const TraceKind (&kinds)[N]) noexcept {
  std::array<std::string_view, N> names;
  for (std::size_t i = 0; i < N; ++i) names[i] = kinds[i].name;
  return names;
}

/// Where functions of that name stand in that stack: PyTorch may leave out the frame itself.
std::vector<std::uint32_t> lines_of(Name function, Name file, std::string_view stack) {
  const ResumeText rest = read_resume(function.view());
  const std::string_view plain = rest.function.empty() ? function.view() : rest.function;
  std::vector<std::uint32_t> lines;
  while (!stack.empty()) {
    const PlaceText place = take_place(stack);
    const bool own = place.function == function.view() || place.function == plain;
    if (own && place.line > 0 && place.file == file.view()) lines.push_back(place.line);
  }
  return lines;
}

/// What ringmain.torch adds to a start: the arguments of torch.compile().
void read_options(const Json& options, Start& start) noexcept {
  if (!options) return;
  start.backend = options.name("backend");
  const std::string_view dynamic = options.text("dynamic");
  start.dynamic = dynamic == "automatic" ? Dynamic::automatic
                  : dynamic == "on"      ? Dynamic::on
                  : dynamic == "off"     ? Dynamic::off
                                         : Dynamic::unknown;
  const std::string_view fullgraph = options.text("fullgraph");
  start.fullgraph = fullgraph == "yes"  ? Answer::yes
                    : fullgraph == "no" ? Answer::no
                                        : Answer::unknown;
}

/// From the settings that PyTorch puts beside its metrics: `dynamic` sets two of them.
Dynamic dynamic_of(std::string_view settings) noexcept {
  const auto is = [settings](std::string_view setting) {
    return settings.find(setting) != settings.npos;
  };
  if (is("\"assume_static_by_default\": false")) return Dynamic::on;
  if (is("\"automatic_dynamic_shapes\": true")) return Dynamic::automatic;
  return is("\"automatic_dynamic_shapes\": false") ? Dynamic::off : Dynamic::unknown;
}

TraceTap::Want want_of(const TraceKind* kind) noexcept {
  if (kind == nullptr) return TraceTap::Want::nothing;
  return kind->payload ? TraceTap::Want::payload : TraceTap::Want::metadata;
}

}  // namespace

const TraceKind* find_kind(std::string_view name) noexcept {
  return find(kKinds, name);
}
const TraceKind* find_artifact(std::string_view name) noexcept {
  static constexpr TraceKind kBytecode{"", &Interpreter::on_bytecode, true};
  if (name.ends_with("_ORIGINAL_BYTECODE") || name.ends_with("_MODIFIED_BYTECODE"))
    return &kBytecode;
  return find(kArtifacts, name);
}
TraceTap::Want TraceTap::wants(std::string_view kind, std::string_view artifact) noexcept {
  return want_of(kind == "artifact" ? find_artifact(artifact) : find_kind(kind));
}
std::span<const std::string_view> TraceTap::wanted() noexcept {
  static const auto names = names_of(kKinds);
  return names;
}
std::span<const std::string_view> TraceTap::wanted_artifacts() noexcept {
  static const auto names = names_of(kArtifacts);
  return names;
}

Json Interpreter::payload(const Here& here) noexcept {
  const std::string_view text = here.record.payload;
  simdjson::dom::element parsed;
  if (text.empty() || text.size() > TraceTap::kBytesMax) return {};
  if (payload_parser_.parse(text.data(), text.size(), true).get(parsed) != simdjson::SUCCESS) {
    return {};
  }
  return Json(parsed);
}

/// {"str": ["path", 3]}
Interpreter::Read Interpreter::on_file(Here& here) {
  std::string_view path;
  std::int64_t number = 0;
  simdjson::dom::array pair;
  if (here.value.get(pair) != simdjson::SUCCESS || pair.at(0).get(path) != simdjson::SUCCESS ||
      pair.at(1).get(number) != simdjson::SUCCESS) {
    return Read::bad_record;
  }
  file_named(number, path);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_start(Here& here) {
  const Json fields = here.fields();
  if (!fields) return Read::bad_record;
  begins(here, Epochs::Sign::start);
  Start start;
  static_cast<Id&>(start) = here.id;
  start.trigger = Trigger::dynamo;
  const Json frame = fields.last("stack");
  start.function = frame.name("name");
  start.file = file_of(frame);
  start.line = frame.integer<std::uint32_t>("line");
  if (const GraphBreak* const resumed = breaks_.resumes(start)) {
    start.resumes_break = resumed->number;
    here.publish(*resumed);
  }
  read_options(fields.object("ringmain"), start);
  open_from_trace(here, start);
  if (const OpenCompile* const open = open_.find(here.id, Trigger::dynamo)) {
    publish_stack(here, open->start.span, fields);
  }
  return Read::mapped;
}

Interpreter::Read Interpreter::on_metrics(Here& here) {
  const Json fields = here.fields();
  if (!fields) return Read::bad_record;
  if (here.id.frame < 0) {
    here.id = parse_id(fields.text("compile_id")).value_or(Id{});
    here.id.reset = epochs_.current();
  }
  Metrics said;
  static_cast<Id&>(said) = here.id;
  said.backward = here.kind == "bwd_compilation_metrics" || !fields.boolean("is_forward", true);
  said.took_ns = fields.scaled("duration_us", 1000);
  said.dynamo_ns = fields.scaled("dynamo_cumulative_compile_time_us", 1000);
  said.aot_autograd_ns = fields.scaled("aot_autograd_cumulative_compile_time_us", 1000);
  said.inductor_ns = fields.scaled("inductor_cumulative_compile_time_us", 1000);
  said.code_gen_ns = fields.scaled("inductor_code_gen_cumulative_compile_time_us", 1000);
  said.triton_ns = fields.scaled("triton_compile_time_us", 1000);
  said.before_restart_ns = fields.scaled("dynamo_compile_time_before_restart_us", 1000);
  said.logging_ns = fields.scaled("structured_logging_overhead_us", 1000);
  said.guards = fields.integer<std::int32_t>("guard_count", -1);
  said.shape_guards = fields.integer<std::int32_t>("shape_env_guard_count", -1);
  said.graph_ops = fields.integer<std::int32_t>("graph_op_count", -1);
  said.graph_nodes = fields.integer<std::int32_t>("graph_node_count", -1);
  said.graph_inputs = fields.integer<std::int32_t>("graph_input_count", -1);
  said.cached = fields.integer<std::int32_t>("cache_size", -1);
  said.cached_accumulated = fields.integer<std::int32_t>("accumulated_cache_size", -1);
  said.restarts = fields.length("restart_reasons");
  said.line = fields.integer<std::uint32_t>("co_firstlineno");
  said.file = fields.name("co_filename");
  said.function = fields.name("co_name");
  said.exception = fields.name("fail_type");
  said.reason = fields.name("fail_reason");
  said.dynamic = dynamic_of(fields.text("dynamo_config"));
  here.publish(said);
  publish_limit(here, fields);
  end_from_trace(here, said.backward ? Trigger::lazy_backward : Trigger::dynamo, fields);
  return Read::mapped;
}

void Interpreter::publish_limit(Here& here, const Json& metrics) {
  constexpr std::string_view kKey = "\"recompile_limit\": ";
  const std::string_view settings = metrics.text("dynamo_config");
  if (const std::size_t at = settings.find(kKey); at != settings.npos) {
    std::string_view digits = settings.substr(at + kKey.size());
    const std::int32_t limit = detail::take_number(digits);
    if (limit > 0) recompile_limit_ = static_cast<std::uint32_t>(limit);
  }
  const LimitText limit = read_limit(metrics.text("fail_reason"));
  if (!limit.is) return;
  Limit said;
  static_cast<Id&>(said) = here.id;
  said.what = limit.accumulated ? Limit::What::accumulated : Limit::What::recompile;
  said.limit = limit.limit;
  said.reason = metrics.name("fail_reason");
  here.publish(said);
}

Interpreter::Read Interpreter::on_artifact(Here& here) {
  const Json fields = here.fields();
  const std::string_view name = fields.text("name");
  if (name.empty()) return Read::bad_record;
  std::string key(name.substr(0, 128));
  if (artifacts_.size() >= 512 && !artifacts_.contains(key)) key = "(others)";
  ++artifacts_[key];
  here.kind = name;
  const TraceKind* const artifact = find_artifact(name);
  return artifact == nullptr ? Read::passed : (this->*artifact->handle)(here);
}

Interpreter::Read Interpreter::on_graph(Here& here) {
  const GraphText graph = read_graph(here.record.payload);
  Graph said;
  static_cast<Id&>(said) = here.id;
  said.ops = graph.ops;
  said.inputs = graph.inputs;
  said.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(here.record.payload.size(), ~0u));
  here.publish(said);
  Code code;
  code.what = Code::What::graph;
  publish_code(here, code);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_guards(Here& here) {
  const GuardsText guards = read_guards(here.record.payload);
  Guard said;
  static_cast<Id&>(said) = here.id;
  said.count = guards.count;
  said.check_ns = guards.check_ns;
  here.publish(said);
  publish_guards(here);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_break(Here& here) {
  if (here.record.payload.empty()) return Read::bad_payload;
  const BreakText text = read_break(here.record.payload);
  GraphBreak said;
  static_cast<Id&>(said) = here.id;
  said.line = text.line;
  said.file = Name(text.file);
  said.code = Name(text.code);
  said.reason = Name(text.reason);
  said.explained = Name(text.explained);
  Name frame_file = said.file;
  if (const OpenCompile* const frame = open_.find(here.id, Trigger::dynamo)) {
    said.function = frame->start.function;
    if (frame->start.file != Name{}) frame_file = frame->start.file;
  }
  breaks_.broke(said, frame_file, lines_of(said.function, frame_file, text.stack));
  here.publish(said);
  publish_stack(here, StackFrame::Of::graph_break, said.number, text.stack);
  return Read::mapped;
}

/// The payload is one reason as it is, or several as JSON: one for each cached code, newest first.
Interpreter::Read Interpreter::on_recompile(Here& here) {
  const std::string_view text = here.record.payload;
  if (text.empty() || text.size() > TraceTap::kBytesMax) return Read::bad_payload;
  Recompile said;
  static_cast<Id&>(said) = here.id;
  said.limit = recompile_limit_;
  const auto failed = [&](std::string_view reason) {
    while (!reason.empty() && reason.back() == '\n') reason.remove_suffix(1);
    const ReasonText read = read_reason(reason);
    Guard guard;
    static_cast<Id&>(guard) = here.id;
    guard.what = Guard::What::failed;
    guard.of_frame = read.frame;
    guard.of_recompile = read.recompile;
    guard.text = Name(read.condition);
    guard.line = read.place.line;
    guard.file = Name(read.place.file);
    guard.function = Name(read.place.function);
    if (said.reasons++ == 0) {
      said.reason = Name(reason);
      Start cached;
      Id of = here.id;
      of.frame = read.frame;
      of.recompile = read.recompile;
      place_like_forward(of, cached);
      said.line = cached.line;
      said.file = cached.file;
      said.function = cached.function;
    }
    here.publish(guard);
    publish_stack(here, StackFrame::Of::guard, 0, read.stack);
  };
  simdjson::dom::element parsed;
  simdjson::dom::array reasons;
  if (text.starts_with('[') &&
      payload_parser_.parse(text.data(), text.size(), true).get(parsed) == simdjson::SUCCESS &&
      parsed.get(reasons) == simdjson::SUCCESS) {
    for (const auto element : reasons) {
      std::string_view reason;
      if (element.get(reason) == simdjson::SUCCESS) failed(reason);
    }
  } else {
    failed(text);
  }
  here.publish(said);
  return Read::mapped;
}

Interpreter::Read Interpreter::on_cache(Here& here) {
  const Json fields = payload(here);
  if (!fields) return Read::bad_payload;
  Cache said;
  static_cast<Id&>(said) = here.id;
  said.layer =
      here.kind.starts_with("fx_graph") ? Cache::Layer::fx_graph : Cache::Layer::aot_autograd;
  said.what = here.kind.ends_with("_hit")    ? Cache::What::hit
              : here.kind.ends_with("_miss") ? Cache::What::miss
                                             : Cache::What::bypass;
  said.key = fields.text("key");
  said.saved_ns = fields.scaled("time_saved_ns", 1, fields.scaled("time_saved_ms", 1e6));
  said.reason = fields.name("cache_bypass_reason");
  if (said.reason == Name{}) said.reason = fields.name("cache_status_detailed");
  here.publish(said);
  return Read::mapped;
}

}  // namespace ringmain::compile
