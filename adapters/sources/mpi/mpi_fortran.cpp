#include "adapters/sources/mpi/mpi_fortran.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <dlfcn.h>

namespace ringmain::mpi::fortran {
namespace {

/// Fortran's constants are variables, whose address counts. Compilers spell their names in four
/// ways, and a program may have each.
class Constant {
 public:
  explicit Constant(const std::array<const char*, 4>& spellings) noexcept {
    for (std::size_t i = 0; i < spellings.size(); ++i) at_[i] = ::dlsym(RTLD_DEFAULT, spellings[i]);
  }
  [[nodiscard]] bool is(const void* at) const noexcept {
    return at != nullptr && std::find(at_.begin(), at_.end(), at) != at_.end();
  }

 private:
  std::array<const void*, 4> at_{};
};

}  // namespace

bool is_in_place(const void* at) noexcept {
  static const Constant in_place({"mpi_fortran_in_place", "mpi_fortran_in_place_",
                                  "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  return in_place.is(at);
}

bool is_ignored(const Status* status) noexcept {
  static const Constant one({"mpi_fortran_status_ignore", "mpi_fortran_status_ignore_",
                             "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE"});
  static const Constant all({"mpi_fortran_statuses_ignore", "mpi_fortran_statuses_ignore_",
                             "mpi_fortran_statuses_ignore__", "MPI_FORTRAN_STATUSES_IGNORE"});
  static const Constant f08({"MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
                             "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"});
  return one.is(status) || all.is(status) || f08.is(status);
}

}  // namespace ringmain::mpi::fortran
