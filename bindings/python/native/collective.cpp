// How does what a library written in Python or bound to it calls for (PyTorch's process groups)
// become collective events? Through the ledger of the bus, with one object for each group, and one
// for each call while it runs.
#include "events/collective.hpp"

#include <algorithm>
#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"

#include "bus/origin.hpp"

#include "events/collective_life.hpp"
#include "events/terms/collective_names.hpp"
#include "events/terms/collective_ranks.hpp"

#include "bindings/python/native/bus.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"

namespace ringmain::python {
namespace {

using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Ledger;

constexpr std::size_t kReasonBytesMax = 400;

std::int32_t this_thread() noexcept {
  return static_cast<std::int32_t>(run::this_tid());
}

/// The first line of it: what follows is where in C++ it was thrown.
Name reason_of(std::string_view text) noexcept {
  text = text.substr(0, text.find('\n'));
  return Name(text.substr(0, ringmain::detail::utf8_prefix(text, kReasonBytesMax)));
}

/// The ledger, and the channels beside it. Held by all who may still have something to say.
struct Book {
  explicit Book(Bus& bus) {
    auto found = Ledger::of(bus);
    if (!found) throw nb::value_error(found.error().message.c_str());
    ledger = std::move(found).value();
    if (const auto conflict = run::hold_channel(bus, issued))
      throw nb::value_error(conflict->message.c_str());
  }
  std::shared_ptr<Ledger> ledger;
  run::ChannelHeld<Issued> issued;  // for what the ledger is not to remember
};
using Shared = std::shared_ptr<const Book>;

/// An operation that somebody has called for: what becomes of it. Threads: any.
class Operation {
 public:
  Operation(Shared book, std::uint64_t id, Name op, Name group, Name source, std::int32_t rank)
      : book_(std::move(book)), id_(id), op_(op), group_(group), source_(source), rank_(rank) {}
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  bool completed() const noexcept {
    Completed said;
    said.thread = this_thread();
    return book_->ledger->completed(id_, said);
  }
  bool failed(std::string_view reason, How how) const noexcept {
    Failed said;
    said.reason = reason_of(reason);
    said.how = how;
    said.thread = this_thread();
    return book_->ledger->failed(id_, said);
  }
  /// With what was raised where somebody waited for it.
  bool raised(std::string_view reason) const noexcept {
    const bool late = reason.find("imed out") != std::string_view::npos ||
                      reason.find("imeout") != std::string_view::npos;
    return failed(reason, late ? How::timed_out : How::error);
  }
  /// As a future's callback.
  void ended(const nb::object& future) const {
    try {
      (void)future.attr("value")();
      completed();
    } catch (nb::python_error& error) {
      raised(nb::str(error.value()).c_str());
    }
  }
  /// The caller begins to wait; returns when, for wait_ended(). 0: nobody listens.
  [[nodiscard]] std::int64_t wait_began() const noexcept {
    if (!book_->ledger->waits_heard()) return 0;
    say_wait(collective::Edge::begin, 0);
    return engine::now_ns();
  }
  void wait_ended(std::int64_t since_ns) const noexcept {
    if (since_ns != 0) say_wait(collective::Edge::end, engine::now_ns() - since_ns);
  }

 private:
  void say_wait(collective::Edge edge, std::int64_t duration_ns) const noexcept {
    collective::Wait said;
    said.op_id = id_;
    said.duration_ns = duration_ns;
    said.op = op_;
    said.group = group_;
    said.source = source_;
    said.rank = rank_;
    said.thread = this_thread();
    said.operations = 1;
    said.edge = edge;
    book_->ledger->say(said);
  }

  Shared book_;
  std::uint64_t id_;
  Name op_, group_, source_;
  std::int32_t rank_;
};

/// The call of the backend: its thread is marked with the operation until it is over.
class Issuing {
 public:
  Issuing(const Shared& book, std::shared_ptr<Operation> operation)
      : operation_(std::move(operation)),
        inside_(std::make_unique<Ledger::Inside>(*book->ledger, operation_->id())) {}
  Issuing(Issuing&&) = default;
  Issuing& operator=(Issuing&&) = delete;
  ~Issuing() { over(); }

