#include "adapters/sources/collective/collective_ledger.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"
#include "engine/system/fork.hpp"

#include "bus/core/erased.hpp"

#include "adapters/sources/collective/collective_current.hpp"
#include "adapters/sources/collective/collective_ledger_core.hpp"

namespace ringmain::collective {
namespace {

using detail::Facts;

/// Fields that every word on an operation has, and that its reporter may have left as they are.
template <class E>
void complete_with(E& said, std::uint64_t op_id, const Facts& facts) noexcept {
  const auto fill = [](auto& field, auto nothing, auto known) {
    if (field == nothing) field = known;
  };
  said.op_id = op_id;
  fill(said.sequence, std::uint64_t{0}, facts.sequence);
  fill(said.bytes, std::uint64_t{0}, facts.bytes);
  if (said.bytes == kNoBytes) said.bytes = 0;
  fill(said.stream, kNoStream, facts.stream);
  fill(said.op, Name{}, facts.op());
  fill(said.group, Name{}, facts.group());
  fill(said.backend, Name{}, facts.dtype_backend.second());
  fill(said.source, Name{}, facts.source_communicator.first());
  fill(said.rank, kNoRank, facts.peer_rank.second());
  fill(said.group_size, std::int32_t{0}, facts.size_device.first());
  fill(said.device, kNoDevice, facts.size_device.second());
  if constexpr (requires { said.correlation; })
    fill(said.correlation, std::uint64_t{0}, facts.correlation);
  if constexpr (requires { said.dtype; }) fill(said.dtype, Name{}, facts.dtype_backend.first());
  if constexpr (requires { said.peer; }) fill(said.peer, kNoRank, facts.peer_rank.first());
}

Facts facts_of(const Issued& what, std::uint32_t communicator) noexcept {
  return {what.sequence,
          what.bytes,
          what.correlation,
          what.stream,
          0,
          {what.op, what.group},
          {what.dtype, what.backend},
          {what.source, communicator},
          {what.peer, what.rank},
          {what.group_size, what.device},
          std::int64_t{what.timeout_s} * 1'000'000'000};
}

// In the library's own part of a thread's memory, where it is found without a call.
constinit thread_local Ledger::Mark marked __attribute__((tls_model("initial-exec"))){};

struct Known {
  const ringmain::detail::BusCore* bus;
  std::weak_ptr<Ledger> ledger;
};
struct Registry {
  engine::ForkMutex mutex{engine::kForkLedgers};  // it is held while a bus's locks are taken
  std::vector<Known> known;
};
/// Never destroyed: libraries that end after this one may ask.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

}  // namespace

bool Ledger::Core::heard() const noexcept {
  return channel<Issued>().wanted() || channel<Started>().wanted() ||
         channel<Completed>().wanted() || channel<Failed>().wanted() || ends.any();
}

void Ledger::Core::tell_hooks(std::uint64_t op_id, std::uint32_t communicator,
                              const Completed* completed, const Failed* failed) noexcept {
  if (!ends.any()) return;
  const Outside no_mark;
  (void)ends.call({{op_id, completed, failed}, communicator});  // what it misses the bus counts
}

std::uint64_t Ledger::Core::issue(const Issued& what, std::uint32_t communicator) noexcept {
  Facts facts = facts_of(what, communicator);
  return issue_made(facts, [&what](std::uint64_t op_id) noexcept {
    Issued said = what;
    said.op_id = op_id;
    if (said.thread == 0) said.thread = static_cast<std::int32_t>(run::this_tid());
    return said;
  });
}

void Ledger::Core::fail_without_room(std::uint64_t op_id, const Facts& facts) noexcept {
  ++unknown;
  Failed said;
  complete_with(said, op_id, facts);
  said.reason = no_room;
  said.how = How::unknown;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  channel<Failed>().post(said);
  tell_hooks(op_id, facts.communicator(), nullptr, &said);
}

bool Ledger::Core::end_as(std::uint64_t op_id, How how, Name reason) noexcept {
  detail::Open::Ended one;
  if (!open.end(op_id, one)) return false;  // it has just ended by itself
  Failed said;
  complete_with(said, op_id, one.facts);
  said.elapsed_ns = engine::now_ns() - one.facts.issued_ns;
  said.reason = reason;
  said.how = how;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  channel<Failed>().post(said);
  tell_hooks(op_id, one.facts.communicator(), nullptr, &said);
  return true;
}

std::uint32_t Ledger::Core::end_communicator(std::uint32_t communicator, How how,
                                             Name reason) noexcept {
  std::uint32_t ended = 0;
  open.for_each([&](std::uint64_t op_id, const Facts& facts) {
    if (facts.communicator() == communicator && end_as(op_id, how, reason)) ++ended;
  });
  return ended;
}

Ledger::Ledger(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Ledger::~Ledger() {
  if (core_->forked()) engine::keep_from_before_fork(core_.release());  // the bus is the parent's
}

Result<std::shared_ptr<Ledger>> Ledger::of(Bus& bus) {
  ringmain::detail::BusCore* const wanted = &ringmain::detail::Erased::core(bus);
  Registry& shared = registry();
  const std::lock_guard lock(shared.mutex);
  auto& all = shared.known;
  std::erase_if(all, [](const Known& one) { return one.ledger.expired(); });
  for (const Known& one : all) {
    if (one.bus != wanted) continue;
    if (auto ledger = one.ledger.lock()) return ledger;
  }
  auto core = std::make_unique<Core>(*wanted);
  if (auto conflict = run::hold_channels(bus, core->channels)) return std::move(*conflict);
  const std::shared_ptr<Ledger> made(new Ledger(std::move(core)));
  all.push_back({wanted, made});
  return made;
}

bool Ledger::heard() const noexcept {
  return core_->heard();
}

bool Ledger::hooked_or_heard() const noexcept {
  return core_->hooked || core_->heard();
}

std::uint64_t Ledger::issue(const Issued& what) noexcept {
  return heard() ? core_->issue(what, 0) : 0;
}

bool Ledger::started(std::uint64_t op_id, Started what) noexcept {
  if (op_id == 0) return false;
  const std::int64_t now = engine::now_ns();
  const auto facts = core_->open.begin(op_id, now);
  if (!facts) return core_->late();
  complete_with(what, op_id, *facts);
  if (what.queued_ns == 0) what.queued_ns = now - facts->issued_ns;
  core_->channel<Started>().post(what);
  return true;
}

/// Nothing is known but what issue() was told, so the event is made in its place in the queue.
bool Ledger::completed(std::uint64_t op_id) noexcept {
  detail::Open::Ended ended;
  if (!core_->open.end(op_id, ended)) return op_id != 0 && core_->late();
  const Facts& facts = ended.facts;
  // Hidden: or the two are read back by one load, which waits until both are stored.
  const auto begun =
      static_cast<std::int64_t>(engine::hidden(static_cast<std::uint64_t>(ended.begun_at)));
  const std::int64_t issued = facts.issued_ns;
  const auto make = [&facts, op_id, begun, issued]() noexcept {
    Completed said;
    said.op_id = op_id;
    said.sequence = facts.sequence;
    said.bytes = facts.bytes == kNoBytes ? 0 : facts.bytes;
    said.correlation = facts.correlation;
    said.stream = facts.stream;
    said.queued_ns = begun != 0 ? begun - issued : 0;
    said.duration_ns = engine::now_ns() - (begun != 0 ? begun : issued);
    said.op = facts.op();
    said.group = facts.group();
    said.dtype = facts.dtype_backend.first();
    said.backend = facts.dtype_backend.second();
    said.rank = facts.peer_rank.second();
    said.group_size = facts.size_device.first();
    said.device = facts.size_device.second();
    said.source = facts.source_communicator.first();
    return said;
  };
  if (core_->ends.any()) [[unlikely]] {
    const Completed said = make();
    core_->channel<Completed>().post(said);
    core_->tell_hooks(op_id, facts.communicator(), &said, nullptr);
  } else {
    (void)core_->channel<Completed>().publish_with(make);
  }
  return true;
}

bool Ledger::completed(std::uint64_t op_id, Completed what) noexcept {
  if (op_id == 0) return false;
  detail::Open::Ended ended;
  if (!core_->open.end(op_id, ended)) return core_->late();
  const std::int64_t now = engine::now_ns(), issued = ended.facts.issued_ns;
  complete_with(what, op_id, ended.facts);
  if (what.queued_ns == 0 && ended.begun_at != 0) what.queued_ns = ended.begun_at - issued;
  if (what.duration_ns == 0)
    what.duration_ns = now - (ended.begun_at != 0 ? ended.begun_at : issued);
  core_->channel<Completed>().post(what);
  core_->tell_hooks(op_id, ended.facts.communicator(), &what, nullptr);
  return true;
}

bool Ledger::failed(std::uint64_t op_id, Failed what) noexcept {
  if (op_id == 0) return false;
  detail::Open::Ended ended;
  if (!core_->open.end(op_id, ended)) return core_->late();
  complete_with(what, op_id, ended.facts);
  if (what.elapsed_ns == 0) what.elapsed_ns = engine::now_ns() - ended.facts.issued_ns;
  core_->channel<Failed>().post(what);
  core_->tell_hooks(op_id, ended.facts.communicator(), nullptr, &what);
  return true;
}

std::uint32_t Ledger::end_group(Name group, Name reason) noexcept {
  std::uint32_t ended = 0;
  core_->open.for_each([&](std::uint64_t op_id, const Facts& facts) {
    if (facts.group() == group && core_->end_as(op_id, How::cancelled, reason)) ++ended;
  });
  return ended;
}

void Ledger::say(const Group& what) noexcept {
  core_->channel<Group>().post(what);
}
void Ledger::say(const Wait& what) noexcept {
  core_->channel<Wait>().post(what);
}
void Ledger::say(const Abort& what) noexcept {
  core_->channel<Abort>().post(what);
}
void Ledger::say(const Shapes& what) noexcept {
  core_->channel<Shapes>().post(what);
}
bool Ledger::waits_heard() const noexcept {
  return core_->channel<Wait>().wanted();
}
bool Ledger::shapes_heard() const noexcept {
  return core_->channel<Shapes>().wanted();
}

std::vector<Overdue> Ledger::overdue(nanoseconds from_issue, nanoseconds from_start) const {
  std::vector<Overdue> late;
  const std::int64_t now = engine::now_ns();
  core_->open.for_each([&](std::uint64_t op_id, const Facts& facts) {
    const auto begun = core_->open.begun_at(op_id);
    if (!begun) return;  // it has ended meanwhile
    const bool has_begun = *begun != 0;
    const std::int64_t waits = now - (has_begun ? *begun : facts.issued_ns);
    if (waits <= (has_begun ? from_start : from_issue).count()) return;
    late.push_back({op_id, waits, has_begun, facts.peer_rank.second(), facts.op(), facts.group(),
                    facts.timeout_ns});
  });
  return late;
}

LedgerFigures Ledger::figures() const noexcept {
  LedgerFigures now{core_->issued.total(), core_->unknown, core_->late_words, 0};
  core_->open.for_each([&](std::uint64_t, const Facts&) { ++now.open; });
  return now;
}

std::uint64_t Ledger::mark() const noexcept {
  return marked.ledger == this ? marked.op_id : 0;
}

std::uint64_t Ledger::marked_as(Name op) const noexcept {
  const std::uint64_t id = mark();
  const auto facts = core_->open.find(id);
  return facts && facts->op() == op ? id : 0;
}

Ledger::Inside::Inside(const Ledger& ledger, std::uint64_t op_id) noexcept : before_(marked) {
  if (op_id != 0 && marked.ledger != &ledger) marked = {&ledger, op_id};
}
Ledger::Inside::~Inside() {
  marked = before_;
}
Ledger::Outside::Outside() noexcept
    : before_(std::exchange(marked, Mark{})), current_before_(detail::exchange_current(0)) {}
Ledger::Outside::~Outside() {
  marked = before_;
  (void)detail::exchange_current(current_before_);
}

std::uint64_t detail::marked_operation() noexcept {
  return marked.op_id != 0 && !marked.ledger->core_->forked() ? marked.op_id : 0;
}

}  // namespace ringmain::collective
