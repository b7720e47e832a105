// Which MPI does this process have, and which library watches it?
#pragma once
#include "adapters/sources/mpi/mpi_calls.hpp"

namespace ringmain::mpi {

/// Fills `targets` with where the calls go: to the library for the MPI that is loaded, or to that
/// MPI itself where nothing can watch it, which is then said on standard error.
/// Threads: one, once.
void find(Targets& targets) noexcept;

}  // namespace ringmain::mpi
