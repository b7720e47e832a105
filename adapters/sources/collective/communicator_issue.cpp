// What happens around one operation? It is issued, pre hooks are asked, the backend is called with
// the thread marked, and post hooks are told.
#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>

#include "engine/system/clock.hpp"

#include "bus/origin.hpp"

#include "events/terms/collective_names.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/collective_shapes_text.hpp"
#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective {
namespace detail {
namespace {

// Made when the library is loaded: a fork while a thread makes them would leave their guard locked.
const auto words = [] {
  std::array<Name, kOpNames> all;
  for (std::size_t i = 0; i < kOpNames; ++i)
    all[i] = operation_name(to_string(static_cast<OpName>(i)));
  return all;
}();

/// The word of events for an operation.
Name word_of(const Arguments& arguments) noexcept {
  if (const auto* const other = std::get_if<Other>(&arguments)) return operation_name(other->op);
  return words[arguments.index()];
}

struct Size {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
};
Size size_of(Tensors tensors) noexcept {
  Size all;
  for (const Tensor& one : tensors) {
    all.bytes += one.bytes;
    all.elements += one.elements();
  }
  return all;
}

// Refused by one that could not be asked, and may be a guard.
const Name too_deep("hooks are nested 8 deep in this thread, so no more can be asked");
const Name no_memory("there is no memory to ask the hooks");

}  // namespace

bool CommunicatorCore::refuse_if_over(Issuing& issuing) const noexcept {
  const std::uint32_t why = over;
  if (why == 0) return false;
  issuing.go_on_ = false;
  issuing.reason_ = (why & kEnded) != 0 ? has_ended : was_aborted;
  return true;
}

/// Whoever ends the communicator may have looked for what is open just before this was. By this
/// read-modify-write it has seen it, or it is seen here that it is over.
bool CommunicatorCore::end_if_over(std::uint64_t op_id) noexcept {
  const std::uint32_t why = over.fetch_or(0);
  if (why == 0) return false;
  const bool was_end = (why & kEnded) != 0;
  (void)ledger().end_as(op_id, was_end ? How::cancelled : How::aborted,
                        was_end ? has_ended : was_aborted);
  return true;
}

Issued CommunicatorCore::issued(const ArgumentsView& view, Name op) const noexcept {
  const Size in = size_of(view.input), out = size_of(view.output);
  Issued what;
  what.bytes = std::max(in.bytes, out.bytes);
  what.in_elements = in.elements;
  what.out_elements = out.elements;
  what.op = op;
  if (!view.input.empty()) {
    what.dtype = view.input.front().dtype;
  } else if (!view.output.empty()) {
    what.dtype = view.output.front().dtype;
  }
  what.peer = view.peer;
  what.device = device;
  what.asynchronous = view.async_op;
  return what;
}

void CommunicatorCore::sign(Issued& what) const noexcept {
  what.group = name;
  what.backend = backend;
  what.source = source;
  what.rank = rank;
  what.group_size = size;
}

void CommunicatorCore::say_shapes(std::uint64_t op_id, const ArgumentsView& view,
                                  Name op) noexcept {
  Shapes said;
  said.op_id = op_id;
  said.op = op;
  said.group = name;
  said.source = source;
  said.rank = rank;
  said.inputs = static_cast<std::uint32_t>(view.input.size());
  said.outputs = static_cast<std::uint32_t>(view.output.size());
  said.cut = write_shapes(said.input, view.input) + write_shapes(said.output, view.output);
  reports().say(said);
}

PublishResult CommunicatorCore::ask(const Issuing& issuing, const Arguments& arguments, bool async,
                                    Name op) noexcept {
  const Communicator self(issuing.hold_);
  const Ledger::Outside no_mark;  // what a hook calls for is an operation of its own
  return pre.call({issuing.operation_.id(), &arguments, &self, op, issuing.name_, async});
}

void CommunicatorCore::issue(Issuing& issuing, const std::shared_ptr<CommunicatorHold>& hold,
                             const Arguments& arguments, const Issued* said) noexcept {
  if (forked() || refuse_if_over(issuing)) return;
  const ArgumentsView view = view_of(arguments);
  const bool collective = !view.point_to_point && !view.lifecycle;
  const std::uint64_t sequence = collective ? ++collectives_ : 0;
  const bool heard = ledger().heard() || marks().shapes_heard();
  if (!heard && !pre.any() && !post.any()) return;

  const Name op = said != nullptr ? said->op : word_of(arguments);
  issuing.hold_ = hold;
  issuing.name_ = op_name(arguments);
  issuing.lifecycle_ = view.lifecycle;
  issuing.exceptions_ = std::uncaught_exceptions();
  const std::uint64_t outer = marks().mark();
  std::uint64_t id = outer, reported = outer == 0 ? 0 : marks().marked_as(op);
  const bool told = issuing.name_ != OpName::finalize;  // a group's end is an event of its own
  if (outer == 0 && heard && told) {
    Issued what = said != nullptr ? *said : issued(view, op);
    sign(what);
    what.sequence = sequence;
    reported = id = ledger().issue(what, number);
  } else if (id == 0) {
    id = new_op_id();
  }
  issuing.operation_ = Operation(this, id, reported, op);
  if (end_if_over(outer == 0 ? id : 0)) return (void)refuse_if_over(issuing);
  if (told && marks().shapes_heard()) say_shapes(id, view, op);
  // From here on something is to be told when it is over.
  if (!pre.any() && !post.any() && reported == 0) return;

  if (pre.any()) {
    const PublishResult asked = ask(issuing, arguments, view.async_op, op);
    const bool guardless = asked == PublishCode::too_deep || asked == PublishCode::no_memory;
    if (asked == PublishCode::vetoed || guardless) {
      issuing.go_on_ = !follows_vetoes;
      issuing.reason_ = asked == PublishCode::vetoed     ? asked.why
                        : asked == PublishCode::too_deep ? too_deep
                                                         : no_memory;
    }
    // A hook may have given the group up.
    if (!issuing.go_on_ || refuse_if_over(issuing))
      return issuing.over(Outcome::refused, nullptr, nullptr, issuing.reason_);
  }
  if (reported != 0) issuing.inside_.emplace(marks(), reported);
}

void CommunicatorCore::call_post(const Issuing& issuing, Outcome outcome, const void* work,
                                 const Communicator* part, Name reason) noexcept {
  if (!post.any()) return;
  const Communicator self(issuing.hold_);
  const Ledger::Outside no_mark;
  PostHookArgs args;
  args.op_id = issuing.operation_.id();
  args.work = work;
  args.communicator = &self;
  args.new_comm = part;
  args.op = issuing.operation_.op_;
  args.reason = reason;
  args.name = issuing.name_;
  args.outcome = outcome;
  (void)post.call(args);  // what it misses the bus counts
}

}  // namespace detail

