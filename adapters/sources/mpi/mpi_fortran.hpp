// What does Fortran pass in another form than C? Addresses that mean "ignore" and "in place", and
// statuses.
#pragma once
#include "adapters/sources/mpi/mpi_abi.hpp"

namespace ringmain::mpi::fortran {

/// As Fortran lays it out: an array of integers.
struct Status {
  MPI_Fint words[sizeof(MPI_Status) / sizeof(MPI_Fint)];
};

static_assert(sizeof(Status) == sizeof(MPI_Status), "Fortran's may be as large as C's");

[[nodiscard]] bool is_in_place(const void* at) noexcept;
[[nodiscard]] bool is_ignored(const Status* status) noexcept;

}  // namespace ringmain::mpi::fortran
