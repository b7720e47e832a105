// What does Python say of a call that fits no signature? A sentence of ours, in place of the
// binder's list of signatures.
#pragma once
#include <nanobind/nanobind.h>

namespace ringmain::python {

/// For .def(): the last overload, or the only __init__ of a class that users do not make. `why`
/// must live for ever.
template <class T>
auto refusing(const char* why) {
  return [why](T*, const nanobind::args&, const nanobind::kwargs&) {
    throw nanobind::type_error(why);
  };
}

}  // namespace ringmain::python
