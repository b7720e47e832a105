// MPI by its name: `mpi`.
#pragma once
#include "adapters/provider.hpp"

namespace ringmain::mpi {

[[nodiscard]] registry::Provider provider();

}  // namespace ringmain::mpi
