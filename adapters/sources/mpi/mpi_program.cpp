// How does a program begin and end with MPI, and what becomes of its communicators?
#include <atomic>
#include <chrono>
#include <cstddef>
#include <new>

#include "adapters/run.hpp"
#include "adapters/sources/mpi/mpi_watch.hpp"

namespace ringmain::mpi {
namespace {

constexpr auto kFlush = std::chrono::seconds(2);  // the end of MPI may wait so long for us

void flush() noexcept {
  if (opened()) run::flush(kFlush);
}

/// The bus of the run; without one, or when the run has not asked for MPI, nothing is heard.
void open() noexcept try {
  static constinit std::atomic<bool> tried{false};
  if (tried.exchange(true)) return;
  Bus* const bus = run::join("mpi");
  if (bus == nullptr) return;
  follow_vetoes(run::argument_of("mpi") == "veto");
  name_types();
  name_operations();
  if (const auto published = publish_on(*bus); !published)
    return run::could_not_attach("mpi", published.error().message);
  (void)group_of(MPI_COMM_WORLD);  // the program may look for it, to register hooks
} catch (const std::bad_alloc&) {
  run::could_not_attach("mpi", "there is no memory");
}

int init_c(int* argc, char*** argv) noexcept {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) open();
  return code;
}
int init_thread_c(int* argc, char*** argv, int required, int* provided) noexcept {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) open();
  return code;
}
int finalize_c() noexcept {
  flush();
  return PMPI_Finalize();
}
int abort_c(MPI_Comm comm, int code) noexcept {
  abort_group(comm, code);
  flush();
  return PMPI_Abort(comm, code);
}
int comm_free_c(MPI_Comm* comm) noexcept {
  forget_group(*comm);
  return PMPI_Comm_free(comm);
}
int comm_disconnect_c(MPI_Comm* comm) noexcept {
  forget_group(*comm);
  return PMPI_Comm_disconnect(comm);
}
int comm_set_name_c(MPI_Comm comm, const char* name) noexcept {
  const int code = PMPI_Comm_set_name(comm, name);
  if (code == MPI_SUCCESS && opened()) rename_group(comm);
  return code;
}

using Fint = MPI_Fint;

template <Layer l>
void init_f(Fint* code) noexcept {
  call_original(l, kInit, code);
  open();
}
template <Layer l>
void init_thread_f(const Fint* required, Fint* provided, Fint* code) noexcept {
  call_original(l, kInit_thread, required, provided, code);
  open();
}
template <Layer l>
void finalize_f(Fint* code) noexcept {
  flush();
  call_original(l, kFinalize, code);
}
template <Layer l>
void abort_f(const Fint* comm, const Fint* error, Fint* code) noexcept {
  abort_group(PMPI_Comm_f2c(*comm), *error);
  flush();
  call_original(l, kAbort, comm, error, code);
}
template <Layer l>
void comm_free_f(Fint* comm, Fint* code) noexcept {
  forget_group(PMPI_Comm_f2c(*comm));
  call_original(l, kComm_free, comm, code);
}
template <Layer l>
void comm_disconnect_f(Fint* comm, Fint* code) noexcept {
  forget_group(PMPI_Comm_f2c(*comm));
  call_original(l, kComm_disconnect, comm, code);
}
/// Fortran's length of the name comes last, unseen in the program's text.
template <Layer l>
void comm_set_name_f(const Fint* comm, const char* name, Fint* code, std::size_t bytes) noexcept {
  call_original(l, kComm_set_name, comm, name, code, bytes);
  if (opened()) rename_group(PMPI_Comm_f2c(*comm));
}

}  // namespace

void watch_program(Targets& targets) noexcept {
#define RINGMAIN_MPI_WATCH(call, small) \
  watch(targets, call, small##_c, small##_f<Layer::mpifh>, small##_f<Layer::f08>)
  RINGMAIN_MPI_WATCH(kInit, init);
  RINGMAIN_MPI_WATCH(kInit_thread, init_thread);
  RINGMAIN_MPI_WATCH(kFinalize, finalize);
  RINGMAIN_MPI_WATCH(kAbort, abort);
  RINGMAIN_MPI_WATCH(kComm_free, comm_free);
  RINGMAIN_MPI_WATCH(kComm_disconnect, comm_disconnect);
  RINGMAIN_MPI_WATCH(kComm_set_name, comm_set_name);
#undef RINGMAIN_MPI_WATCH
}

}  // namespace ringmain::mpi
