// Where do the calls of a program with this kind of MPI go? Each line of mpi_calls.hpp becomes a
// function here.
#include "events/terms/collective_names.hpp"

#include "adapters/sources/mpi/mpi_watch.hpp"

namespace ringmain::mpi {
namespace {

#define RINGMAIN_MPI_ROW_OF(name_, number, shape_)               \
  struct Row##name_ {                                            \
    static constexpr Call kCall = number;                        \
    static constexpr std::string_view kOperation =               \
        collective::operation(collective::Dialect::mpi, #name_); \
    template <class... A>                                        \
    static int original(A... given) noexcept {                   \
      return PMPI_##name_(given...);                             \
    }                                                            \
    template <class... A>                                        \
    static shapes::Shape shape(const A&... read) noexcept {      \
      return shapes::shape_(read...);                            \
    }                                                            \
  };
#define RINGMAIN_MPI_ROW(name, small, shape, kinds) RINGMAIN_MPI_ROW_OF(name, k##name, shape)
#define RINGMAIN_MPI_ROW_I(name, small, shape, kinds) \
  RINGMAIN_MPI_ROW_OF(I##small, kI##small, shape)
RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_ROW)
RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_ROW_I)
RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_ROW)
RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_ROW)
RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_ROW)

/// MPI's operations move one array each way: they are torchcomms' _single.
constexpr collective::OpName kind_of(std::string_view op) noexcept {
  using collective::OpName;
  struct Row {
    std::string_view op;
    OpName kind;
  };
  constexpr Row kRows[] = {{"send", OpName::send},
                           {"recv", OpName::recv},
                           {"broadcast", OpName::broadcast},
                           {"all_reduce", OpName::all_reduce},
                           {"reduce", OpName::reduce},
                           {"all_gather", OpName::all_gather_single},
                           {"all_gather_v", OpName::all_gather_v},
                           {"reduce_scatter", OpName::reduce_scatter_single},
                           {"reduce_scatter_v", OpName::reduce_scatter_v},
                           {"all_to_all", OpName::all_to_all_single},
                           {"all_to_all_v", OpName::all_to_all_v_single},
                           {"barrier", OpName::barrier},
                           {"scatter", OpName::scatter},
                           {"gather", OpName::gather}};
  for (const Row& row : kRows) {
    if (row.op == op) return row.kind;
  }
  return OpName::other;
}

template <class Watched>
void watch_row(Targets& targets, Call call) noexcept {
  watch(targets, call, Watched::c, Watched::template fortran<Layer::mpifh>,
        Watched::template fortran<Layer::f08>);
}

}  // namespace

Setup& setup() noexcept {
  static constinit Setup all;
  return all;
}

int& fortran_depth() noexcept {
  static thread_local constinit int depth = 0;
  return depth;
}

void name_operations() noexcept {
#define RINGMAIN_MPI_NAME(name, ...)                                  \
  setup().operations[Row##name::kCall] = Name(Row##name::kOperation); \
  setup().kinds[Row##name::kCall] = kind_of(Row##name::kOperation);
#define RINGMAIN_MPI_NAME_I(name, small, ...) RINGMAIN_MPI_NAME(I##small)
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NAME)
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_NAME_I)
  RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_NAME)
  RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_NAME)
  RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_NAME)
}

void keep(const Operation& operation, MPI_Request request, bool persistent) noexcept {
  if (request == MPI_REQUEST_NULL) return ended(operation, MPI_SUCCESS, nullptr);
  Request* const place = requests().take(bits_of(request));
  if (place == nullptr) {
    if (!persistent)
      lost_sight_of(operation,
                    "more requests are in flight than the 65536 that MPI's source follows");
    return;
  }
  place->operation = operation;
  if (operation.kept != nullptr) operation.kept->hold();
  place->persistent = persistent;
  place->active = !persistent;
  Requests::show(*place);
}

}  // namespace ringmain::mpi

int ringmain_mpi_attach(ringmain::mpi::Targets* targets, const char**) {
  using namespace ringmain::mpi;
  setup().originals = *targets;
#define RINGMAIN_MPI_LIST(...) Kinds<__VA_ARGS__>
#define RINGMAIN_MPI_PUT(how, name, kinds) \
  watch_row<how<Row##name, RINGMAIN_MPI_LIST kinds>>(*targets, Row##name::kCall);
#define RINGMAIN_MPI_BLOCKS(name, small, shape, kinds) RINGMAIN_MPI_PUT(Blocking, name, kinds)
#define RINGMAIN_MPI_GOES_ON(name, small, shape, kinds) RINGMAIN_MPI_PUT(NonBlocking, name, kinds)
#define RINGMAIN_MPI_GOES_ON_I(name, small, shape, kinds) \
  RINGMAIN_MPI_PUT(NonBlocking, I##small, kinds)
#define RINGMAIN_MPI_STAYS(name, small, shape, kinds) RINGMAIN_MPI_PUT(Persistent, name, kinds)
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_BLOCKS)
  RINGMAIN_MPI_COLLECTIVES(RINGMAIN_MPI_GOES_ON_I)
  RINGMAIN_MPI_BLOCKING(RINGMAIN_MPI_BLOCKS)
  RINGMAIN_MPI_NONBLOCKING(RINGMAIN_MPI_GOES_ON)
  RINGMAIN_MPI_PERSISTENT(RINGMAIN_MPI_STAYS)
  watch_requests(*targets);
  watch_program(*targets);
  return 1;
}
