#include "adapters/sources/collective/collective_ledger.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/system/clock.hpp"
#include "engine/system/fork.hpp"
#include "engine/system/open_table.hpp"

#include "bus/core/erased.hpp"
#include "bus/origin.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"

namespace ringmain::collective {
namespace {

/// What issue() was told, for those who say later what became of it.
struct Facts {
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::uint64_t stream = kNoStream;
  std::int64_t issued_ns = 0;
  Name op, group, dtype, backend, source;
  std::int32_t peer = kNoRank;
  std::int32_t rank = kNoRank;
  std::int32_t group_size = 0;
  std::int32_t device = kNoDevice;
  std::uint32_t unused = 0;  // whole words
};
using Open = engine::OpenTable<Facts>;
static_assert(2 * Open::bytes_each() <= 256);  // there are two places for each that may be open

/// Fields that every word on an operation has, and that its reporter may have left as they are.
template <class E>
void complete_with(E& said, std::uint64_t op_id, const Facts& facts) noexcept {
  const auto fill = [](auto& field, auto nothing, auto known) {
    if (field == nothing) field = known;
  };
  said.op_id = op_id;
  fill(said.sequence, std::uint64_t{0}, facts.sequence);
  fill(said.bytes, std::uint64_t{0}, facts.bytes);
  fill(said.stream, kNoStream, facts.stream);
  fill(said.op, Name{}, facts.op);
  fill(said.group, Name{}, facts.group);
  fill(said.backend, Name{}, facts.backend);
  fill(said.source, Name{}, facts.source);
  fill(said.rank, kNoRank, facts.rank);
  fill(said.group_size, std::int32_t{0}, facts.group_size);
  fill(said.device, kNoDevice, facts.device);
  if constexpr (requires { said.correlation; })
    fill(said.correlation, std::uint64_t{0}, facts.correlation);
  if constexpr (requires { said.dtype; }) fill(said.dtype, Name{}, facts.dtype);
  if constexpr (requires { said.peer; }) fill(said.peer, kNoRank, facts.peer);
}

Facts facts_of(const Issued& what, std::int64_t now) noexcept {
  return {what.sequence, what.bytes, what.correlation, what.stream,  now,
          what.op,       what.group, what.dtype,       what.backend, what.source,
          what.peer,     what.rank,  what.group_size,  what.device};
}

thread_local constinit struct {
  const Ledger* ledger = nullptr;
  std::uint64_t op_id = 0;
} marked;

struct Known {
  const detail::BusCore* bus;
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

struct Ledger::Core : engine::Born {
  explicit Core(Bus& bus) : bus_core(&detail::Erased::core(bus)), open(kOpenMax) {}

  template <class E>
  [[nodiscard]] Channel<E>& channel() const noexcept {
    return *std::get<run::ChannelHeld<E>>(channels).channel;
  }
  bool late() noexcept {
    ++late_words;
    return false;
  }

