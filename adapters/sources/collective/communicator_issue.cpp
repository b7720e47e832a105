// What happens around one operation? It is issued, pre hooks are asked, the backend is called with
// the thread marked, and post hooks are told.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
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

/// A group's end is no operation, and operations before and after it have numbers one after the
/// other. Its own goes down from the largest, so that hooks tell two ends apart.
std::uint64_t finalize_op_id() noexcept {
  constinit static std::atomic<std::uint64_t> next{~std::uint64_t{0}};
  return next--;
}

// Refused by one that could not be asked, and may be a guard.
const Name too_deep("hooks are nested 8 deep in this thread, so no more can be asked");
const Name no_memory("there is no memory to ask the hooks");

}  // namespace

bool CommunicatorCore::refuse_if_over(Call& call) const noexcept {
  const std::uint32_t why = over();
  if (why == 0) return false;
  call.go_on = false;
  call.reason = (why & kEnded) != 0 ? has_ended : was_aborted;
  return true;
}

/// Whoever ends the communicator says so, makes all threads pass a barrier and looks for what is
/// open then: it has seen this one, or it is seen here that it is over.
bool CommunicatorCore::end_if_over(std::uint64_t op_id) noexcept {
  engine::asymmetric_fence_light_or_full();
  const std::uint32_t why = over();
  if (why == 0) return false;
  const bool was_end = (why & kEnded) != 0;
  (void)ledger().end_as(op_id, was_end ? How::cancelled : How::aborted,
                        was_end ? has_ended : was_aborted);
  return true;
}

std::uint64_t CommunicatorCore::numbered(const Arguments& arguments, const Issued* said) noexcept {
  if (!counts) return said == nullptr ? 0 : said->sequence;
  return is_collective(arguments) ? collectives.number() : 0;
}

std::uint16_t CommunicatorCore::timeout_s(std::int64_t own_ns) const noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000, kMax = 0xffff;
  const std::int64_t ns =
      std::clamp<std::int64_t>(own_ns > 0 ? own_ns : timeout_ns.load(), 0, kMax * kSecond);
  return static_cast<std::uint16_t>((ns + kSecond - 1) / kSecond);
}

std::uint64_t CommunicatorCore::issued(const ArgumentsView& view, Name op, std::uint64_t sequence,
                                       std::uint64_t transfer, std::int64_t own_ns) noexcept {
  const Size in = size_of(view.input);
  const bool in_place =
      view.input.data() == view.output.data() && view.input.size() == view.output.size();
  const Size out = in_place ? in : size_of(view.output);
  const Name dtype = !view.input.empty()    ? view.input.front().dtype
                     : !view.output.empty() ? view.output.front().dtype
                                            : Name();
  const std::uint64_t bytes = std::max(in.bytes, out.bytes);
  // Hidden: or both are put on the stack one by one, and read back by one load, which waits.
  const auto make = [this, sequence, transfer, bytes, own_ns,
                     in_elements = engine::hidden(in.elements),
                     out_elements = engine::hidden(out.elements), op, dtype, peer = view.peer,
                     async = view.async_op](std::uint64_t op_id) noexcept {
    Issued what;
    what.op_id = op_id;
    what.sequence = sequence;
    what.bytes = bytes;
    what.in_elements = in_elements;
    what.out_elements = out_elements;
    what.op = op;
    what.group = name;
    what.dtype = dtype;
    what.backend = backend;
    what.peer = peer;
    what.rank = rank;
    what.group_size = size;
    what.device = device;
    what.thread = static_cast<std::int32_t>(run::this_tid());
    what.asynchronous = async;
    what.source = source;
    what.timeout_s = timeout_s(own_ns);
    what.p2p_sequence = static_cast<std::uint32_t>(transfer);
    return what;
  };
  Facts facts{sequence,
              bytes,
              0,
              kNoStream,
              0,
              {op, name},
              {dtype, backend},
              {source, number},
              {view.peer, rank},
              {size, device},
              own_ns};
  return ledger().issue_made(facts, make);
}

