// Which kinds of MPI can this installation watch? Each has a library of its own, which is built
// where the headers of that MPI are.
#pragma once
#include <string>
#include <vector>

namespace ringmain::cli {

struct MpiWatcher {
  std::string mpi;      // "Open MPI"
  std::string package;  // that has its headers
  bool built;
};
[[nodiscard]] std::vector<MpiWatcher> mpi_watchers();
/// "" if at least one was built; else a sentence that says how to mend that.
[[nodiscard]] std::string no_mpi_watcher();

}  // namespace ringmain::cli
