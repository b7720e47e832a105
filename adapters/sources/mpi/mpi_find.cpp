#include "adapters/sources/mpi/mpi_find.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <type_traits>

#include "adapters/launch/library_beside.hpp"
#include "adapters/launch/original.hpp"
#include "adapters/launch/say.hpp"
#include "adapters/run.h"

namespace ringmain::mpi {
namespace {

// Of Fortran's names, those that programs call. In an MPI where they call C's, they are watched
// there.
struct Names {
  const char* c;
  const char* mpifh;
  const char* f08;
};
#define RINGMAIN_MPI_NAMES(name, small, ...) \
  {"PMPI_" #name, "mpi_" #small "_", "mpi_" #small "_f08_"},
#define RINGMAIN_MPI_NAMES_OF_I(name, small, ...) \
  {"PMPI_I" #small, "mpi_i" #small "_", "mpi_i" #small "_f08_"},
constexpr Names kNames[kCalls] = {
    RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NAMES)       //
    RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NAMES_OF_I)  //
    RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_NAMES)          //
    RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_NAMES)       //
    RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_NAMES)        //
    RINGMAIN_MPI_OTHERS(RINGMAIN_MPI_NAMES)            //
};
#undef RINGMAIN_MPI_NAMES
#undef RINGMAIN_MPI_NAMES_OF_I

/// An MPI that was loaded by dlopen, as Python does, is visible to its loader alone: makes it
/// visible to all.
int show_to_all(dl_phdr_info* library, std::size_t, void*) noexcept {
  const char* const slash = std::strrchr(library->dlpi_name, '/');
  const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
  if (std::strncmp(file, "libmpi", 6) == 0 || std::strncmp(file, "libpmpi", 7) == 0) {
    (void)::dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  }
  return 0;
}

using Called = std::remove_pointer_t<Function>;

/// Which library of ringmain knows this MPI's handles; nullptr: none.
const char* library_for(const char* version) noexcept {
  if (std::strstr(version, "Open MPI") != nullptr) return "libringmain_mpi_openmpi.so";
  static constexpr const char* kKin[] = {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"};
  for (const char* const kin : kKin) {
    if (std::strstr(version, kin) != nullptr) return "libringmain_mpi_mpich.so";
  }
  return nullptr;
}

void could_not_attach(const char* why) noexcept {
  const run::LibraryBeside rest("../" RINGMAIN_RUN_FILE, RTLD_LAZY | RTLD_LOCAL);
  using Say = decltype(ringmain_run_could_not_attach);
  if (auto* const tell = rest.function<Say>("ringmain_run_could_not_attach"))
    return tell("mpi", why);
  run::say({"source mpi could not attach: ", why});
}

void attach(Targets& targets, const char* file) noexcept {
  const run::LibraryBeside library(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    static char why[1024];
    std::snprintf(why, sizeof why,
                  "%s; if it is not there, ringmain was built without the headers of this MPI",
                  library.why());
    return could_not_attach(why);
  }
  auto* const enter = library.function<decltype(ringmain_mpi_attach)>("ringmain_mpi_attach");
  const char* reason = "it has no ringmain_mpi_attach; install ringmain again";
  if (enter == nullptr || enter(&targets, &reason) == 0) could_not_attach(reason);
}

}  // namespace

void find(Targets& targets) noexcept {
  if (run::seen_by_all<Called>("PMPI_Get_library_version") == nullptr)
    ::dl_iterate_phdr(show_to_all, nullptr);
  for (unsigned call = 0; call < kCalls; ++call) {
    targets.c[call] = run::seen_by_all<Called>(kNames[call].c);
    targets.mpifh[call] = run::original<Called>(kNames[call].mpifh);
    targets.f08[call] = run::original<Called>(kNames[call].f08);
  }
  static char version[16384];  // MPICH's may be 8,192 bytes long
  int size = 0;
  const Function get_version = run::seen_by_all<Called>("PMPI_Get_library_version");
  if (get_version == nullptr) {
    return could_not_attach(
        "the program's MPI is older than MPI-3, or not found among its libraries");
  }
  (void)reinterpret_cast<int (*)(char*, int*)>(get_version)(version, &size);
  if (const char* const file = library_for(version)) return attach(targets, file);
  static char why[512];
  std::snprintf(why, sizeof why,
                "it knows Open MPI and what is compatible with MPICH, and not '%.200s'", version);
  could_not_attach(why);
}

}  // namespace ringmain::mpi
