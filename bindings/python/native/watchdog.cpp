// A watchdog over the operations of a bus for Python. It looks in a thread of C++ and never takes
// the GIL for that: a program that is stuck with the GIL is watched, too.
#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <nanobind/stl/optional.h>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/system/configure_thread.hpp"

#include "bindings/python/native/bus.hpp"
#include "bindings/python/native/communicator.hpp"
#include "bindings/python/native/communicator_hooks.hpp"
#include "bindings/python/native/record_of.hpp"

#include "adapters/sources/collective/collective_watchdog.hpp"
#include "adapters/sources/collective/flight_recorder_hook.hpp"

namespace ringmain::python {
namespace {

using collective::OverdueOperation;
using collective::Watchdog;

class NativeWatchdog {
 public:
  NativeWatchdog(nb::object bus, Seconds from_issue, Seconds from_start, double period,
                 nb::object before_abort, double before_abort_within, bool aborts,
                 const collective::FlightRecorderHook* recorder)
      : bus_(std::move(bus)) {
    collective::WatchdogOptions options;
    options.from_issue = deadline(from_issue);
    options.from_start = deadline(from_start);
    options.period = period > 0 ? std::max(counted(period), nanoseconds(1)) : nanoseconds::zero();
    options.before_abort_within = counted(before_abort_within);
    options.aborts = aborts;
    options.recorder = recorder;
    if (!before_abort.is_none()) {
      callback_ = Callback::hold(std::move(before_abort), "a watchdog's before_abort");
      options.before_abort = [by = callback_](const OverdueOperation& first) {
        call_in_own_thread(by, [&first] { return nb::make_tuple(record_of(&first)); });
      };
    }
    Bus& on = nb::cast<NativeBus&>(bus_).bus();
    std::optional<Result<Watchdog>> made;
    {
      const Released released;
      made.emplace(Watchdog::make(on, std::move(options)));
    }
    if (!*made) {
      PyErr_SetString(made->error().code == Error::Code::system ? PyExc_OSError : PyExc_ValueError,
                      made->error().message.c_str());
      throw nb::python_error();
    }
    held_ = std::make_unique<Watchdog>(std::move(*made).value());
  }
  ~NativeWatchdog() { close(); }
  NativeWatchdog(const NativeWatchdog&) = delete;
  NativeWatchdog& operator=(const NativeWatchdog&) = delete;

  nb::list look() {
    nb::list found;
    if (!held_) return found;
    ++inside_;
    std::vector<OverdueOperation> overdue;
    {
      const Released released;
      overdue = held_->look();
    }
    --inside_;
    for (const OverdueOperation& one : overdue) found.append(record_of(&one));
    end_if_asked();
    return found;
  }
  [[nodiscard]] std::uint64_t looks() const noexcept { return held_ ? held_->looks() : looks_; }
  [[nodiscard]] std::uint64_t raised() const noexcept {
    return callback_ ? callback_->raised.load() : 0;
  }
  [[nodiscard]] bool closed() const noexcept { return !held_ || asked_to_end_; }

  /// Waits for a look that is being made, without the GIL; in something that the look has called,
  /// another thread waits for it.
  void close() noexcept {
    asked_to_end_ = true;
    if (held_) end_if_asked();
  }

 private:
  static nanoseconds deadline(Seconds given) noexcept {
    return given ? std::max(counted(*given), nanoseconds(1)) : nanoseconds::zero();
  }

  void end_if_asked() noexcept {
    if (!asked_to_end_ || inside_ != 0 || !held_) return;
    looks_ = held_->looks();
    const bool waits_for_itself = held_->looks_here() || in_abort_hook();
    auto* const ending = held_.release();
    if (!waits_for_itself) {
      const Released released;
      delete ending;
      return;
    }
    auto* const bus = bus_.inc_ref().ptr();  // which outlives it
    try {
      const engine::BlockedSignals signals_are_the_programs;
      std::thread([ending, bus] {
        delete ending;
        retire(bus);
      }).detach();
    } catch (const std::exception&) {  // no thread: it goes on to the end of the process
    }
  }

  nb::object bus_;
  std::shared_ptr<Callback> callback_;
  std::unique_ptr<Watchdog> held_;
  std::uint64_t looks_ = 0;
  int inside_ = 0;  // calls of look(), with the GIL
  bool asked_to_end_ = false;
};

}  // namespace

void bind_watchdog(nb::module_& m) {
  nb::class_<NativeWatchdog>(m, "Watchdog", "Threads: any.")
      .def(nb::init<nb::object, Seconds, Seconds, double, nb::object, double, bool,
                    const collective::FlightRecorderHook*>(),
           nb::arg("bus"), nb::arg("from_issue").none(), nb::arg("from_start").none(),
           nb::arg("period"), nb::arg("before_abort").none(), nb::arg("before_abort_within"),
           nb::arg("aborts"), nb::arg("recorder").none())
      .def("look", &NativeWatchdog::look)
      .def("close", &NativeWatchdog::close)
      .def_prop_ro("looks", &NativeWatchdog::looks)
      .def_prop_ro("raised", &NativeWatchdog::raised)
      .def_prop_ro("closed", &NativeWatchdog::closed);
}

}  // namespace ringmain::python
