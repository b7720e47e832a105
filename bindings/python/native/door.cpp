// The process's door for Python. It answers in a thread of its own, which never takes the GIL.
#include "bus/door.hpp"

#include <nanobind/stl/string.h>
#include <optional>
#include <string>
#include <utility>

#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/gil.hpp"

namespace ringmain::python {
namespace {

Door open(const std::string& folder) {
  std::optional<Result<Door>> made;
  {
    const Released released;
    made.emplace(open_door({folder}));
  }
  if (*made) return std::move(*made).value();
  PyErr_SetString(made->error().code == Error::Code::conflict ? PyExc_ValueError : PyExc_OSError,
                  made->error().message.c_str());
  throw nb::python_error();
}

}  // namespace

void bind_door(nb::module_& m) {
  nb::class_<Door>(m, "Door", "Threads: one at a time.")
      .def_prop_ro("path", &Door::path)
      .def("close", [](Door& door) {
        const Released released;
        door.reset();
      });
  m.def("open_door", &open, nb::arg("folder"));
}

}  // namespace ringmain::python