Operation::Operation(const detail::CommunicatorCore* core, std::uint64_t id, std::uint64_t reported,
                     Name op) noexcept
    : held_(core), id_(id), reported_(reported), op_(op) {}

const detail::CommunicatorCore& Operation::core() const noexcept {
  return static_cast<const detail::CommunicatorCore&>(*held_);
}

bool Operation::started(Started what) const noexcept {
  return reported_ != 0 && core().reports().started(reported_, what);
}
bool Operation::completed(Completed what) const noexcept {
  return reported_ != 0 && core().reports().completed(reported_, what);
}
bool Operation::failed(Failed what) const noexcept {
  return reported_ != 0 && core().reports().failed(reported_, what);
}
bool Operation::failed(std::string_view reason) const noexcept {
  if (reported_ == 0) return false;
  Failed what;
  what.reason = Name(reason);
  what.thread = static_cast<std::int32_t>(run::this_tid());
  return failed(what);
}

std::int64_t Operation::begin_wait() const noexcept {
  if (id_ == 0 || !core().marks().waits_heard()) return 0;
  const std::int64_t now = engine::now_ns();
  say_wait(Edge::begin, 0);
  return now;
}
void Operation::end_wait(std::int64_t begun) const noexcept {
  if (id_ != 0 && begun != 0) say_wait(Edge::end, engine::now_ns() - begun);
}
void Operation::say_wait(Edge edge, std::int64_t waited_ns) const noexcept {
  Wait said;
  said.op_id = id_;
  said.duration_ns = waited_ns;
  said.op = op_;
  said.group = core().name;
  said.source = core().source;
  said.rank = core().rank;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  said.operations = 1;
  said.edge = edge;
  core().reports().say(said);
}

Issuing::Issuing(const std::shared_ptr<detail::CommunicatorHold>& hold, const Arguments& arguments,
                 const Issued* said) noexcept {
  if (hold == nullptr) return;
  hold->core->issue(*this, hold, arguments, said);
  if (!go_on_) hold_.reset();  // there is no call
}

Issuing::~Issuing() {
  if (hold_ == nullptr) return;
  if (std::uncaught_exceptions() > exceptions_) {
    threw("the backend threw an exception");
  } else {
    returned();
  }
}

void Issuing::threw(std::string_view what) noexcept {
  if (hold_ != nullptr) over(Outcome::threw, nullptr, nullptr, Name(what));
}
void Issuing::threw(Failed what) noexcept {
  if (hold_ == nullptr) return;
  inside_.reset();
  if (what.thread == 0) what.thread = static_cast<std::int32_t>(run::this_tid());
  (void)operation_.failed(what);
  hold_->core->call_post(*this, Outcome::threw, nullptr, nullptr, what.reason);
  hold_.reset();
}

void Issuing::over(Outcome outcome, const void* work, const Communicator* part,
                   Name reason) noexcept {
  if (hold_ == nullptr) return;
  inside_.reset();
  if (outcome != Outcome::issued) {
    Failed what;
    what.reason = reason;
    what.how = outcome == Outcome::refused ? How::vetoed : How::error;
    what.thread = static_cast<std::int32_t>(run::this_tid());
    (void)operation_.failed(what);
  } else if (lifecycle_) {
    (void)operation_.completed();
  }
  hold_->core->call_post(*this, outcome, work, part, reason);
  hold_.reset();
}

}  // namespace ringmain::collective
