// What happens around a call that moves data? It is published as issued, MPI does it, and its end
// is published; or, where it goes on, its request is kept until it is completed.
//
// While nobody listens a call costs a few loads more. Otherwise two looks at the clock, two
// publishes, the ledger's places and what mpi_shapes.hpp asks of MPI; no lock and no allocation
// once the thread, the communicator and the names are known.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "adapters/sources/mpi/mpi_abi.hpp"
#include "adapters/sources/mpi/mpi_communicators.hpp"
#include "adapters/sources/mpi/mpi_fortran.hpp"
#include "adapters/sources/mpi/mpi_publish.hpp"
#include "adapters/sources/mpi/mpi_shapes.hpp"

namespace ringmain::mpi {

/// Fortran's ways to MPI: mpif.h's and `use mpi`'s symbols, and mpi_f08's.
enum class Layer : unsigned { mpifh, f08 };

/// Set before the first call: MPI's own functions for Fortran, and the operations' names.
struct Setup {
  Targets originals{};
  std::array<Name, kCalls> operations{};
  std::array<collective::OpName, kCalls> kinds{};  // what hooks are told
};
[[nodiscard]] Setup& setup() noexcept;
/// Fills `operations`, before the first event is published.
void name_operations() noexcept;

/// In how many calls from Fortran this thread is: the calls that these make to C are not heard
/// again.
[[nodiscard]] int& fortran_depth() noexcept;

template <class... F>
void call_original(Layer layer, Call call, F... parameters) noexcept {
  struct Deeper {
    int& depth = ++fortran_depth();
    ~Deeper() { --depth; }
  } const deeper;
  const Targets& all = setup().originals;
  const Function found = layer == Layer::f08 ? all.f08[call] : all.mpifh[call];
  reinterpret_cast<void (*)(F...)>(found)(parameters...);
}

/// The operation of a call that moves `shape`, before it has an id.
inline Operation operation_of(Call call, const shapes::Shape& shape) noexcept {
  Operation operation;
  Group& group = *shape.group;
  operation.name = setup().operations[call];
  operation.kind = setup().kinds[call];
  operation.group = group.name;
  operation.rank = group.rank;
  operation.group_size = group.size;
  operation.kept = group.kept;
  if (operation.kept == nullptr) {  // else the communicator counts
    (shape.collective ? operation.sequence : operation.p2p_sequence) =
        ++(shape.collective ? group.collectives : group.transfers);
  }
  operation.in_elements = shape.give.elements;
  operation.out_elements = shape.get.elements;
  operation.bytes = std::max(shape.give.bytes, shape.get.bytes);
  operation.gives_bytes = shape.give.bytes;
  operation.gets_bytes = shape.get.bytes;
  operation.dtype = shape.give.dtype != Name() ? shape.give.dtype : shape.get.dtype;
  operation.peer = shape.peer;
  operation.point_to_point = !shape.collective;
  operation.receives = !shape.collective && shape.get.dtype != Name();
  return operation;
}

/// Does nobody listen, or was the call published already?
[[nodiscard]] inline bool unheard() noexcept {
  return !heard() || fortran_depth() > 0;
}

/// Sends `call` to these functions; for Fortran only where its calls do not come through C's, and
/// MPI has them.
template <class C, class F>
void watch(Targets& targets, Call call, C* c, F* mpifh, F* f08) noexcept {
  targets.c[call] = reinterpret_cast<Function>(c);
  if (RINGMAIN_MPI_WATCHES_MPIFH && targets.mpifh[call] != nullptr)
    targets.mpifh[call] = reinterpret_cast<Function>(mpifh);
  if (targets.f08[call] != nullptr) targets.f08[call] = reinterpret_cast<Function>(f08);
}
/// Watches the calls that complete, start and cancel requests.
void watch_requests(Targets& targets) noexcept;
void watch_program(Targets& targets) noexcept;

/// Keeps an operation that goes on, under its request.
void keep(const Operation& operation, MPI_Request request, bool persistent) noexcept;

/// Gives MPI a status to fill where the program wants none.
template <class Status>
class AnyStatus {
 public:
  template <class T>
  T in_place_of(T parameter) noexcept {
    return parameter;
  }
  MPI_Status* in_place_of(MPI_Status* given) noexcept {
    return used_ = given == MPI_STATUS_IGNORE ? &own_ : given;
  }
  fortran::Status* in_place_of(fortran::Status* given) noexcept {
    return used_ = fortran::is_ignored(given) ? &own_ : given;
  }
  /// nullptr: the call has none.
  [[nodiscard]] const Status* used() const noexcept { return used_; }

