// Which training step is it, and in which was an event said? Python's scopes, on the C++ source of
// steps, and a log of their edges.
#include <memory>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <optional>
#include <vector>

#include "ringmain/bus/erased.hpp"

#include "ringmain/adapters/sources/step/log.hpp"
#include "ringmain/adapters/sources/step/step.hpp"

#include "ringmain/python/native/batch.hpp"
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

void refuse_if_forked(const NativeBus& bus) {
  if (bus.forked())
    throw std::runtime_error(
        "the bus belongs to the process that forked this one; make a Bus here");
}

/// One row for each event, as ringmain._steps reads it.
struct PlaceRow {
  std::uint64_t step;
  std::uint32_t phase;
  std::uint32_t micro_batch;
  std::uint64_t inside;  // 1 or 0
};

PlaceRow row_of(const step::Place& place) {
  return {place.step, place.phase.id(), place.micro_batch, place.inside ? 1u : 0u};
}

/// Threads: any.
class StepLog {
 public:
  explicit StepLog(const NativeBus& bus) : follow_(std::make_unique<step::Follow>(bus.bus())) {}

  [[nodiscard]] nb::bytes of(const Batch& batch) const {
    std::vector<PlaceRow> rows;
    rows.reserve(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) rows.push_back(at(batch.stamp(i)));
    return nb::bytes(rows.data(), rows.size() * sizeof(PlaceRow));
  }
  [[nodiscard]] nb::bytes of_stamp(const Stamp& stamp) const {
    const PlaceRow row = at(stamp);
    return nb::bytes(&row, sizeof row);
  }
  void close() noexcept { follow_.reset(); }

 private:
  [[nodiscard]] PlaceRow at(const Stamp& stamp) const {
    return follow_ == nullptr ? PlaceRow{} : row_of(follow_->at(stamp));
  }

  std::unique_ptr<step::Follow> follow_;
};

std::unique_ptr<StepLog> follow_steps(const NativeBus& bus) {
  refuse_if_forked(bus);
  return std::make_unique<StepLog>(bus);
}

Steps open_steps(const NativeBus& bus) {
  refuse_if_forked(bus);
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
  nb::class_<StepLog>(m, "StepLog")
      .def("of", &StepLog::of, nb::arg("batch"))
      .def("of_stamp", &StepLog::of_stamp, nb::arg("stamp"))
      .def("close", &StepLog::close);
  m.def("follow_steps", &follow_steps, nb::arg("bus"));
}

}  // namespace ringmain::python
