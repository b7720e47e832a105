// The compile events as channels know them: names of channels and fields, units. Their meaning is
// in compile_structs.hpp.
#pragma once
#include "compile_structs.hpp"

namespace ringmain::compile {
namespace detail {

constexpr const char* kTriggers =
    "unknown,dynamo,lazy_backward,triton_autotuning,cudagraph_recording";
constexpr const char* kOutcomes = "unknown,completed,failed,cancelled";
constexpr const char* kDynamics = "unknown,automatic,on,off";
constexpr const char* kAnswers = "unknown,no,yes";
constexpr const char* kEdges = "begin,end,instant";

/// An event's description with the Id's fields in front.
template <class E, class... F>
constexpr auto with_id(std::string_view name, F... fields) {
  return event(name, field<&E::frame>("frame"), field<&E::recompile>("recompile"),
               field<&E::attempt>("attempt"), field<&E::autograd>("autograd"),
               field<&E::reset>("reset"), fields...);
}
template <class E, class... F>
constexpr auto with_span(std::string_view name, F... fields) {
  return with_id<E>(name, field<&E::trigger>("trigger", kTriggers),
                    field<&E::span>("span", Unit::id), field<&E::pair>("pair", Unit::id),
                    field<&E::outermost>("outermost"), field<&E::depth>("depth", Unit::count),
                    fields..., field<&E::function>("function"), field<&E::file>("file"),
                    field<&E::line>("line"), field<&E::thread>("thread", Unit::id),
                    field<&E::text>("text"));
}

}  // namespace detail

constexpr auto describe(EventOf<Start>) {
  return detail::with_span<Start>(
      "compile.start", field<&Start::resumes_break>("resumes_break", Unit::id),
      field<&Start::backend>("backend"), field<&Start::dynamic>("dynamic", detail::kDynamics),
      field<&Start::fullgraph>("fullgraph", detail::kAnswers));
}
constexpr auto describe(EventOf<End>) {
  using E = End;
  return detail::with_span<E>("compile.end", field<&E::outcome>("outcome", detail::kOutcomes),
                              field<&E::took_ns>("took_ns", Unit::ns),
                              field<&E::exception>("exception"), field<&E::reason>("reason"));
}
constexpr auto describe(EventOf<Graph>) {
  using E = Graph;
  return detail::with_id<E>("compile.graph", field<&E::ops>("ops", Unit::count),
                            field<&E::inputs>("inputs", Unit::count),
                            field<&E::bytes>("bytes", Unit::bytes));
}
constexpr auto describe(EventOf<GraphBreak>) {
  using E = GraphBreak;
  return detail::with_id<E>(
      "compile.graph_break", field<&E::what>("what", "broke,resumed"),
      field<&E::number>("number", Unit::id), field<&E::reason>("reason"),
      field<&E::explained>("explained"), field<&E::code>("code"), field<&E::file>("file"),
      field<&E::line>("line"), field<&E::function>("function"),
      field<&E::resume_frame>("resume_frame"), field<&E::resume_recompile>("resume_recompile"));
}
constexpr auto describe(EventOf<Guard>) {
  using E = Guard;
  return detail::with_id<E>(
      "compile.guard", field<&E::what>("what", "installed,failed,hit,miss"),
      field<&E::count>("count", Unit::count), field<&E::check_ns>("check_ns", Unit::ns),
      field<&E::of_frame>("of_frame"), field<&E::of_recompile>("of_recompile"),
      field<&E::text>("text"), field<&E::function>("function"), field<&E::file>("file"),
      field<&E::line>("line"));
}
constexpr auto describe(EventOf<Recompile>) {
  using E = Recompile;
  return detail::with_id<E>("compile.recompile", field<&E::reason>("reason"),
                            field<&E::reasons>("reasons", Unit::count),
                            field<&E::limit>("limit", Unit::count), field<&E::function>("function"),
                            field<&E::file>("file"), field<&E::line>("line"));
}
constexpr auto describe(EventOf<DynamicShape>) {
  using E = DynamicShape;
  return detail::with_id<E>(
      "compile.dynamic_shape",
      field<&E::what>("what", "created,unbacked,specialised,marked,automatic,guarded"),
      field<&E::symbol>("symbol"), field<&E::value>("value"), field<&E::range>("range"),
      field<&E::source>("source"), field<&E::dimension>("dimension"), field<&E::reason>("reason"),
      field<&E::file>("file"), field<&E::line>("line"));
}
constexpr auto describe(EventOf<Cache>) {
  using E = Cache;
  return detail::with_id<E>("compile.cache",
                            field<&E::layer>("layer", "other,fx_graph,aot_autograd"),
                            field<&E::what>("what", "hit,miss,bypass"), field<&E::key>("key"),
                            field<&E::saved_ns>("saved_ns", Unit::ns), field<&E::reason>("reason"));
}
constexpr auto describe(EventOf<Backend>) {
  using E = Backend;
  return detail::with_id<E>(
      "compile.backend", field<&E::what>("what", "begin,end,registered,removed"),
      field<&E::name>("name"), field<&E::tags>("tags"),
      field<&E::outcome>("outcome", detail::kOutcomes), field<&E::took_ns>("took_ns", Unit::ns));
}
constexpr auto describe(EventOf<Phase>) {
  using E = Phase;
  return detail::with_id<E>("compile.phase", field<&E::edge>("edge", detail::kEdges),
                            field<&E::name>("name"), field<&E::what>("what"),
                            field<&E::depth>("depth", Unit::count),
                            field<&E::took_ns>("took_ns", Unit::ns));
}
constexpr auto describe(EventOf<Limit>) {
  using E = Limit;
  return detail::with_id<E>("compile.limit", field<&E::what>("what", "recompile,accumulated,other"),
                            field<&E::limit>("limit", Unit::count), field<&E::reason>("reason"));
}
constexpr auto describe(EventOf<Reset>) {
  return detail::with_id<Reset>("compile.reset", field<&Reset::inferred>("inferred"));
}
constexpr auto describe(EventOf<Metrics>) {
  using E = Metrics;
  return detail::with_id<E>(
      "compile.metrics", field<&E::backward>("backward"), field<&E::took_ns>("took_ns", Unit::ns),
      field<&E::dynamo_ns>("dynamo_ns", Unit::ns),
      field<&E::aot_autograd_ns>("aot_autograd_ns", Unit::ns),
      field<&E::inductor_ns>("inductor_ns", Unit::ns),
      field<&E::code_gen_ns>("code_gen_ns", Unit::ns), field<&E::triton_ns>("triton_ns", Unit::ns),
      field<&E::before_restart_ns>("before_restart_ns", Unit::ns),
      field<&E::logging_ns>("logging_ns", Unit::ns), field<&E::guards>("guards", Unit::count),
      field<&E::shape_guards>("shape_guards", Unit::count),
      field<&E::graph_ops>("graph_ops", Unit::count),
      field<&E::graph_nodes>("graph_nodes", Unit::count),
      field<&E::graph_inputs>("graph_inputs", Unit::count),
      field<&E::cached>("cached", Unit::count),
      field<&E::cached_accumulated>("cached_accumulated", Unit::count),
      field<&E::restarts>("restarts", Unit::count), field<&E::function>("function"),
      field<&E::file>("file"), field<&E::line>("line"), field<&E::exception>("exception"),
      field<&E::reason>("reason"), field<&E::dynamic>("dynamic", detail::kDynamics));
}
constexpr auto describe(EventOf<StackFrame>) {
  using E = StackFrame;
  return detail::with_id<E>("compile.stack", field<&E::of>("of", "start,graph_break,guard"),
                            field<&E::number>("number", Unit::id), field<&E::index>("index"),
                            field<&E::count>("count", Unit::count), field<&E::function>("function"),
                            field<&E::file>("file"), field<&E::line>("line"),
                            field<&E::code>("code"));
}
constexpr auto describe(EventOf<InstalledGuard>) {
  using E = InstalledGuard;
  return detail::with_id<E>(
      "compile.detail.guard", field<&E::index>("index"), field<&E::kind>("kind"),
      field<&E::source>("source"), field<&E::check>("check"), field<&E::function>("function"),
      field<&E::file>("file"), field<&E::line>("line"), field<&E::code>("code"));
}
constexpr auto describe(EventOf<Code>) {
  using E = Code;
  return detail::with_id<E>(
      "compile.detail.code", field<&E::what>("what", "graph,original,modified"),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::bytecode>("bytecode", Unit::bytes),
      field<&E::instructions>("instructions", Unit::count), field<&E::part>("part"),
      field<&E::parts>("parts", Unit::count), field<&E::function>("function"),
      field<&E::text>("text"));
}
constexpr auto describe(EventOf<Wait>) {
  using E = Wait;
  return event("compile.wait", field<&E::edge>("edge", detail::kEdges), field<&E::key>("key"),
               field<&E::what>("what", "other,compile,process_group,store,device,file_lock"),
               field<&E::id>("id", Unit::id), field<&E::took_ns>("took_ns", Unit::ns),
               field<&E::thread>("thread", Unit::id));
}

/// `f.operator()<E>()` for each event that a structured trace can give.
template <class F>
constexpr void for_each_traced(F&& f) {
  [&f]<class... E>(EventOf<E>...) {
    (f.template operator()<E>(), ...);
  }(EventOf<Start>{}, EventOf<End>{}, EventOf<Graph>{}, EventOf<GraphBreak>{}, EventOf<Guard>{},
    EventOf<Recompile>{}, EventOf<DynamicShape>{}, EventOf<Cache>{}, EventOf<Backend>{},
    EventOf<Phase>{}, EventOf<Limit>{}, EventOf<Reset>{}, EventOf<Metrics>{}, EventOf<StackFrame>{},
    EventOf<InstalledGuard>{}, EventOf<Code>{});
}

}  // namespace ringmain::compile