 private:
  Status own_{};
  Status* used_ = nullptr;
};

template <class... P>
struct Kinds {};

template <class Row, class List>
struct Blocking;
template <class Row, class... P>
struct Blocking<Row, Kinds<P...>> {
  static int c(typename P::C... given) noexcept {
    if (unheard()) return Row::original(given...);
    Operation operation = operation_of(Row::kCall, Row::shape(P::of_c(given)...));
    AnyStatus<MPI_Status> status;
    const int code =
        issue(operation, false, [&] { return Row::original(status.in_place_of(given)...); });
    ended(operation, code, status.used());
    return code;
  }
  template <Layer layer>
  static void fortran(typename P::F... given, MPI_Fint* code) noexcept {
    MPI_Fint own_code = MPI_SUCCESS;  // in mpi_f08 the program may leave its own out
    if (code == nullptr) code = &own_code;
    if (!heard()) return call_original(layer, Row::kCall, given..., code);
    Operation operation = operation_of(Row::kCall, Row::shape(P::of_fortran(given)...));
    AnyStatus<fortran::Status> status;
    *code = issue(operation, false, [&] {
      call_original(layer, Row::kCall, status.in_place_of(given)..., code);
      return *code;
    });
    MPI_Status read{};
    if (status.used() != nullptr) (void)PMPI_Status_f2c(status.used()->words, &read);
    ended(operation, *code, status.used() == nullptr ? nullptr : &read);
  }
};

template <class Row, class List>
struct NonBlocking;
template <class Row, class... P>
struct NonBlocking<Row, Kinds<P...>> {
  static int c(typename P::C... given, MPI_Request* request) noexcept {
    if (unheard()) return Row::original(given..., request);
    Operation operation = operation_of(Row::kCall, Row::shape(P::of_c(given)...));
    const int code = issue(operation, true, [&] { return Row::original(given..., request); });
    if (code != MPI_SUCCESS) {
      ended(operation, code, nullptr);
      if (operation.refused) *request = MPI_REQUEST_NULL;
    } else {
      keep(operation, *request, false);
    }
    return code;
  }
  template <Layer layer>
  static void fortran(typename P::F... given, MPI_Fint* request, MPI_Fint* code) noexcept {
    MPI_Fint own_code = MPI_SUCCESS;
    if (code == nullptr) code = &own_code;
    if (!heard()) return call_original(layer, Row::kCall, given..., request, code);
    Operation operation = operation_of(Row::kCall, Row::shape(P::of_fortran(given)...));
    *code = issue(operation, true, [&] {
      call_original(layer, Row::kCall, given..., request, code);
      return *code;
    });
    if (*code != MPI_SUCCESS) {
      ended(operation, *code, nullptr);
      if (operation.refused) *request = PMPI_Request_c2f(MPI_REQUEST_NULL);
    } else {
      keep(operation, PMPI_Request_f2c(*request), false);
    }
  }
};

/// Publishes nothing yet: each Start does.
template <class Row, class List>
struct Persistent;
template <class Row, class... P>
struct Persistent<Row, Kinds<P...>> {
  static int c(typename P::C... given, MPI_Request* request) noexcept {
    const int code = Row::original(given..., request);
    if (code == MPI_SUCCESS && opened() && fortran_depth() == 0) {
      keep(operation_of(Row::kCall, Row::shape(P::of_c(given)...)), *request, true);
    }
    return code;
  }
  template <Layer layer>
  static void fortran(typename P::F... given, MPI_Fint* request, MPI_Fint* code) noexcept {
    MPI_Fint own_code = MPI_SUCCESS;
    if (code == nullptr) code = &own_code;
    call_original(layer, Row::kCall, given..., request, code);
    if (*code == MPI_SUCCESS && opened()) {
      keep(operation_of(Row::kCall, Row::shape(P::of_fortran(given)...)),
           PMPI_Request_f2c(*request), true);
    }
  }
};

}  // namespace ringmain::mpi
