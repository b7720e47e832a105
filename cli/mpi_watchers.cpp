#include "cli/mpi_watchers.hpp"

#include <algorithm>
#include <unistd.h>

#include "adapters/registry.hpp"

namespace ringmain::cli {

std::vector<MpiWatcher> mpi_watchers() {
  const std::string start = registry::library_folder() + "/ringmain/libringmain_mpi_";
  const auto built = [&start](const char* kind) {
    return ::access((start + kind + ".so").c_str(), R_OK) == 0;
  };
  return {{"Open MPI", "libopenmpi-dev", built("openmpi")},
          {"MPICH", "libmpich-dev", built("mpich")}};
}

std::string no_mpi_watcher() {
  const auto all = mpi_watchers();
  if (std::any_of(all.begin(), all.end(), [](const MpiWatcher& one) { return one.built; }))
    return "";
  return "no watcher of an MPI was built with this ringmain; install libopenmpi-dev or "
         "libmpich-dev "
         "and build it again";
}

}  // namespace ringmain::cli
