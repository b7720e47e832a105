// How does what a library written in Python or bound to it calls for (PyTorch's process groups)
// become collective events? Each group is a communicator of the bus, so that hooks hang on it; each
// call has one object while it runs.
#include "events/collective.hpp"

#include <algorithm>
#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <optional>
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
#include "bindings/python/native/communicator_arguments.hpp"
#include "bindings/python/native/gil.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::python {
namespace {

using collective::Communicator;
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
  run::ChannelHeld<Issued> issued;  // for what was issued before now
};
using Shared = std::shared_ptr<const Book>;

/// An operation that somebody has called for: what becomes of it. Threads: any.
class Operation {
 public:
  explicit Operation(collective::Operation of) : of_(std::move(of)) {}
  [[nodiscard]] std::uint64_t id() const noexcept { return of_.id(); }
  bool completed() const noexcept {
    Completed said;
    said.thread = this_thread();
    return of_.completed(said);
  }
  bool failed(std::string_view reason, How how) const noexcept {
    Failed said;
    said.reason = reason_of(reason);
    said.how = how;
    said.thread = this_thread();
    return of_.failed(said);
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
  [[nodiscard]] std::int64_t wait_began() const noexcept { return of_.begin_wait(); }
  void wait_ended(std::int64_t since_ns) const noexcept { of_.end_wait(since_ns); }

 private:
  collective::Operation of_;
};

/// The call of the backend: its thread is marked with the operation until it is over. With the GIL.
class Issuing {
 public:
  /// `inner`: of an operation of another source, whose ends are that one's to say.
  Issuing(const Communicator& by, const collective::Arguments& arguments, const Issued& said,
          collective::IssueOptions how, bool inner)
      : async_op_(said.asynchronous) {
    OfPython mine(&arguments, 0, async_op_);
    held_.reset(new collective::Issuing(by.issue(arguments, said, how)));
    const bool own = !inner && (*held_ || held_->vetoed());
    operation_ = std::make_shared<Operation>(own ? held_->operation() : collective::Operation());
    op_id_ = held_->operation().id();
    if (*held_) return;
    // PyTorch goes on where its group has just ended here.
    refused_ = held_->vetoed();
    reason_ = std::string(held_->reason().view());
    if (mine.raised.is_valid()) error_ = std::move(mine.raised);
    held_.reset();
  }
  Issuing(const Issuing&) = delete;
  Issuing& operator=(const Issuing&) = delete;
  /// A mark is its thread's own. Whoever lets go elsewhere of a call that never returned leaves it.
  ~Issuing() {
    if (!here()) (void)held_.release();
  }