  [[nodiscard]] const std::shared_ptr<Operation>& operation() const noexcept { return operation_; }
  void returned() noexcept { over(); }
  void threw(std::string_view reason) noexcept {
    over();
    operation_->failed(reason, How::error);
  }

 private:
  void over() noexcept {
    // A mark is its thread's own. Whoever lets go of a call that never returned leaves it alone.
    if (std::this_thread::get_id() != thread_) (void)inside_.release();
    inside_.reset();
  }
  std::shared_ptr<Operation> operation_;
  std::unique_ptr<Ledger::Inside> inside_;
  std::thread::id thread_ = std::this_thread::get_id();
};

/// What is called for, as Python gives it.
struct Call {
  std::string_view op;
  std::uint64_t sequence = 0, bytes = 0, in_elements = 0, out_elements = 0, correlation = 0;
  std::string_view dtype, backend;
  std::int32_t peer = collective::kNoRank, device = collective::kNoDevice;
  bool asynchronous = false;
};

class Group {
 public:
  Group(Shared book, std::string_view name, std::string_view description, std::string_view backend,
        std::string_view source, std::int32_t rank, std::int32_t size,
        const std::vector<int>& ranks)
      : book_(std::move(book)), name_(name), source_(source), rank_(rank), size_(size) {
    collective::Group said = about(collective::GroupChange::made);
    said.description = Name(description);
    said.backend = Name(backend);
    collective::write_ranks(said.ranks, ranks);
    book_->ledger->say(said);
  }

  /// `ends`: somebody will say what becomes of it. False: it is published, and not remembered.
  /// Where the thread is inside another operation it is a part of that one, and nothing is said.
  Issuing issue(const Call& call, bool ends) {
    Issued said = issued(call);
    std::uint64_t id = 0;
    if (book_->ledger->mark() == 0) {
      if (ends) {
        id = book_->ledger->issue(said);
      } else if (book_->ledger->heard()) {
        id = said.op_id = new_op_id();
        (void)book_->issued.channel->post(said);
      }
    }
    return {book_, std::make_shared<Operation>(book_, id, said.op, name_, source_, rank_)};
  }
  /// It was called for, before now and in a thread that was not there to say it.
  void was_issued(const Call& call) {
    if (!book_->issued.channel->wanted()) return;
    Issued said = issued(call);
    said.op_id = new_op_id();
    (void)book_->issued.channel->post(said);
  }
  /// What is open is cancelled.
  void end(std::string_view reason, std::uint64_t operations) noexcept {
    if (std::exchange(ended_, true)) return;
    book_->ledger->end_group(name_, reason_of(reason));
    collective::Group said = about(collective::GroupChange::ended);
    said.operations = operations;
    book_->ledger->say(said);
  }

 private:
  [[nodiscard]] collective::Group about(collective::GroupChange change) const noexcept {
    collective::Group said;
    said.group = name_;
    said.source = source_;
    said.rank = rank_;
    said.group_size = static_cast<std::uint32_t>(size_);
    said.thread = this_thread();
    said.change = change;
    return said;
  }
  [[nodiscard]] Issued issued(const Call& call) const {
    Issued said;
    said.sequence = call.sequence;
    said.bytes = call.bytes;
    said.in_elements = call.in_elements;
    said.out_elements = call.out_elements;
    said.correlation = call.correlation;
    said.op = collective::operation_name(call.op);
    said.group = name_;
    said.dtype = Name(call.dtype);
    said.backend = Name(call.backend);
    said.peer = call.peer;
    said.rank = rank_;
    said.group_size = size_;
    said.device = call.device;
    said.asynchronous = call.asynchronous;
    said.source = source_;
    return said;
  }

  Shared book_;
  Name name_, source_;
  std::int32_t rank_, size_;
  bool ended_ = false;
};

class Collectives {
 public:
  explicit Collectives(NativeBus& bus) : book_(std::make_shared<const Book>(bus.bus())) {}
  [[nodiscard]] const Shared& book() const noexcept { return book_; }
  [[nodiscard]] bool heard() const noexcept { return book_->ledger->heard(); }
  [[nodiscard]] bool waits_heard() const noexcept { return book_->ledger->waits_heard(); }

