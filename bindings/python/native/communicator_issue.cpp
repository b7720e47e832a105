// One operation in Python's hands: from issue() to returned(), and on to its end.
#include <nanobind/stl/string.h>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings/python/native/communicator.hpp"
#include "bindings/python/native/communicator_arguments.hpp"
#include "bindings/python/native/communicator_hooks.hpp"
#include "bindings/python/native/refuse.hpp"

#include "adapters/launch/tid.hpp"

namespace ringmain::python {
namespace {

constinit thread_local const PythonIssuing* last_here = nullptr;

/// For `with`: its thread waits.
class PythonWaiting {
 public:
  explicit PythonWaiting(collective::Operation of) noexcept : of_(std::move(of)) {}
  void enter() { waiting_.emplace(of_); }
  void leave() noexcept { waiting_.reset(); }

 private:
  collective::Operation of_;
  std::optional<collective::Operation::Waiting> waiting_;
};

collective::How how_of(const std::string& word) {
  using collective::How;
  if (word == "error") return How::error;
  if (word == "timed_out") return How::timed_out;
  if (word == "aborted") return How::aborted;
  if (word == "vetoed") return How::vetoed;
  if (word == "cancelled") return How::cancelled;
  if (word == "unknown") return How::unknown;
  throw nb::value_error(
      ("how is '" + word + "'; use error, timed_out, aborted, vetoed, cancelled or unknown")
          .c_str());
}

bool complete(const collective::Operation& operation, std::int64_t duration_ns) {
  collective::Completed what;
  what.duration_ns = duration_ns;
  what.thread = static_cast<std::int32_t>(run::this_tid());
  return operation.completed(what);
}

bool fail(const collective::Operation& operation, const std::string& reason, const std::string& how,
          std::int32_t result) {
  collective::Failed what;
  what.reason = Name(reason);
  what.how = how_of(how);
  what.result = result;
  what.thread = static_cast<std::int32_t>(run::this_tid());
  return operation.failed(what);
}

void exit_issuing(PythonIssuing& issuing, nb::handle error) {
  if (error.is_none()) {
    issuing.returned(nb::none());
  } else {
    issuing.threw(words_of(error));
  }
}

}  // namespace

PythonIssuing::PythonIssuing(const collective::Communicator& by,
                             const collective::Arguments& arguments, nanoseconds timeout)
    : error_(nb::none()), async_op_(view_of(arguments).async_op) {
  OfPython mine(&arguments, 0, async_op_);
  held_.reset(new collective::Issuing(by.issue_within(arguments, timeout)));
  operation_ = held_->operation();
  refused_ = !*held_;
  reason_ = std::string(held_->reason().view());
  if (!refused_) {
    before_ = std::exchange(last_here, this);
    return;
  }
  held_.reset();
  if (mine.raised.is_valid()) error_ = std::move(mine.raised);
}

PythonIssuing::~PythonIssuing() {
  if (held_ == nullptr) return;
  if (last_here == this) {
    last_here = before_;
    held_.reset();  // says that it returned
  } else {
    // Its thread is marked with it, and only that thread can take the mark away.
    (void)held_.release();
  }
}

bool PythonIssuing::leave() {
  if (held_ == nullptr) return false;
  if (last_here != this) {
    throw std::runtime_error(
        "an operation's issuing ends in the thread that began it, the last begun first; use it as "
        "`with communicator.issue(…)`");
  }
  last_here = before_;
  return true;
}

void PythonIssuing::returned(nb::handle work) {
  if (!leave()) return;
  const void* const shown = work.is_none() ? nullptr : work.ptr();
  const OfPython mine(shown, operation_.id(), async_op_);
  held_->returned(shown);
  held_.reset();
}

void PythonIssuing::returned_part(const collective::Communicator& part) {
  if (!leave()) return;
  const OfPython mine(nullptr, operation_.id(), async_op_);
  held_->returned_part(part ? &part : nullptr);
  held_.reset();
}

void PythonIssuing::threw(const std::string& what) {
  if (!leave()) return;
  const OfPython mine(nullptr, operation_.id(), async_op_);
  held_->threw(what);
  held_.reset();
}

void bind_issuing(nb::module_& m) {
  nb::class_<PythonWaiting>(m, "Waiting")
      .def("__enter__", &PythonWaiting::enter)
      .def(
          "__exit__", [](PythonWaiting& w, nb::handle, nb::handle, nb::handle) { w.leave(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
  nb::class_<collective::Operation>(m, "Operation")
      .def_prop_ro("id", &collective::Operation::id)
      .def("started", [](const collective::Operation& o) { return o.started(); })
      .def("completed", &complete, nb::arg("duration_ns") = 0)
      .def("failed", &fail, nb::arg("reason"), nb::arg("how") = "error", nb::arg("result") = 0)
      .def(
          "waiting",
          [](const collective::Operation& o) {
            return std::make_unique<PythonWaiting>(o).release();
          },
          nb::rv_policy::take_ownership);
  nb::class_<PythonIssuing>(m, "Issuing")
      .def("__init__", refusing<PythonIssuing>("an issuing is made by communicator.issue(…)"))
      .def_prop_ro("refused", &PythonIssuing::refused)
      .def_prop_ro("reason", &PythonIssuing::reason)
      .def_prop_ro("error", &PythonIssuing::error)
      .def_prop_ro("operation", &PythonIssuing::operation, nb::rv_policy::copy)
      .def_prop_ro("op_id", [](const PythonIssuing& i) { return i.operation().id(); })
      .def("returned", &PythonIssuing::returned, nb::arg("work").none() = nb::none())
      .def(
          "returned_part",
          [](PythonIssuing& i, const collective::Communicator* part) {
            i.returned_part(part == nullptr ? collective::Communicator() : *part);
          },
          nb::arg("part").none())
      .def("threw", &PythonIssuing::threw, nb::arg("what"))
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](PythonIssuing& i, nb::handle, nb::handle error, nb::handle) {
            exit_issuing(i, error);
          },
          nb::arg().none(), nb::arg("error").none(), nb::arg().none());
}

}  // namespace ringmain::python
