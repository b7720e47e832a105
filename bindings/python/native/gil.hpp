// When does native code hold the GIL, and what does it do without it?
//
// It waits without the GIL (Released, wait_in_slices), and lets go of Python objects without it by
// retiring them: the next thread that holds the GIL reclaims them. The interpreter's exit waits for
// all threads in Released, so that none comes back to an interpreter that is gone.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nanobind/nanobind.h>
#include <optional>

namespace ringmain::python {
namespace nb = nanobind;

/// True once the interpreter has begun to exit: nothing is called back from here on.
[[nodiscard]] bool exiting() noexcept;
void begin_exit() noexcept;
/// Waits until no thread is in Released, at most `limit`. With the GIL, given up meanwhile.
void wait_for_released(std::chrono::nanoseconds limit) noexcept;

/// The GIL is given up while this lives; but not once the exit has begun, because then this thread
/// might never get it back.
class Released {
 public:
  Released() noexcept;
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* saved_ = nullptr;
};

/// The GIL for one call, whichever thread this is.
class Taken {
 public:
  Taken() noexcept : state_(PyGILState_Ensure()) {}
  ~Taken() { PyGILState_Release(state_); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Drops a reference later, when a thread holds the GIL. Threads: any, with or without the GIL.
void retire(PyObject* object) noexcept;
/// Drops what was retired. With the GIL.
void reclaim_retired() noexcept;

/// What Python gives as a timeout: seconds, or None for ever.
using Seconds = std::optional<double>;
/// As the clock counts them; not-a-number gives no time at all.
inline std::chrono::nanoseconds counted(double seconds) {
  const double in_range = seconds > 0 ? std::min(seconds, 1e9) : 0;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(in_range));
}

class Deadline {
 public:
  explicit Deadline(Seconds limit)
      : end_(limit ? Clock::now() + counted(*limit) : Clock::time_point::max()) {}
  [[nodiscard]] std::chrono::nanoseconds left() const noexcept {
    return std::max(Clock::duration::zero(), end_ - Clock::now());
  }
  [[nodiscard]] Seconds left_seconds() const noexcept {
    if (end_ == Clock::time_point::max()) return std::nullopt;
    return std::chrono::duration<double>(left()).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

/// `wait(limit)` without the GIL, until it is true or time is over; between two looks Ctrl-C is
/// heard, and then nanobind::python_error thrown.
template <class Wait>
bool wait_in_slices(Seconds limit, Wait wait) {
  constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(100);
  const Deadline deadline(limit);
  for (;;) {
    const auto none = std::chrono::nanoseconds::zero();
    const std::chrono::nanoseconds slice = exiting() ? none : std::min(kSlice, deadline.left());
    bool done = false;
    {
      const Released released;
      done = wait(slice);
    }
    reclaim_retired();
    if (done) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (exiting() || deadline.left().count() == 0) return false;
  }
}

}  // namespace ringmain::python
