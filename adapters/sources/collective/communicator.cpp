#include "adapters/sources/collective/communicator.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "events/terms/collective_ranks.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/collective/communicator_core.hpp"

namespace ringmain::collective {
namespace detail {
namespace {

/// Why no communicator can be made of them; "": one can.
std::string fault_of(const CommunicatorOptions& options) {
  if (options.name.empty())
    return "a communicator needs the name of its group; set CommunicatorOptions::name";
  const std::string who = "communicator '" + std::string(options.name) + "': ";
  if (options.size < 1)
    return who + "size is " + std::to_string(options.size) + "; a group has at least one rank";
  if (options.rank < 0 || options.rank >= options.size)
    return who + "rank is " + std::to_string(options.rank) + ", and must be from 0 to " +
           std::to_string(options.size - 1);
  if (!options.ranks.empty() && options.ranks.size() != static_cast<std::size_t>(options.size))
    return who + std::to_string(options.ranks.size()) + " ranks are given of a group of " +
           std::to_string(options.size) + "; give all of them, or none";
  return {};
}

/// The same of its bus.
std::string fault_of(const Ledger::Core& ledger, std::string_view name) {
  const std::string who = "communicator '" + std::string(name) + "': ";
  if (ledger.forked())
    return who + "the bus belongs to the process that forked this one; make a Bus in the child";
  if (ledger.stopped()) return who + "the bus has stopped; make it before stop()";
  return {};
}

}  // namespace

CommunicatorCore::CommunicatorCore(std::shared_ptr<Ledger> ledger,
                                   const CommunicatorOptions& options, Name parent_name)
    : CommunicatorGate(ledger->core_->bus_core->arrivals()),
      ledger_(std::move(ledger)),
      number(++this->ledger().communicators_made),
      name(options.name),
      description(options.description),
      backend(options.backend),
      source(options.source),
      parent(parent_name),
      rank(options.rank),
      size(options.size),
      device(options.device),
      ranks(options.ranks.begin(), options.ranks.end()),
      follows_vetoes(options.follows_vetoes),
      counts(options.counts),
      give_up(options.abort),
      timeout_ns(options.timeout.count()),
      issued_line_(this->ledger().line<Issued>()),
      shapes_line_(this->ledger().line<Shapes>()) {}

CommunicatorCore::~CommunicatorCore() {
  for (const auto& one : hooks) one->leave(*this);
}

std::string CommunicatorCore::row_name(std::string_view kind) const {
  return std::string(name.view()) + " " + std::string(kind) + " hooks";
}

Result<std::shared_ptr<OneHook>> CommunicatorCore::add(std::shared_ptr<OneHook> made) {
  if (forked() || is_over()) {
    return Error{Error::Code::refused, "communicator '" + std::string(name.view()) + "' " +
                                           (forked() ? "belongs to the process that forked this one"
                                                     : "has ended or was aborted") +
                                           "; register hooks on one that is in use"};
  }
  if (ledger().stopped()) {
    return Error{Error::Code::refused, "communicator '" + std::string(name.view()) +
                                           "': the bus has stopped; register hooks before stop()"};
  }
  forget_removed();
  const std::lock_guard lock(hooks_mutex);
  hooks.reserve(hooks.size() + 1);
  auto added = made->add_to(*this);
  if (!added) return added.error();
  hooks.push_back(made);
  ledger().hooked = true;
  return made;
}

void CommunicatorCore::forget_removed() {
  std::vector<std::shared_ptr<OneHook>> gone;  // ends when no lock is held
  {
    const std::lock_guard lock(hooks_mutex);
    for (const auto& one : hooks) {
      if (one->removed()) gone.push_back(one);
    }
  }
  for (const auto& one : gone) (void)one->remove(nanoseconds::zero());
  const std::lock_guard lock(hooks_mutex);
  std::erase_if(hooks, [](const auto& one) { return one->over(); });
}

Result<std::uint32_t> CommunicatorCore::inherit(CommunicatorCore& from) {
  std::vector<std::shared_ptr<OneHook>> all;
  {
    const std::lock_guard lock(from.hooks_mutex);
    all = from.hooks;
  }
  const std::lock_guard lock(hooks_mutex);
  hooks.reserve(all.size());
  for (const auto& one : all) {
    const auto added = one->add_to(*this);
    if (!added) return added.error();
    if (added.value()) hooks.push_back(one);
  }
  return static_cast<std::uint32_t>(hooks.size());
}

void CommunicatorCore::say_group(GroupChange change, std::uint32_t inherited,
                                 std::uint64_t operations) noexcept {
  Group said;
  said.group = name;
  said.description = description;
  said.backend = backend;
  said.parent = parent;
  said.source = source;
  said.rank = rank;
  said.group_size = size;
  said.hooks = inherited;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  said.change = change;
  said.operations = operations;
  write_ranks(said.ranks, ranks);
  reports().say(said);
}

void CommunicatorCore::say_split() noexcept {
  Group said;
  said.backend = backend;
  said.parent = name;
  said.source = source;
  said.thread = static_cast<std::int32_t>(run::this_tid());
  said.change = GroupChange::split;
  reports().say(said);
}

void CommunicatorCore::end(const EndOptions& how) noexcept {
  if (forked() || (is_over_by(kEnded) & kEnded) != 0) return;
  if (how.cancels) {
    (void)ledger().end_communicator(number, How::cancelled,
                                    how.reason.empty() ? has_ended : Name(how.reason));
  }
  say_group(GroupChange::ended, 0, counts ? collectives.total() : how.operations);
}

/// It can be found from here on.
std::shared_ptr<CommunicatorGate> CommunicatorHold::enter(engine::Ref<CommunicatorCore> core) {
  Ledger::Core& ledger = core->ledger();
  const std::lock_guard lock(ledger.communicators_mutex);
  auto& all = ledger.communicators;
  std::erase_if(all, [](const Entered& one) { return one.gate.expired(); });
  all.push_back({core->name, core->rank});
  CommunicatorGate* const gate = core.get();
  const std::shared_ptr<CommunicatorGate> made(std::make_shared<CommunicatorHold>(std::move(core)),
                                               gate);  // the last that may fail
  all.back().gate = made;
  return made;
}

std::shared_ptr<CommunicatorGate> CommunicatorHold::find(Ledger::Core& ledger, Name group,
                                                         std::int32_t rank) {
  std::vector<Entered> all;
  {
    const std::lock_guard lock(ledger.communicators_mutex);
    std::copy_if(ledger.communicators.begin(), ledger.communicators.end(), std::back_inserter(all),
                 [&](const Entered& one) {
                   return one.group == group && (rank == kNoRank || one.rank == rank);
                 });
  }
  // Without the lock: what is held here may be the last copy, which ends its communicator.
  std::shared_ptr<CommunicatorGate> given_up;
  for (const Entered& one : all) {
    auto held = one.gate.lock();
    if (held == nullptr || (held->over() & CommunicatorGate::kEnded) != 0) continue;
    if ((held->over() & CommunicatorGate::kAborted) == 0) return held;
    if (given_up == nullptr) given_up = std::move(held);  // unless it has a successor
  }
  return given_up;
}

}  // namespace detail

Result<Communicator> Communicator::make(Bus& bus, const CommunicatorOptions& options) try {
  if (auto fault = detail::fault_of(options); !fault.empty())
    return Error{Error::Code::refused, std::move(fault)};
  auto ledger = Ledger::of(bus);
  if (!ledger) return ledger.error();
  if (auto fault = detail::fault_of(*ledger.value()->core_, options.name); !fault.empty())
    return Error{Error::Code::refused, std::move(fault)};
  Communicator made(detail::CommunicatorHold::enter(
      new detail::CommunicatorCore(std::move(ledger).value(), options, {})));
  made.core()->say_group(GroupChange::made, 0);
  return made;
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "out of memory"};  // short: it is not allocated
}