std::uint64_t CommunicatorCore::issued(const Issued& said, std::uint64_t sequence,
                                       std::uint64_t transfer, std::int64_t own_ns) noexcept {
  const Name by = said.backend == Name() ? backend : said.backend;
  const auto make = [this, sequence, transfer, by, own_ns, &said](std::uint64_t op_id) noexcept {
    Issued what = said;
    what.op_id = op_id;
    what.sequence = sequence;
    what.group = name;
    what.backend = by;
    what.rank = rank;
    what.group_size = size;
    what.thread = said.thread != 0 ? said.thread : static_cast<std::int32_t>(run::this_tid());
    what.source = source;
    if (what.timeout_s == 0) what.timeout_s = timeout_s(own_ns);
    if (what.p2p_sequence == 0) what.p2p_sequence = static_cast<std::uint32_t>(transfer);
    return what;
  };
  Facts facts{sequence,
              said.bytes,
              said.correlation,
              said.stream,
              0,
              {said.op, name},
              {said.dtype, by},
              {source, number},
              {said.peer, rank},
              {size, said.device},
              own_ns > 0 ? own_ns : std::int64_t{said.timeout_s} * 1'000'000'000};
  return ledger().issue_made(facts, make);
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

PublishResult CommunicatorCore::ask(const Call& call, const Arguments& arguments, bool async,
                                    Name op, std::uint64_t sequence) noexcept {
  const Communicator self(call.comm);
  const Ledger::Outside no_mark;  // what a hook calls for is an operation of its own
  return pre.call({call.operation.id(), &arguments, &self, op, call.name, async, sequence});
}

bool CommunicatorCore::issue(Issuing& issuing, const std::shared_ptr<CommunicatorGate>& self,
                             const Arguments& arguments, const Issued* said,
                             IssueOptions how) noexcept {
  if (forked()) return false;
  const auto begun = [&issuing]() -> Call& { return *::new (&issuing.call_) Call; };
  if (over() != 0) return refuse_if_over(begun());
  const Look since = look();
  const std::uint64_t sequence = numbered(arguments, said);
  const std::uint64_t transfer = number_of_transfer(arguments);
  const bool hooked = pre.any() || post.any(), shapes = shapes_heard();
  bool heard = this->heard();
  if (!heard && !hooked && !shapes) {
    found_nobody(since);
    return false;
  }
  heard = heard || (how.shown && shapes);
  if (!heard && !(how.shown && hooked)) return false;

  const ArgumentsView view = view_of(arguments);
  const Name op = said != nullptr ? said->op : word_of(arguments);
  Call& call = begun();
  call.comm = self;  // before anybody is told, who may let go of the caller's
  call.name = op_name(arguments);
  call.lifecycle = view.lifecycle;
  call.exceptions = std::uncaught_exceptions();
  const std::uint64_t outer = marks().mark();
  call.how = how;
  if (outer != 0) call.how.ends = true;  // the outer one's end is not this one's to forget
  std::uint64_t id = outer, reported = outer == 0 ? 0 : marks().marked_as(op);
  const bool told = call.name != OpName::finalize;  // a group's end is an event of its own
  if (outer == 0 && heard && told) {
    reported = id = said != nullptr ? issued(*said, sequence, transfer, how.timeout.count())
                                    : issued(view, op, sequence, transfer, how.timeout.count());
  } else if (id == 0) {
    id = told ? new_op_id() : finalize_op_id();
  }
  call.operation = Operation(this, id, reported != 0, op);
  if (end_if_over(outer == 0 && told ? id : 0)) return refuse_if_over(call);
  if (told && how.shown && shapes) say_shapes(id, view, op);
  // From here on something is to be told when it is over.
  call.under_way = true;
  if (!pre.any() && !post.any() && reported == 0) return true;

  if (how.shown && pre.any() && !ask_hooks(call, arguments, view.async_op, op, sequence)) {
    issuing.over(Outcome::refused, nullptr, nullptr, call.reason);
    return true;
  }
  if (reported != 0) call.mark.set(marks(), reported, !call.how.ends);
  return true;
}

bool CommunicatorCore::ask_hooks(Call& call, const Arguments& arguments, bool async, Name op,
                                 std::uint64_t sequence) noexcept {
  const PublishResult asked = ask(call, arguments, async, op, sequence);
  const bool guardless = asked == PublishCode::too_deep || asked == PublishCode::no_memory;
  if (asked == PublishCode::vetoed || guardless) {
    call.vetoed = true;
    call.go_on = !follows_vetoes;
    call.reason = asked == PublishCode::vetoed     ? asked.why
                  : asked == PublishCode::too_deep ? too_deep
                                                   : no_memory;
  }
  return call.go_on && !refuse_if_over(call);  // a hook may have given the group up
}

void CommunicatorCore::call_post(const Call& call, Outcome outcome, const void* work,
                                 const Communicator* part, Name reason) noexcept {
  if (!call.how.shown || !post.any()) return;
  const Communicator self(call.comm);
  const Ledger::Outside no_mark;
  PostHookArgs args;
  args.op_id = call.operation.id();
  args.work = work;
  args.communicator = &self;
  args.new_comm = part;
  args.op = call.operation.op_;
  args.reason = reason;
  args.name = call.name;
  args.outcome = outcome;
  (void)post.call(args);  // what it misses the bus counts
}

}  // namespace detail

void Operation::hold(const detail::CommunicatorCore* core) noexcept {
  core->engine::Counted::hold();
}
void Operation::let_go(const detail::CommunicatorCore* core) noexcept {
  core->release();
}

bool Operation::completed_in(const detail::CommunicatorCore* core, std::uint64_t id) noexcept {
  return core->reports().completed(id);
}
bool Operation::started(Started what) const noexcept {
  return reported_ && core_->reports().started(id_, what);
}
bool Operation::completed(Completed what) const noexcept {
  return reported_ && core_->reports().completed(id_, what);
}
bool Operation::failed(Failed what) const noexcept {
  return reported_ && core_->reports().failed(id_, what);
}
bool Operation::failed(std::string_view reason) const noexcept {
  if (!reported_) return false;
  Failed what;
  what.reason = Name(reason);
  what.thread = static_cast<std::int32_t>(run::this_tid());
  return failed(what);
}

void Operation::forget() const noexcept {
  if (reported_) core_->forget(id_);
}

std::int64_t Operation::begin_wait() const noexcept {
  if (id_ == 0 || !core_->marks().waits_heard()) return 0;
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
  said.group = core_->name;
  said.source = core_->source;
  said.rank = core_->rank;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  said.operations = 1;
  said.edge = edge;
  core_->reports().say(said);
}

bool Issuing::begin(const std::shared_ptr<detail::CommunicatorGate>& comm,
                    const Arguments& arguments, const Issued* said, IssueOptions how) noexcept {
  return detail::core_of(comm)->issue(*this, comm, arguments, said, how);
}

void Issuing::leave() noexcept {
  if (call_.under_way) {
    if (std::uncaught_exceptions() > call_.exceptions) {
      threw("the backend threw an exception");
    } else {
      returned();
    }
  }
  call_.~Call();
}

void Issuing::threw(std::string_view what) noexcept {
  if (told_ && call_.under_way) over(Outcome::threw, nullptr, nullptr, Name(what));
}
void Issuing::threw(Failed what) noexcept {
  if (!told_ || !call_.under_way) return;
  call_.mark.take_away();
  if (what.thread == 0) what.thread = static_cast<std::int32_t>(run::this_tid());
  (void)call_.operation.failed(what);
  detail::core_of(call_.comm)->call_post(call_, Outcome::threw, nullptr, nullptr, what.reason);
  call_.under_way = false;
}

void Issuing::over(Outcome outcome, const void* work, const Communicator* part,
                   Name reason) noexcept {
  if (!call_.under_way) return;
  call_.mark.take_away();
  if (outcome != Outcome::issued) {
    Failed what;
    what.reason = reason;
    what.how = outcome == Outcome::refused ? How::vetoed : How::error;
    what.thread = static_cast<std::int32_t>(run::this_tid());
    (void)call_.operation.failed(what);
  } else if (call_.lifecycle) {
    (void)call_.operation.completed();
  } else if (!call_.how.ends && !call_.mark.is_promised()) {
    detail::core_of(call_.comm)->forget(call_.operation.id());
  }
  detail::core_of(call_.comm)->call_post(call_, outcome, work, part, reason);
  call_.under_way = false;
}

}  // namespace ringmain::collective
