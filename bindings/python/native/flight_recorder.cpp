// The recorder of the last operations for Python. It records in C++: no hook of it takes the GIL.
#include <memory>
#include <nanobind/stl/string.h>
#include <optional>
#include <string>
#include <utility>

#include "bindings/python/native/communicator.hpp"
#include "bindings/python/native/gil.hpp"

#include "adapters/sources/collective/flight_recorder_hook.hpp"

namespace ringmain::python {
namespace {

using collective::Communicator;
using collective::FlightRecorderHook;

collective::FlightVariables variables_of(const std::string& word) {
  if (word == "torchcomms") return collective::FlightVariables::torchcomms;
  if (word == "torch") return collective::FlightVariables::torch;
  throw nb::value_error(("variables are 'torchcomms' or 'torch', and not '" + word + "'").c_str());
}

bool register_with(FlightRecorderHook& recorder, const Communicator& comm) {
  std::optional<Result<bool>> made;
  {
    const Released released;
    made.emplace(recorder.register_with_comm(comm));
  }
  if (!*made) throw nb::value_error((*made).error().message.c_str());
  return made->value();
}

std::string dump_file(const FlightRecorderHook& recorder, std::int64_t rank,
                      bool include_completed) {
  std::optional<Result<std::string>> made;
  {
    const Released released;
    made.emplace(recorder.dump_file(rank, include_completed));
  }
  if (*made) return made->value();
  PyErr_SetString(made->error().code == Error::Code::system ? PyExc_OSError : PyExc_ValueError,
                  made->error().message.c_str());
  throw nb::python_error();
}

std::string released_dump(const FlightRecorderHook& recorder, bool json, bool include_completed) {
  const Released released;
  return json ? recorder.dump_json(include_completed) : recorder.dump_pickle(include_completed);
}

}  // namespace

void bind_flight_recorder(nb::module_& m) {
  nb::class_<FlightRecorderHook>(m, "FlightRecorder", "Threads: any.")
      .def(
          "__init__",
          [](FlightRecorderHook* self, std::size_t max_entries, bool isolated,
             const std::string& variables, std::string backend, std::int64_t rank,
             bool dumps_on_abort, bool dumps_on_failure, int dumps_on_signal) {
            collective::FlightRecorderOptions options;
            options.max_entries = max_entries;
            options.isolated = isolated;
            options.variables = variables_of(variables);
            options.backend = std::move(backend);
            options.rank = rank;
            options.dumps_on_abort = dumps_on_abort;
            options.dumps_on_failure = dumps_on_failure;
            options.dumps_on_signal = dumps_on_signal;
            new (self) FlightRecorderHook(options);
          },
          nb::arg("max_entries"), nb::arg("isolated"), nb::arg("variables"), nb::arg("backend"),
          nb::arg("rank"), nb::arg("dumps_on_abort"), nb::arg("dumps_on_failure"),
          nb::arg("dumps_on_signal"))
      .def("register_with_comm", &register_with, nb::arg("comm"))
      .def("unregister",
           [](FlightRecorderHook& recorder) {
             const Released released;
             recorder.unregister();
           })
      .def(
          "dump_json",
          [](const FlightRecorderHook& recorder, bool include_completed) {
            return released_dump(recorder, true, include_completed);
          },
          nb::arg("include_completed"))
      .def(
          "dump_pickle",
          [](const FlightRecorderHook& recorder, bool include_completed) {
            const std::string made = released_dump(recorder, false, include_completed);
            return nb::bytes(made.data(), made.size());
          },
          nb::arg("include_completed"))
      .def("dump_file", &dump_file, nb::arg("rank"), nb::arg("include_completed"))
      .def("reset", &FlightRecorderHook::reset)
      .def("is_enabled", &FlightRecorderHook::is_enabled)
      .def("size", &FlightRecorderHook::size)
      .def_prop_ro("lost", &FlightRecorderHook::lost)
      .def_prop_ro("complaint", &FlightRecorderHook::complaint);
}

}  // namespace ringmain::python
