// PyTorch's guard-complete hook. An exception in it aborts the process, also one that a signal's
// handler raises between two lines of Python; so the hook is no Python function.

#include <nanobind/stl/string.h>
#include <utility>

#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/stable_abi.hpp"

#include "adapters/sources/compile/trace_tap.hpp"

namespace ringmain::python {
namespace {

/// Stands in PyTorch's one slot for a hook that is told whether a call found compiled code. The
/// hook that would stand there without us is chained after it, and that one's verdict counts.
class GuardHook {
 public:
  GuardHook(compile::TraceTap& tap, nb::object chained)
      : tap_(&tap), chained_(std::move(chained)) {}

  bool operator()(bool hit) noexcept {
    const bool verdict = verdict_of(hit);
    tap_->guard_checked(verdict);
    return verdict;
  }
  /// Chains another hook after this one; returns the hook that was chained before.
  nb::object chain(nb::object next) { return std::exchange(chained_, std::move(next)); }
  [[nodiscard]] std::uint64_t errors() const noexcept { return errors_; }
  [[nodiscard]] const std::string& last_error() const noexcept { return last_error_; }

 private:
  bool verdict_of(bool hit) noexcept {
    if (chained_.is_none()) return hit;
    const nb::object chained = chained_;  // it may replace itself
    PyObject* const said = call_with(chained.ptr(), hit ? Py_True : Py_False);
    const int verdict = said == nullptr ? -1 : PyObject_IsTrue(said);
    Py_XDECREF(said);
    if (verdict >= 0) return verdict != 0;
    put_aside();
    return hit;
  }
  /// What the chained hook raised must not leave. An interrupt is raised again later, elsewhere.
  void put_aside() noexcept {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0) PyErr_SetInterrupt();
    ++errors_;
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    try {
      last_error_ = nb::str(nb::handle(value == nullptr ? type : value)).c_str();
    } catch (...) {
      last_error_ = "an exception that cannot be printed";
      PyErr_Clear();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  }

  compile::TraceTap* tap_;
  nb::object chained_;
  std::uint64_t errors_ = 0;
  std::string last_error_;
};

}  // namespace

void bind_guard_hook(nb::module_& m) {
  // PyTorch keeps what was imported and hooked beyond the interpreter's end: no leak to warn of.
  nb::set_leak_warnings(false);
  nb::class_<GuardHook>(m, "GuardHook")
      .def(nb::init<compile::TraceTap&, nb::object>(), nb::arg("tap"), nb::arg("chained").none(),
           nb::keep_alive<1, 2>())
      .def(
          "__call__", [](GuardHook& hook, bool hit) { return hook(hit); }, nb::arg("hit"))
      .def("chain", &GuardHook::chain, nb::arg("next").none())
      .def_prop_ro("errors", &GuardHook::errors)
      .def_prop_ro("last_error", &GuardHook::last_error);
}

}  // namespace ringmain::python
