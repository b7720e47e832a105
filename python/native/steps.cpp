// Which training step is it? Python's scopes, on the C++ source of steps.
#include <nanobind/stl/string.h>
#include <optional>
#include <vector>

#include "ringmain/bus/erased.hpp"

#include "ringmain/adapters/sources/step/step.hpp"

#include "ringmain/python/native/bus.hpp"

namespace ringmain::python {
namespace {

/// Of one thread. Scopes end from the inside out.
class Steps {
 public:
  explicit Steps(step::Source made) : source_(std::move(made)) {}
  Steps(Steps&&) = default;
  Steps& operator=(Steps&&) = delete;
  ~Steps() {
    while (!scopes_.empty()) scopes_.pop_back();
  }
  void begin_step(std::uint64_t number) { scopes_.push_back(source_.step(number)); }
  void begin_phase(nb::str name) {
    nb::object held;
    scopes_.push_back(source_.phase(Name(utf8_of(name.ptr(), held))));
  }
  void begin_micro_batch(std::uint32_t number) { scopes_.push_back(source_.micro_batch(number)); }
  void end() {
    if (scopes_.empty()) throw std::runtime_error("no step, phase or micro-batch is open");
    scopes_.pop_back();
  }
  [[nodiscard]] std::uint64_t current() const noexcept { return source_.current(); }

 private:
  step::Source source_;
  std::vector<step::Source::Scope> scopes_;
};

Steps open_steps(const NativeBus& bus) {
  if (bus.forked())
    throw std::runtime_error(
        "the bus belongs to the process that forked this one; make a Bus here");
  // Channel<E> ends the process where somebody described another train.step: so it is asked before.
  auto channel = ringmain::detail::Erased::channel(bus.bus(), ringmain::schema<step::Step>());
  if (!channel) throw nb::value_error(channel.error().message.c_str());
  auto source = step::Source::attach(bus.bus());
  if (!source) throw std::runtime_error(source.error().message);
  return Steps(std::move(source).value());
}

}  // namespace

void bind_steps(nb::module_& m) {
  nb::class_<Steps>(m, "Steps")
      .def("begin_step", &Steps::begin_step, nb::arg("number"))
      .def("begin_phase", &Steps::begin_phase, nb::arg("name"))
      .def("begin_micro_batch", &Steps::begin_micro_batch, nb::arg("number"))
      .def("end", &Steps::end)
      .def_prop_ro("current", &Steps::current);
  m.def("open_steps", &open_steps, nb::arg("bus"));
}

}  // namespace ringmain::python