  [[nodiscard]] const std::shared_ptr<Operation>& operation() const noexcept { return operation_; }
  [[nodiscard]] bool refused() const noexcept { return refused_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// What a pre hook raised, or None.
  [[nodiscard]] nb::object error() const { return error_; }
  void unmark() noexcept {
    if (held_ != nullptr && here()) held_->unmark();
  }
  void returned(nb::handle work) {
    if (held_ == nullptr || !here()) return;
    const void* const shown = work.is_none() ? nullptr : work.ptr();
    const OfPython mine(shown, op_id_, async_op_);
    held_->returned(shown);
    held_.reset();
  }
  void threw(std::string_view reason) {
    if (held_ == nullptr || !here()) return;
    const OfPython mine(nullptr, op_id_, async_op_);
    held_->threw(reason_of(reason).view());
    held_.reset();
  }

 private:
  [[nodiscard]] bool here() const noexcept { return std::this_thread::get_id() == thread_; }
  std::unique_ptr<collective::Issuing> held_;
  std::shared_ptr<Operation> operation_;
  std::string reason_;
  nb::object error_ = nb::none();
  std::uint64_t op_id_ = 0;
  bool async_op_, refused_ = false;
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

/// What hooks are shown of it; `kind` is torchcomms' word, "" where it has none.
struct Shown {
  std::string kind;
  nb::object inputs, outputs;
  std::string reduce;
  std::vector<std::uint64_t> input_split_sizes, output_split_sizes;
  bool point_to_point = false;
};

class Group {
 public:
  Group(const NativeBus& bus, Shared book, std::string_view name, std::string_view description,
        std::string_view backend, std::string_view source, std::int32_t rank, std::int32_t size,
        const std::vector<int>& ranks, double timeout)
      : book_(std::move(book)), name_(name), source_(source), rank_(rank), size_(size) {
    collective::CommunicatorOptions options;
    options.name = name;
    options.description = description;
    options.backend = backend;
    options.source = source;
    options.rank = rank;
    options.size = size;
    options.ranks = ranks;
    options.timeout = counted(timeout);
    options.counts = false;                    // PyTorch does
    if (bus.closed() || bus.forked()) return;  // nobody hears of it
    Bus& on = bus.bus();
    std::optional<Result<Communicator>> made;
    {
      const Released released;
      made.emplace(Communicator::make(on, options));
    }
    if (!*made) throw nb::value_error(made->error().message.c_str());
    comm_ = std::move(*made).value();
  }

  [[nodiscard]] bool heard() const noexcept { return comm_.heard(); }
  [[nodiscard]] bool shows() const noexcept { return comm_.shows_arguments(); }

  /// `ends`: somebody will say what becomes of it. False: it is not left open. Where the thread is
  /// inside another operation it is a part of that one: hooks are called, and nothing is said.
  std::unique_ptr<Issuing> issue(const Call& call, bool ends, const Shown* shown) {
    const bool inner = book_->ledger->mark() != 0;
    if (shown == nullptr) {
      const bool between_two = call.op == "send" || call.op == "recv";
      const collective::Arguments none =
          collective::Other{.op = call.op, .point_to_point = between_two};
      return std::make_unique<Issuing>(comm_, none, issued(call),
                                       collective::IssueOptions{ends, false}, inner);
    }
    const PythonArguments arguments(shown->kind.empty() ? std::string(call.op) : shown->kind,
                                    {shown->inputs,
                                     shown->outputs,
                                     call.peer,
                                     shown->reduce,
                                     call.asynchronous,
                                     shown->point_to_point,
                                     shown->input_split_sizes,
                                     shown->output_split_sizes,
                                     0,
                                     {},
                                     {},
                                     {}},
                                    shown->kind.empty());
    return std::make_unique<Issuing>(comm_, arguments.arguments(), issued(call),
                                     collective::IssueOptions{ends, true}, inner);
  }
  /// It was called for, before now and in a thread that was not there to say it.
  void was_issued(const Call& call) {
    if (!book_->issued.channel->wanted()) return;
    Issued said = issued(call);
    said.op_id = new_op_id();
    (void)book_->issued.channel->post(said);
  }
  /// `cancels`: what is open is cancelled; else somebody says its end.
  void end(std::string_view reason, std::uint64_t operations, bool cancels) noexcept {
    comm_.end({reason_of(reason).view(), operations, cancels});
  }

 private:
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
  Communicator comm_;
  Name name_, source_;
  std::int32_t rank_, size_;
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

/// Calls `f(group, call, ends, shown)` with what Python gave by position.
template <class F>
auto with_call(F f) {
  return [f](Group& group, std::string_view op, std::uint64_t sequence, std::uint64_t bytes,
             std::uint64_t in_elements, std::uint64_t out_elements, std::uint64_t correlation,
             std::string_view dtype, std::string_view backend, std::int32_t peer,
             std::int32_t device, bool asynchronous, bool ends, const Shown* shown) {
    return f(group,
             Call{op, sequence, bytes, in_elements, out_elements, correlation, dtype, backend, peer,
                  device, asynchronous},
             ends, shown);
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
      .def_prop_ro("refused", &Issuing::refused)
      .def_prop_ro("reason", &Issuing::reason)
      .def_prop_ro("error", &Issuing::error)
      .def("unmark", &Issuing::unmark)
      .def("returned", &Issuing::returned, nb::arg("work").none() = nb::none())
      .def("threw", &Issuing::threw, nb::arg("reason"));
  nb::class_<Shown>(m, "CollectiveShown", "What hooks are shown of a call.")
      .def(
          "__init__",
          [](Shown* self, std::string kind, nb::object inputs, nb::object outputs,
             std::string reduce, std::vector<std::uint64_t> input_split_sizes,
             std::vector<std::uint64_t> output_split_sizes, bool point_to_point) {
            new (self) Shown{std::move(kind),
                             std::move(inputs),
                             std::move(outputs),
                             std::move(reduce),
                             std::move(input_split_sizes),
                             std::move(output_split_sizes),
                             point_to_point};
          },
          nb::arg("kind"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("reduce"),
          nb::arg("input_split_sizes"), nb::arg("output_split_sizes"), nb::arg("point_to_point"));
  nb::class_<Group>(m, "CollectiveGroup", "One rank's end of a group. Threads: any.")
      .def(
          "__init__",
          [](Group* self, const NativeBus& bus, const Collectives& all, std::string_view name,
             std::string_view description, std::string_view backend, std::string_view source,
             std::int32_t rank, std::int32_t size, const std::vector<int>& ranks, double timeout) {
            new (self) Group(bus, all.book(), name, description, backend, source, rank, size, ranks,
                             timeout);
          },
          nb::arg("bus"), nb::arg("collectives"), nb::arg("name"), nb::arg("description"),
          nb::arg("backend"), nb::arg("source"), nb::arg("rank"), nb::arg("size"), nb::arg("ranks"),
          nb::arg("timeout") = 0.0)
      .def_prop_ro("heard", &Group::heard)
      .def_prop_ro("shows", &Group::shows)
      .def("issue", with_call([](Group& group, const Call& call, bool ends, const Shown* shown) {
             return group.issue(call, ends, shown).release();
           }),
           nb::arg("op"), nb::arg("sequence"), nb::arg("bytes"), nb::arg("in_elements"),
           nb::arg("out_elements"), nb::arg("correlation"), nb::arg("dtype"), nb::arg("backend"),
           nb::arg("peer"), nb::arg("device"), nb::arg("asynchronous"), nb::arg("ends"),
           nb::arg("shown").none() = nb::none(), nb::rv_policy::take_ownership)
      .def("was_issued", with_call([](Group& group, const Call& call, bool, const Shown*) {
             group.was_issued(call);
           }),
           nb::arg("op"), nb::arg("sequence"), nb::arg("bytes"), nb::arg("in_elements"),
           nb::arg("out_elements"), nb::arg("correlation"), nb::arg("dtype"), nb::arg("backend"),
           nb::arg("peer"), nb::arg("device"), nb::arg("asynchronous"), nb::arg("ends"),
           nb::arg("shown").none() = nb::none())
      .def("end", &Group::end, nb::arg("reason"), nb::arg("operations"), nb::arg("cancels") = true);
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
