// What differs between kinds of MPI, and what is asked of MPI itself. Compiled once for each kind.
//
// All calls here use the profiling interface, with handles that were checked: MPI ends the program
// when it is asked about a null handle.
#pragma once
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <cstdint>
#include <mpi.h>
#include <type_traits>

#include "events/collective.hpp"

#include "adapters/sources/mpi/mpi_calls.hpp"
#include "adapters/sources/mpi/mpi_groups.hpp"
#include "adapters/sources/mpi/mpi_requests.hpp"

// Open MPI's Fortran does not call C's MPI_…. MPICH's mpif.h does, so it is watched in C; its
// mpi_f08 does so only for calls with buffers, and not elsewhere (Wait, Barrier, Init).
#ifdef OPEN_MPI
#define RINGMAIN_MPI_WATCHES_MPIFH 1
#else
#define RINGMAIN_MPI_WATCHES_MPIFH 0
#endif

namespace ringmain::mpi {

static_assert(std::is_same_v<MPI_Fint, int>, "arrays of counts are read as C's, also Fortran's");

/// A handle's bits: a pointer's in Open MPI, an integer's in MPICH.
template <class Handle>
[[nodiscard]] std::uint64_t bits_of(Handle handle) noexcept {
  static_assert(std::is_pointer_v<Handle> || sizeof(Handle) == sizeof(std::uint32_t));
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uintptr_t>(handle);
  } else {
    return static_cast<std::uint32_t>(handle);
  }
}

/// The requests of this process that are in flight.
[[nodiscard]] Requests& requests() noexcept;

/// The communicator behind the handle; one without a name or a rank for MPI_COMM_NULL and where
/// there is no room. The first call for each takes a lock.
[[nodiscard]] Group& group_of(MPI_Comm comm) noexcept;
/// Call it when the communicator is freed or has a new name.
void forget_group(MPI_Comm comm) noexcept;
void rename_group(MPI_Comm comm) noexcept;
/// Call it before MPI ends its processes.
void abort_group(MPI_Comm comm, int code) noexcept;

struct TypeFacts {
  Name name{};  // int32, float64 …; "derived" for what programs make
  std::uint64_t bytes = 0;
};
[[nodiscard]] TypeFacts type_of(MPI_Datatype type) noexcept;
/// Before the first type_of().
void name_types() noexcept;

/// What is published of an operation to which MPI answers so.
[[nodiscard]] collective::Failed failed_event(int code) noexcept;
/// Ends `operation`: by MPI's answer, and by the status if it has one.
void ended(const Operation& operation, int code, const MPI_Status* status) noexcept;

}  // namespace ringmain::mpi
