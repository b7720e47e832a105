// What does Python read where a call is none that was meant? A sentence of ours, in place of the
// binder's list of signatures.
#pragma once
#include <nanobind/nanobind.h>

namespace ringmain::python {

/// For .def(): the last overload, or the only one of a class that its user does not make. `why`
/// lives for ever.
template <class T>
auto refusing(const char* why) {
  return [why](T*, const nanobind::args&, const nanobind::kwargs&) {
    throw nanobind::type_error(why);
  };
}

}  // namespace ringmain::python
