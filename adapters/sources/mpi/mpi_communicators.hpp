// What stands for one of the program's communicators, and how does a call pass its hooks?
//
// Each communicator with a name is a collective::Communicator from the first time that the program
// uses it until it is freed and no request of it is left. It cannot end before: MPI carries out
// what is under way when a communicator is freed.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/mpi/mpi_abi.hpp"
#include "adapters/sources/mpi/mpi_publish.hpp"

namespace ringmain::mpi {

class Kept {
 public:
  Kept(collective::Communicator of, MPI_Comm its_handle) noexcept
      : comm(std::move(of)), handle(its_handle) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  void hold() noexcept { ++holders_; }
  /// With the last one it ends.
  void release() noexcept {
    if (--holders_ != 0) return;
    comm.end();
    delete this;
  }

  const collective::Communicator comm;
  const MPI_Comm handle;

 private:
  ~Kept() = default;
  std::atomic<std::uint32_t> holders_{1};  // the program's handle, and each request
};

/// May hooks refuse calls? Set before the first call.
void follow_vetoes(bool follow) noexcept;

/// nullptr: it has no name, or MPI's source has no bus. Publishes collective.group `made`.
/// `world`: its members' ranks in MPI_COMM_WORLD; empty: not known.
[[nodiscard]] Kept* keep_communicator(MPI_Comm comm, const Group& group,
                                      std::span<const int> world) noexcept;
/// The same under its new name, with the hooks that it has.
[[nodiscard]] Kept* renamed(const Kept& from, Name name, std::span<const int> world) noexcept;
/// The program asks MPI to end all of its processes: its abort hooks are called.
void run_abort_hooks(const Kept& kept, int code) noexcept;

namespace detail {
/// MPI is asked by `call(asks)`, which gives its code.
int issue(Operation& operation, bool asynchronous, int (*call)(void* asks), void* asks) noexcept;
}  // namespace detail

/// Publishes that the operation is issued, asks its communicator's hooks, and makes MPI's own call,
/// in a thread that is marked with it. MPI's code; MPI_ERR_OTHER, by the communicator's error
/// handler, where a hook refused. An error has been published then.
template <class F>
int issue(Operation& operation, bool asynchronous, F call) noexcept {
  return detail::issue(
      operation, asynchronous, [](void* asks) { return (*static_cast<F*>(asks))(); }, &call);
}

}  // namespace ringmain::mpi
