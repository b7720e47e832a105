// How does PyTorch's trace of its compiles reach the bus from Python's hooks? Through the tap of
// adapters/sources/compile, one record per call.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <string>

#include "bindings/python/native/bus.hpp"

#include "adapters/sources/compile/trace_tap.hpp"

namespace ringmain::python {
namespace {

using compile::TraceTap;

/// Larger records are read without the GIL: the tap takes no Python lock of its own.
constexpr std::size_t kReadWithGilBytesMax = std::size_t{64} << 10;

void record(TraceTap& tap, const nb::str& metadata, const nb::object& payload, std::int64_t time_ns,
            std::uint32_t thread) {
  nb::object held_metadata;
  nb::object held_payload;
  const std::string_view said = utf8_of(metadata.ptr(), held_metadata);
  std::string_view more;
  if (!payload.is_none()) {
    if (!PyUnicode_Check(payload.ptr())) throw nb::type_error("payload is a str, or None");
    more = utf8_of(payload.ptr(), held_payload);
  }
  if (said.size() + more.size() <= kReadWithGilBytesMax)
    return tap.record(said, more, time_ns, thread);
  const Released released;
  tap.record(said, more, time_ns, thread);
}

/// By torch._dynamo.callback.CallbackTrigger's number.
compile::Trigger trigger_of(std::uint32_t number) {
  using enum compile::Trigger;
  constexpr compile::Trigger kAll[] = {unknown, dynamo, lazy_backward, triton_autotuning,
                                       cudagraph_recording};
  return number < std::size(kAll) ? kAll[number] : unknown;
}

std::string_view wants(std::string_view kind, std::string_view artifact) {
  switch (TraceTap::wants(kind, artifact)) {
    case TraceTap::Want::nothing:
      break;
    case TraceTap::Want::metadata:
      return "metadata";
    case TraceTap::Want::payload:
      return "payload";
  }
  return "nothing";
}

std::vector<std::string> words(std::span<const std::string_view> all) {
  return {all.begin(), all.end()};
}

nb::dict counts(const TraceTap& tap) {
  const compile::TraceCounts c = tap.counts();
  nb::dict d;
  d["read"] = c.read;
  d["with_payload"] = c.with_payload;
  d["mapped"] = c.mapped;
  d["passed"] = c.passed;
  d["events"] = c.events;
  nb::dict skipped;
  for (std::size_t i = 0; i < compile::kTraceSkips; ++i)
    skipped[nb::cast(to_string(static_cast<compile::TraceSkip>(i)))] = c.skipped[i];
  d["skipped"] = skipped;
  return d;
}

}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<TraceTap>(m, "CompileTap",
                       "Turns the records of PyTorch's structured trace, and its callbacks, into "
                       "compile.* events. Threads: any.")
      .def(
          "__init__", [](TraceTap* self, NativeBus& bus) { new (self) TraceTap(bus.bus()); },
          nb::keep_alive<1, 2>(), nb::arg("bus"))
      .def("record", &record, nb::arg("metadata_json"), nb::arg("payload").none() = nb::none(),
           nb::arg("time_ns") = 0, nb::arg("thread") = 0)
      .def_static("wants", &wants, nb::arg("kind"), nb::arg("artifact") = "")
      .def_static("wanted", [] { return words(TraceTap::wanted()); })
      .def_static("wanted_artifacts", [] { return words(TraceTap::wanted_artifacts()); })
      .def(
          "started",
          [](TraceTap& tap, std::uint32_t trigger, std::string_view id) {
            return tap.started(trigger_of(trigger), id);
          },
          nb::arg("trigger"), nb::arg("id"))
      .def(
          "ended",
          [](TraceTap& tap, std::uint32_t trigger, std::string_view id) {
            tap.ended(trigger_of(trigger), id);
          },
          nb::arg("trigger"), nb::arg("id"))
      .def("guard_checked", &TraceTap::guard_checked, nb::arg("hit"))
      .def("reset", &TraceTap::reset)
      .def("file_named", &TraceTap::file_named, nb::arg("number"), nb::arg("path"))
      .def("finish", &TraceTap::finish)
      .def("counts", &counts)
      .def("kinds", &TraceTap::kinds)
      .def("artifacts", &TraceTap::artifacts);
}

}  // namespace ringmain::python
