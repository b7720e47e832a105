#include "adapters/sources/mpi/mpi_find.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

namespace ringmain::mpi {
namespace {

// Of Fortran's, the ones that programs call: they come to C's, watched, in an MPI where they do
// that.
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

/// A path that is built without allocating; too long is "", which nothing opens.
struct Path {
  char text[4096] = {};
  Path(const char* folder, const char* file) noexcept {
    const int n = std::snprintf(text, sizeof text, "%s/%s", folder, file);
    if (n < 0 || static_cast<std::size_t>(n) >= sizeof text) text[0] = '\0';
  }
};

/// The folder that this library lies in.
const char* own_folder() noexcept {
  static char folder[4096] = ".";
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0) return folder;
  const char* const slash = std::strrchr(info.dli_fname, '/');
  if (slash == nullptr) return folder;
  std::snprintf(folder, sizeof folder, "%.*s", static_cast<int>(slash - info.dli_fname),
                info.dli_fname);
  return folder;
}

/// An MPI that was loaded by dlopen, as Python does, is seen by its loader alone: now by all.
int show_to_all(dl_phdr_info* library, std::size_t, void*) noexcept {
  const char* const slash = std::strrchr(library->dlpi_name, '/');
  const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
  if (std::strncmp(file, "libmpi", 6) == 0 || std::strncmp(file, "libpmpi", 7) == 0) {
    (void)::dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
  }
  return 0;
}

Function symbol(const char* name) noexcept {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

/// What our own symbol of that name stands before.
Function next(const char* name) noexcept {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

/// Which of our libraries knows this MPI's handles; nullptr: none.
const char* library_for(const char* version) noexcept {
  if (std::strstr(version, "Open MPI") != nullptr) return "libringmain_mpi_openmpi.so";
  static constexpr const char* kKin[] = {"MPICH", "MVAPICH", "Intel(R) MPI", "ParaStation"};
  for (const char* const kin : kKin) {
    if (std::strstr(version, kin) != nullptr) return "libringmain_mpi_mpich.so";
  }
  return nullptr;
}

void could_not_attach(const char* why) noexcept {
  const Path path(own_folder(), "../" RINGMAIN_RUN_FILE);
  void* const run = ::dlopen(path.text, RTLD_LAZY | RTLD_LOCAL);
  auto* const say = run == nullptr ? nullptr : ::dlsym(run, "ringmain_run_could_not_attach");
  if (say != nullptr) {
    return reinterpret_cast<void (*)(const char*, const char*)>(say)("mpi", why);
  }
  char line[1024];
  const int n =
      std::snprintf(line, sizeof line, "ringmain: source mpi could not attach: %s\n", why);
  if (n > 0) (void)!::write(STDERR_FILENO, line, std::strlen(line));
}

void attach(Targets& targets, const char* file) noexcept {
  const Path path(own_folder(), file);
  void* const library = ::dlopen(path.text, RTLD_NOW | RTLD_LOCAL);
  static char why[1024];
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    std::snprintf(why, sizeof why,
                  "%s; if it is not there, ringmain was built without the headers of this MPI",
                  reason == nullptr ? path.text : reason);
    return could_not_attach(why);
  }
  auto* const enter =
      reinterpret_cast<decltype(&ringmain_mpi_attach)>(::dlsym(library, "ringmain_mpi_attach"));
  const char* reason = "it has no ringmain_mpi_attach; install ringmain again";
  if (enter == nullptr || enter(&targets, &reason) == 0) could_not_attach(reason);
}

}  // namespace

void find(Targets& targets) noexcept {
  if (symbol("PMPI_Get_library_version") == nullptr) ::dl_iterate_phdr(show_to_all, nullptr);
  for (unsigned call = 0; call < kCalls; ++call) {
    targets.c[call] = symbol(kNames[call].c);
    targets.mpifh[call] = next(kNames[call].mpifh);
    targets.f08[call] = next(kNames[call].f08);
  }
  static char version[16384];  // MPICH's may be 8,192 bytes long
  int size = 0;
  const Function get_version = symbol("PMPI_Get_library_version");
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
