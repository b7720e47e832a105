#include "adapters/sources/mpi/mpi_provider.hpp"

#include <string>
#include <string_view>

namespace ringmain::mpi {

// Calls to MPI are seen only where they pass a library that was there before MPI's.
registry::Provider provider() {
  return {
      .kind = registry::ProviderKind::source,
      .name = "mpi",
      .summary = "what ranks ask of Open MPI or MPICH, in C, C++, Fortran and Python",
      .argument = "[veto]",
      .argument_fault =
          [](std::string_view argument) {
            return argument.empty() || argument == "veto"
                       ? std::string()
                       : "source mpi knows the word veto, and not '" + std::string(argument) + "'";
          },
      .run = {.environment = {{"LD_PRELOAD", "{libdir}/ringmain/libringmain_mpi.so",
                               registry::EnvironmentEdit::How::prepend}},
              .at_launch = true,
              .hint = "such as mpirun -n 4 ./train",
              .watched = "an MPI",
              .watchers = {{"Open MPI", "ringmain/libringmain_mpi_openmpi.so", "libopenmpi-dev"},
                           {"MPICH", "ringmain/libringmain_mpi_mpich.so", "libmpich-dev"}}}};
}

}  // namespace ringmain::mpi