Result<Communicator> Communicator::part(const CommunicatorOptions& options) const try {
  if (core() == nullptr || core()->forked() || core()->is_over()) {
    return Error{
        Error::Code::refused,
        "a communicator that is empty, has ended or was aborted cannot be split; split it before"};
  }
  if (auto fault = detail::fault_of(options); !fault.empty())
    return Error{Error::Code::refused, std::move(fault)};
  const engine::Ref<detail::CommunicatorCore> made =
      new detail::CommunicatorCore(core()->ledger_, options, core()->name);
  const auto hooks = made->inherit(*core());
  if (!hooks) return hooks.error();
  Communicator part(detail::CommunicatorHold::enter(made));
  made->say_group(GroupChange::split, hooks.value());
  return part;
} catch (const std::bad_alloc&) {
  return Error{Error::Code::no_memory, "out of memory"};  // short: it is not allocated
}

void Communicator::no_part() const noexcept {
  if (core() != nullptr && !core()->forked()) core()->say_split();
}

Communicator Communicator::find(Bus& bus, std::string_view group, std::int32_t rank) {
  const auto ledger = Ledger::of(bus);
  if (!ledger) return {};
  auto& core = *ledger.value()->core_;
  return core.forked() ? Communicator()
                       : Communicator(detail::CommunicatorHold::find(core, Name(group), rank));
}

Result<RemovableHandle> Communicator::parity(Result<Hook> made) {
  if (!made) return made.error();
  return std::move(made).value().keep();
}

detail::CommunicatorCore* Communicator::core() const noexcept {
  return detail::core_of(gate_);
}
Name Communicator::name() const noexcept {
  return core() == nullptr ? Name() : core()->name;
}
Name Communicator::backend() const noexcept {
  return core() == nullptr ? Name() : core()->backend;
}
std::int32_t Communicator::rank() const noexcept {
  return core() == nullptr ? kNoRank : core()->rank;
}
std::int32_t Communicator::size() const noexcept {
  return core() == nullptr ? 0 : core()->size;
}
nanoseconds Communicator::timeout() const noexcept {
  return nanoseconds(core() == nullptr ? 0 : core()->timeout_ns.load());
}
void Communicator::set_timeout(nanoseconds limit) const noexcept {
  if (core() != nullptr) core()->timeout_ns = limit.count();
}
bool Communicator::ended() const noexcept {
  return core() == nullptr || (core()->over() & detail::CommunicatorCore::kEnded) != 0;
}
bool Communicator::aborted() const noexcept {
  return core() != nullptr && (core()->over() & detail::CommunicatorCore::kAborted) != 0;
}
bool Communicator::supports_abort() const noexcept {
  return core() != nullptr && core()->give_up != nullptr;
}
void Communicator::end(const EndOptions& how) const noexcept {
  if (core() != nullptr) core()->end(how);
}
bool Communicator::shows_arguments() const noexcept {
  return core() != nullptr && core()->shows_arguments();
}
bool Communicator::heard() const noexcept {
  return core() != nullptr && (core()->heard() || core()->shows_arguments());
}

}  // namespace ringmain::collective
