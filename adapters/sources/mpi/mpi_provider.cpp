#include "adapters/sources/mpi/mpi_provider.hpp"

namespace ringmain::mpi {

// Calls to MPI are seen only where they pass a library that was there before MPI's.
registry::Provider provider() {
  return {
      .kind = registry::ProviderKind::source,
      .name = "mpi",
      .summary = "what ranks ask of Open MPI or MPICH, in C, C++, Fortran and Python",
      .run = {.environment = {{"LD_PRELOAD", "{libdir}/ringmain/libringmain_mpi.so",
                               registry::EnvironmentEdit::How::prepend}},
              .at_launch = true,
              .hint = "such as mpirun -n 4 ./train",
              .watched = "an MPI",
              .watchers = {{"Open MPI", "ringmain/libringmain_mpi_openmpi.so", "libopenmpi-dev"},
                           {"MPICH", "ringmain/libringmain_mpi_mpich.so", "libmpich-dev"}}}};
}

}  // namespace ringmain::mpi
