#include "adapters/sources/mpi/mpi_abi.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "events/terms/collective_names.hpp"

#include "adapters/sources/mpi/mpi_communicators.hpp"
#include "adapters/sources/mpi/mpi_publish.hpp"

namespace ringmain::mpi {
namespace {

constinit Requests in_flight;
Groups& groups() noexcept {
  static Groups& all = *new Groups;  // never destroyed: programs end while they communicate
  return all;
}

Name comm_name(MPI_Comm comm) noexcept {
  char text[MPI_MAX_OBJECT_NAME + 1] = {};
  int size = 0;
  if (PMPI_Comm_get_name(comm, text, &size) != MPI_SUCCESS) return {};
  return Name(text);
}

void ask_topology(MPI_Comm comm, GroupFacts& facts) noexcept {
  int kind = MPI_UNDEFINED;
  if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return;
  if (kind == MPI_CART) {
    int dimensions = 0;
    (void)PMPI_Cartdim_get(comm, &dimensions);
    facts.sources = facts.destinations = 2 * dimensions;
  } else if (kind == MPI_GRAPH) {
    int neighbours = 0;
    (void)PMPI_Graph_neighbors_count(comm, facts.rank, &neighbours);
    facts.sources = facts.destinations = neighbours;
  } else if (kind == MPI_DIST_GRAPH) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    (void)PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    facts.sources = in;
    facts.destinations = out;
  }
}

GroupFacts ask(MPI_Comm comm) noexcept {
  GroupFacts facts;
  int rank = -1;
  int size = 0;
  int between = 0;
  (void)PMPI_Comm_rank(comm, &rank);
  (void)PMPI_Comm_size(comm, &size);
  (void)PMPI_Comm_test_inter(comm, &between);
  facts.name = comm_name(comm);
  facts.rank = rank;
  facts.size = size;
  if (between != 0) {
    int remote = 0;
    (void)PMPI_Comm_remote_size(comm, &remote);
    facts.remote = remote;
  } else {
    ask_topology(comm, facts);
  }
  return facts;
}

/// For each rank of `comm` that in MPI_COMM_WORLD. Of an intercommunicator: of the side that this
/// process is on. A communicator with processes from elsewhere (MPI_Comm_spawn) has none.
std::vector<int> world_of(MPI_Comm comm, int size) noexcept try {
  MPI_Group of_comm = MPI_GROUP_NULL;
  MPI_Group of_world = MPI_GROUP_NULL;
  std::vector<int> own(static_cast<std::size_t>(std::max(0, size)));
  std::vector<int> world(own.size());
  std::iota(own.begin(), own.end(), 0);
  const bool told =
      PMPI_Comm_group(comm, &of_comm) == MPI_SUCCESS &&
      PMPI_Comm_group(MPI_COMM_WORLD, &of_world) == MPI_SUCCESS &&
      PMPI_Group_translate_ranks(of_comm, size, own.data(), of_world, world.data()) == MPI_SUCCESS;
  if (!told || std::find(world.begin(), world.end(), MPI_UNDEFINED) != world.end()) world.clear();
  if (of_comm != MPI_GROUP_NULL) (void)PMPI_Group_free(&of_comm);
  if (of_world != MPI_GROUP_NULL) (void)PMPI_Group_free(&of_world);
  return world;
} catch (const std::bad_alloc&) {
  return {};
}

/// Who meets a communicator while another thread makes what it needs waits for that.
struct Making {
  std::mutex mutex;
  std::condition_variable over;
};
Making& making() noexcept {
  static Making& one = *new Making;  // never destroyed, as groups()
  return one;
}
thread_local constinit bool makes = false;  // a hook of `made` may call MPI

void say_made(MPI_Comm comm, Group& group) noexcept {
  const bool nested = std::exchange(makes, true);
  const std::vector<int> world = world_of(comm, group.size);
  group.kept = keep_communicator(comm, group, world);
  if (group.kept == nullptr) group_made(group, world);
  makes = nested;
  const std::lock_guard lock(making().mutex);
  group.making = false;
  making().over.notify_all();
}
void await_making(const Group& group) noexcept {
  if (makes) return;
  std::unique_lock lock(making().mutex);
  making().over.wait(lock, [&] { return !group.making; });
}

Name reason_of(int error_class) noexcept {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int size = 0;
  if (PMPI_Error_string(error_class, text, &size) != MPI_SUCCESS) return Name("unknown error");
  return Name(text);
}

/// Requests may go on in it.
void give_up(Group& group) noexcept {
  if (Kept* const kept = group.kept.exchange(nullptr)) {
    kept->release();
  } else {
    group_ended(group);
  }
}

}  // namespace

Requests& requests() noexcept {
  return in_flight;
}

Group& group_of(MPI_Comm comm) noexcept {
  static Group nobody;
  if (comm == MPI_COMM_NULL) return nobody;
  const std::uint64_t handle = bits_of(comm);
  if (Group* const known = groups().find(handle)) [[likely]] {
    if (known->making) [[unlikely]]
      await_making(*known);
    return *known;
  }
  const Groups::Added added = groups().add(handle, ask(comm));
  if (added.group == nullptr) return nobody;
  if (added.new_here) {
    say_made(comm, *added.group);
  } else {
    await_making(*added.group);
  }
  return *added.group;
}
void forget_group(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL) return;
  const std::uint64_t handle = bits_of(comm);
  if (Group* const known = groups().find(handle)) give_up(*known);
  groups().forget(handle);
}
void abort_group(MPI_Comm comm, int code) noexcept {
  if (comm == MPI_COMM_NULL || !opened()) return;
  const Group& group = group_of(comm);
  if (const Kept* const kept = group.kept) return run_abort_hooks(*kept, code);
  aborts(group, code);
}
void rename_group(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL) return;
  Group& group = group_of(comm);
  const Name name = comm_name(comm);
  if (name == group.name) return;
  Kept* const before = group.kept;
  if (before == nullptr) {
    if (group.rank < 0) return;  // it has no place
    group_ended(group);
    group.name = name;
    return say_made(comm, group);
  }
  Kept* const now = renamed(*before, name, world_of(comm, group.size));
  if (now == nullptr) return;  // it goes by the name that it had
  group.name = name;
  group.kept = now;
  before->release();
}

collective::Failed failed_event(int code) noexcept {
  collective::Failed said;
  int error_class = code;
  (void)PMPI_Error_class(code, &error_class);
  said.reason = reason_of(error_class);
  said.result = error_class;
  said.source = Name(collective::kMpi);
  return said;
}

void ended(const Operation& operation, int code, const MPI_Status* status) noexcept {
  if (code != MPI_SUCCESS) {
    return failed(operation, failed_event(code));
  }
  std::uint64_t bytes = operation.bytes;
  if (status != nullptr && operation.point_to_point) {
    int cancelled = 0;
    (void)PMPI_Test_cancelled(status, &cancelled);
    if (cancelled != 0) {
      collective::Failed said;
      said.reason = Name("cancelled");
      said.how = collective::How::cancelled;
      return failed(operation, said);
    }
    MPI_Count came = -1;
    if (operation.receives && PMPI_Get_elements_x(status, MPI_BYTE, &came) == MPI_SUCCESS &&
        came >= 0) {
      bytes = std::max(operation.gives_bytes, static_cast<std::uint64_t>(came));
    }
  }
  completed(operation, bytes);
}

}  // namespace ringmain::mpi
