// As what is MPI published? Its operations through the bus's ledger, as collective.issued,
// .completed and .failed, and what is around them as collective.group, .wait and .abort.
//
// A call inside another source's operation (a wrapper's, a process group's) is a part of that one:
// it is not issued. Where it is the same operation, its end is said under the outer one's id, and
// is the end of it if nobody has said that before: who called for it may leave it to MPI to say
// so. An all-reduce in a barrier of somebody's says nothing.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "bus/bus.hpp"

#include "events/collective.hpp"
#include "events/collective_life.hpp"

#include "adapters/sources/collective/collective_ledger.hpp"
#include "adapters/sources/mpi/mpi_groups.hpp"
#include "adapters/sources/mpi/mpi_requests.hpp"

namespace ringmain::mpi {

/// From now on publishes on that bus. Threads: one. Throws std::bad_alloc.
Result<bool> publish_on(Bus& bus);
/// That bus; nullptr: it does not.
[[nodiscard]] Bus* bus() noexcept;
/// Did publish_on() succeed?
[[nodiscard]] bool opened() noexcept;
/// Is anybody listening, or is there a hook? Progress: wait-free.
[[nodiscard]] bool heard() noexcept;

/// Gives the operation its id, and publishes that it was issued. Progress: as publishing; the first
/// call of a thread asks the system for its number.
void issued(Operation& operation, bool asynchronous) noexcept;
/// What is published then.
[[nodiscard]] collective::Issued issued_event(const Operation& operation,
                                              bool asynchronous) noexcept;
/// Its communicator has issued it, as `op_id`, and marked the thread.
void take_ids(Operation& operation, std::uint64_t op_id) noexcept;
/// While it lives, its thread is inside MPI's call for the operation.
class Inside {
 public:
  explicit Inside(const Operation& operation) noexcept;

 private:
  collective::Ledger::Inside mark_;
};
/// `bytes`: what came, which may be less than what was asked for.
void completed(const Operation& operation, std::uint64_t bytes) noexcept;
/// Its fields `source` and `thread` are filled.
void failed(const Operation& operation, collective::Failed said) noexcept;
/// Nobody will see its end: it failed as unknown.
void lost_sight_of(const Operation& operation, std::string_view why) noexcept;

/// The first time that the program uses it. `world`: for each of its ranks that rank in
/// MPI_COMM_WORLD; empty: not known.
void group_made(const Group& group, std::span<const int> world) noexcept;
void group_ended(const Group& group) noexcept;
/// Is somebody told of waiting?
[[nodiscard]] bool waits_are_heard() noexcept;
/// `operation`: what is waited for; nullptr: several. `waited_ns`: 0 at the beginning.
void waits(collective::Edge edge, const Operation* operation, std::uint32_t operations,
           std::int64_t waited_ns) noexcept;
/// The program asks MPI to end all of `group`'s processes.
void aborts(const Group& group, int code) noexcept;

}  // namespace ringmain::mpi
