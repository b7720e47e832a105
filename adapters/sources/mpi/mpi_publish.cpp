#include "adapters/sources/mpi/mpi_publish.hpp"

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include "bus/origin.hpp"

#include "events/terms/collective_names.hpp"
#include "events/terms/collective_ranks.hpp"

#include "adapters/launch/channel_of.hpp"
#include "adapters/launch/tid.hpp"

namespace ringmain::mpi {
namespace {

using collective::Abort;
using collective::Completed;
using collective::Failed;
using collective::GroupChange;
using collective::Issued;
using collective::Ledger;
using collective::Wait;

constinit std::atomic<Channel<collective::Group>*> group_channel{nullptr};
/// nullptr until the program's bus has it. Never ended: programs end while they communicate.
constinit std::atomic<Ledger*> the_ledger{nullptr};
constinit std::atomic<Bus*> the_bus{nullptr};
std::atomic<Name> mpi{};  // as backend and as source

std::int32_t this_thread() noexcept {
  return static_cast<std::int32_t>(run::this_tid());
}

/// What is known of it, to say that it changed.
collective::Group about(const Group& group, GroupChange change) noexcept {
  collective::Group said;
  said.group = group.name;
  said.backend = mpi;
  said.source = mpi;
  said.rank = group.rank;
  said.group_size = group.size;
  said.thread = this_thread();
  said.change = change;
  return said;
}

}  // namespace

Result<bool> publish_on(Bus& bus) {
  mpi = Name(collective::kMpi);
  const auto found = run::channel_of<collective::Group>(bus);
  if (!found) return found.error();
  auto ledger = Ledger::of(bus);
  if (!ledger) return ledger.error();
  static auto* const held = new std::shared_ptr<Ledger>(std::move(ledger).value());
  group_channel = found.value();
  the_bus = &bus;
  the_ledger = held->get();
  return true;
}

Bus* bus() noexcept {
  return the_bus;
}
bool opened() noexcept {
  return the_ledger != nullptr;
}

bool heard() noexcept {
  const Ledger* const ledger = the_ledger;
  return ledger != nullptr && (ledger->hooked_or_heard() || group_channel.load()->wanted());
}
bool waits_are_heard() noexcept {
  const Ledger* const ledger = the_ledger;
  return ledger != nullptr && ledger->waits_heard();
}

collective::Issued issued_event(const Operation& operation, bool asynchronous) noexcept {
  Issued said;
  said.sequence = operation.sequence;
  said.p2p_sequence = static_cast<std::uint32_t>(operation.p2p_sequence);
  said.bytes = operation.bytes;
  said.in_elements = operation.in_elements;
  said.out_elements = operation.out_elements;
  said.op = operation.name;
  said.group = operation.group;
  said.dtype = operation.dtype;
  said.backend = mpi;
  said.source = mpi;
  said.peer = operation.peer;
  said.rank = operation.rank;
  said.group_size = operation.group_size;
  said.thread = this_thread();
  said.asynchronous = asynchronous;
  return said;
}

void issued(Operation& operation, bool asynchronous) noexcept {
  Ledger& ledger = *the_ledger;
  operation.op_id = ledger.mark();
  operation.reported = operation.op_id == 0
                           ? operation.op_id = ledger.issue(issued_event(operation, asynchronous))
                           : ledger.marked_as(operation.name);
}

void take_ids(Operation& operation, std::uint64_t op_id) noexcept {
  operation.op_id = op_id;
  operation.reported = the_ledger.load()->marked_as(operation.name);
}

Inside::Inside(const Operation& operation) noexcept : mark_(*the_ledger, operation.op_id) {}

void completed(const Operation& operation, std::uint64_t bytes) noexcept {
  if (operation.reported == 0) return;
  Completed said;
  said.bytes = bytes != 0 ? bytes : collective::kNoBytes;
  said.source = mpi;
  said.thread = this_thread();
  (void)the_ledger.load()->completed(operation.reported, said);
}

void failed(const Operation& operation, collective::Failed said) noexcept {
  if (operation.reported == 0) return;
  said.source = mpi;
  said.thread = this_thread();
  (void)the_ledger.load()->failed(operation.reported, said);
}

void lost_sight_of(const Operation& operation, std::string_view why) noexcept {
  Failed said;
  said.reason = Name(why);
  said.how = collective::How::unknown;
  failed(operation, said);
}

void group_made(const Group& group, std::span<const int> world) noexcept {
  collective::Group said = about(group, GroupChange::made);
  collective::write_ranks(said.ranks, world);
  if (opened()) the_ledger.load()->say(said);
}

void group_ended(const Group& group) noexcept {
  collective::Group said = about(group, GroupChange::ended);
  said.operations = group.collectives;
  if (opened()) the_ledger.load()->say(said);
}

void waits(collective::Edge edge, const Operation* operation, std::uint32_t operations,
           std::int64_t waited_ns) noexcept {
  Wait said;
  if (operation != nullptr) {
    said.op_id = operation->op_id;
    said.op = operation->name;
    said.group = operation->group;
    said.rank = operation->rank;
  }
  said.operations = operations;
  said.duration_ns = waited_ns;
  said.source = mpi;
  said.thread = this_thread();
  said.edge = edge;
  the_ledger.load()->say(said);
}

void aborts(const Group& group, int code) noexcept {
  Abort said;
  said.incident = new_op_id();
  said.group = group.name;
  said.asked_by = Name("application");
  char text[48] = {};
  (void)std::snprintf(text, sizeof text, "MPI_Abort with error code %d", code);
  said.reason = Name(text);
  said.source = mpi;
  said.rank = group.rank;
  said.thread = this_thread();
  the_ledger.load()->say(said);
}

}  // namespace ringmain::mpi