 private:
  Shared book_;
};

How how_of(std::string_view word) {
  constexpr std::string_view kWords[] = {"error",  "timed_out", "aborted",
                                         "vetoed", "cancelled", "unknown"};
  const auto* const found = std::find(std::begin(kWords), std::end(kWords), word);
  if (found == std::end(kWords))
    throw nb::value_error("how is error, timed_out, aborted, vetoed, cancelled or unknown");
  return static_cast<How>(found - std::begin(kWords));
}

/// Calls `f(call)` with what Python gave by position.
template <class F>
auto with_call(F f) {
  return [f](Group& group, std::string_view op, std::uint64_t sequence, std::uint64_t bytes,
             std::uint64_t in_elements, std::uint64_t out_elements, std::uint64_t correlation,
             std::string_view dtype, std::string_view backend, std::int32_t peer,
             std::int32_t device, bool asynchronous, bool ends) {
    return f(group,
             Call{op, sequence, bytes, in_elements, out_elements, correlation, dtype, backend, peer,
                  device, asynchronous},
             ends);
  };
}

}  // namespace

void bind_collective(nb::module_& m) {
  nb::class_<Operation>(m, "CollectiveOperation",
                        "What becomes of an operation. The first end that is said is believed, "
                        "whoever says it; on others False is returned. Threads: any.")
      .def_prop_ro("id", &Operation::id)
      .def("completed", &Operation::completed)
      .def(
          "failed",
          [](const Operation& operation, std::string_view reason, std::string_view how) {
            return operation.failed(reason, how_of(how));
          },
          nb::arg("reason"), nb::arg("how") = "error")
      .def("raised", &Operation::raised, nb::arg("reason"))
      .def("wait_began", &Operation::wait_began)
      .def("wait_ended", &Operation::wait_ended, nb::arg("since_ns"))
      .def("__call__", &Operation::ended, nb::arg("future"));
  nb::class_<Issuing>(m, "CollectiveIssuing", "One call of a backend, in its thread.")
      .def_prop_ro("operation", &Issuing::operation)
      .def("returned", &Issuing::returned)
      .def("threw", &Issuing::threw, nb::arg("reason"));
  nb::class_<Group>(m, "CollectiveGroup", "One rank's end of a group. Threads: any.")
      .def(
          "__init__",
          [](Group* self, const Collectives& all, std::string_view name,
             std::string_view description, std::string_view backend, std::string_view source,
             std::int32_t rank, std::int32_t size, const std::vector<int>& ranks) {
            new (self) Group(all.book(), name, description, backend, source, rank, size, ranks);
          },
          nb::arg("collectives"), nb::arg("name"), nb::arg("description"), nb::arg("backend"),
          nb::arg("source"), nb::arg("rank"), nb::arg("size"), nb::arg("ranks"))
      .def("issue", with_call([](Group& group, const Call& call, bool ends) {
             return group.issue(call, ends);
           }),
           nb::arg("op"), nb::arg("sequence"), nb::arg("bytes"), nb::arg("in_elements"),
           nb::arg("out_elements"), nb::arg("correlation"), nb::arg("dtype"), nb::arg("backend"),
           nb::arg("peer"), nb::arg("device"), nb::arg("asynchronous"), nb::arg("ends"))
      .def("was_issued",
           with_call([](Group& group, const Call& call, bool) { group.was_issued(call); }),
           nb::arg("op"), nb::arg("sequence"), nb::arg("bytes"), nb::arg("in_elements"),
           nb::arg("out_elements"), nb::arg("correlation"), nb::arg("dtype"), nb::arg("backend"),
           nb::arg("peer"), nb::arg("device"), nb::arg("asynchronous"), nb::arg("ends"))
      .def("end", &Group::end, nb::arg("reason"), nb::arg("operations"));
  nb::class_<Collectives>(m, "Collectives", "The ledger of a bus, for groups. Threads: any.")
      .def(
          "__init__", [](Collectives* self, NativeBus& bus) { new (self) Collectives(bus); },
          nb::arg("bus"))
      .def_prop_ro("heard", &Collectives::heard)
      .def_prop_ro("waits_heard", &Collectives::waits_heard)
      .def_prop_ro("open",
                   [](const Collectives& all) { return all.book()->ledger->figures().open; });
}

}  // namespace ringmain::python