  engine::Ref<detail::BusCore> bus_core;
  std::tuple<run::ChannelHeld<Issued>, run::ChannelHeld<Started>, run::ChannelHeld<Completed>,
             run::ChannelHeld<Failed>>
      channels;
  Open open;
  Name no_room{"more operations were open than the ledger of 4096 remembers"};
  std::atomic<std::uint64_t> issued{0}, unknown{0}, late_words{0};
};

Ledger::Ledger(std::unique_ptr<Core> core) noexcept : core_(std::move(core)) {}
Ledger::~Ledger() {
  if (core_->forked()) engine::keep_from_before_fork(core_.release());  // the bus is the parent's
}

Result<std::shared_ptr<Ledger>> Ledger::of(Bus& bus) {
  const detail::BusCore* const wanted = &detail::Erased::core(bus);
  Registry& shared = registry();
  const std::lock_guard lock(shared.mutex);
  auto& all = shared.known;
  std::erase_if(all, [](const Known& one) { return one.ledger.expired(); });
  for (const Known& one : all) {
    if (one.bus != wanted) continue;
    if (auto ledger = one.ledger.lock()) return ledger;
  }
  auto core = std::make_unique<Core>(bus);
  if (auto conflict = run::hold_channels(bus, core->channels)) return std::move(*conflict);
  const std::shared_ptr<Ledger> made(new Ledger(std::move(core)));
  all.push_back({wanted, made});
  return made;
}

bool Ledger::heard() const noexcept {
  return core_->channel<Issued>().wanted() || core_->channel<Started>().wanted() ||
         core_->channel<Completed>().wanted() || core_->channel<Failed>().wanted();
}

std::uint64_t Ledger::issue(Issued what) noexcept {
  if (!heard()) return 0;
  what.op_id = new_op_id();
  if (what.thread == 0) what.thread = static_cast<std::int32_t>(run::this_tid());
  ++core_->issued;
  core_->channel<Issued>().post(what);
  // Only this thread knows the id yet: nobody can end it before it is open.
  if (!core_->open.open(what.op_id, facts_of(what, engine::now_ns()))) {
    ++core_->unknown;
    Failed said;
    complete_with(said, what.op_id, facts_of(what, 0));
    said.reason = core_->no_room;
    said.how = How::unknown;
    said.thread = what.thread;
    core_->channel<Failed>().post(said);
  }
  return what.op_id;
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

bool Ledger::completed(std::uint64_t op_id, Completed what) noexcept {
  if (op_id == 0) return false;
  const auto ended = core_->open.end(op_id);
  if (!ended) return core_->late();
  const std::int64_t now = engine::now_ns(), issued = ended->facts.issued_ns;
  complete_with(what, op_id, ended->facts);
  if (what.queued_ns == 0 && ended->begun_at != 0) what.queued_ns = ended->begun_at - issued;
  if (what.duration_ns == 0)
    what.duration_ns = now - (ended->begun_at != 0 ? ended->begun_at : issued);
  core_->channel<Completed>().post(what);
  return true;
}

bool Ledger::failed(std::uint64_t op_id, Failed what) noexcept {
  if (op_id == 0) return false;
  const auto ended = core_->open.end(op_id);
  if (!ended) return core_->late();
  complete_with(what, op_id, ended->facts);
  if (what.elapsed_ns == 0) what.elapsed_ns = engine::now_ns() - ended->facts.issued_ns;
  core_->channel<Failed>().post(what);
  return true;
}

std::uint32_t Ledger::end_group(Name group, Name reason) noexcept {
  std::uint32_t ended = 0;
  core_->open.for_each([&](std::uint64_t op_id, const Facts& facts) {
    if (facts.group != group) return;
    const auto one = core_->open.end(op_id);
    if (!one) return;  // it has just ended by itself
    ++ended;
    Failed said;
    complete_with(said, op_id, one->facts);
    said.elapsed_ns = engine::now_ns() - one->facts.issued_ns;
    said.reason = reason;
    said.how = How::cancelled;
    said.thread = static_cast<std::int32_t>(run::this_tid());
    core_->channel<Failed>().post(said);
  });
  return ended;
}

LedgerFigures Ledger::figures() const noexcept {
  LedgerFigures now{core_->issued, core_->unknown, core_->late_words, 0};
  core_->open.for_each([&](std::uint64_t, const Facts&) { ++now.open; });
  return now;
}

std::uint64_t Ledger::mark() const noexcept {
  return marked.ledger == this ? marked.op_id : 0;
}

Ledger::Inside::Inside(const Ledger& ledger, std::uint64_t op_id) noexcept
    : before_{marked.ledger, marked.op_id} {
  if (op_id != 0 && marked.ledger != &ledger) marked = {&ledger, op_id};
}
Ledger::Inside::~Inside() {
  marked = {before_.ledger, before_.op_id};
}

}  // namespace ringmain::collective
