// Communicators in Python: their operations, and what hangs on them.
//
// A communicator is shared with C++, which may issue on it, too; where hooks of Python's are called
// then, their thread takes the GIL.
#pragma once
#include <cstdint>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>
#include <thread>

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::python {
namespace nb = nanobind;

/// An operation that is being called for. In the thread that began it, the last one first.
class PythonIssuing {
 public:
  /// Asks the pre hooks. With the GIL.
  PythonIssuing(const collective::Communicator& by, const collective::Arguments& arguments,
                nanoseconds timeout);
  PythonIssuing(const PythonIssuing&) = delete;
  PythonIssuing& operator=(const PythonIssuing&) = delete;
  /// Without a word before: returned(). In another thread it is left open.
  ~PythonIssuing();

  [[nodiscard]] bool refused() const noexcept { return refused_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// What a pre hook of Python's raised in this thread, or None.
  [[nodiscard]] nb::object error() const { return error_; }
  [[nodiscard]] const collective::Operation& operation() const noexcept { return operation_; }

  // Each throws std::runtime_error where it is not the last one that this thread began.
  void returned(nb::handle work);
  void returned_part(const collective::Communicator& part);
  void threw(const std::string& what);

 private:
  /// False: it is over already.
  bool leave();
  std::unique_ptr<collective::Issuing> held_;
  collective::Operation operation_;
  std::string reason_;
  nb::object error_;
  const PythonIssuing* before_ = nullptr;
  const bool async_op_;
  bool refused_ = false;
};

/// Classes Communicator, CommunicatorHook, TensorView; bind_issuing() does Issuing, Operation and
/// Waiting.
void bind_communicator(nb::module_& m);
void bind_issuing(nb::module_& m);
/// Class FlightRecorder.
void bind_flight_recorder(nb::module_& m);
/// Class Watchdog.
void bind_watchdog(nb::module_& m);

}  // namespace ringmain::python
