// How does a program have its calls of NCCL heard, and refused, before they are made? It calls them
// by NCCL's names, without `nccl`, in this namespace.
//
//   #include <nccl.h>   // first, where there is NCCL; it builds without, too
//   #include <ringmain/adapters/sources/nccl/nccl.hpp>
//   namespace nccl = ringmain::nccl;
//   …
//   auto calls = nccl::Calls::attach(bus);          // nccl_calls.hpp
//   auto budget = comm.pre_hook(…);                 // of collective::Communicator::find(bus, name)
//   if (nccl::AllReduce(send, receive, n, ncclFloat32, ncclSum, comm, stream) != ncclSuccess) …
//
// While something is attached, each operation is `collective.issued` once, and has one end at most:
// see docs/nccl-wrapper.md for which. A pre hook that refuses one has it answered with
// ncclInvalidUsage, NCCL is not called, and GetLastError(comm) says who refused it, and why, until
// the thread's next call that somebody is told of. What NCCL answers is passed on as it is, and
// arguments are judged by NCCL alone.
//
// NCCL is not linked: it is looked for at the first call, among what is loaded and then by the
// loader as libnccl.so.2, or the program gives its functions (use_functions). Where there is none,
// or it is older than the function, a call answers ncclSystemError.
//
// Threads: any, as NCCL's. Link ringmain::nccl. Cost: bench, rows `nccl.wrapper.*`.
#pragma once
#include <type_traits>

#include "nccl_call.hpp"
#include "nccl_calls.hpp"
#include "nccl_functions.hpp"
#include "nccl_types.hpp"

namespace ringmain::nccl {

#define RINGMAIN_NCCL_CALL_2(name, since, parameters, names, moved)                           \
  inline ncclResult_t name parameters {                                                       \
    return detail::Operation<Function::name, Function::name##Config>::run(                    \
        RINGMAIN_NCCL_PLAIN moved, comm, stream, RINGMAIN_NCCL_PLAIN names);                  \
  }                                                                                           \
  inline ncclResult_t name##Config(RINGMAIN_NCCL_PLAIN parameters,                            \
                                   const ncclCollConfig_t* config) {                          \
    return detail::Operation<Function::name##Config, Function::name##Config>::run_configured( \
        RINGMAIN_NCCL_PLAIN moved, comm, stream, config, RINGMAIN_NCCL_PLAIN names);          \
  }
#define RINGMAIN_NCCL_CALL_1(name, since, parameters, names, moved)          \
  inline ncclResult_t name parameters {                                      \
    return detail::Operation<Function::name, Function::kCount>::run(         \
        RINGMAIN_NCCL_PLAIN moved, comm, stream, RINGMAIN_NCCL_PLAIN names); \
  }
#define RINGMAIN_NCCL_LIFE_CALL(name, since, parameters, names, about)               \
  inline ncclResult_t name parameters {                                              \
    return detail::life<Function::name>(detail::LifeCall{RINGMAIN_NCCL_PLAIN about}, \
                                        RINGMAIN_NCCL_PLAIN names);                  \
  }
#define RINGMAIN_NCCL_PLAIN_CALL(result, name, since, parameters, names)          \
  inline result name parameters {                                                 \
    return detail::plain_call<Function::name, result>(RINGMAIN_NCCL_PLAIN names); \
  }

RINGMAIN_NCCL_TWINNED(RINGMAIN_NCCL_CALL_2)
RINGMAIN_NCCL_ONE_WAY(RINGMAIN_NCCL_CALL_1)
RINGMAIN_NCCL_LIFE(RINGMAIN_NCCL_LIFE_CALL)
RINGMAIN_NCCL_MEMORY(RINGMAIN_NCCL_PLAIN_CALL)
RINGMAIN_NCCL_QUERY(RINGMAIN_NCCL_PLAIN_CALL)

inline ncclResult_t GroupStart() {
  return detail::start_group();
}
inline ncclResult_t GroupEnd() {
  return detail::leave_group(Function::GroupEnd);
}
inline ncclResult_t GroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return detail::leave_group(Function::GroupSimulateEnd, simInfo);
}

/// What hooks hang on (collective::Communicator), of a communicator of NCCL's. Empty: nothing is
/// attached, or NCCL does not say what it is, as while it is still being made. Threads: any.
/// Progress: blocking; asks NCCL about one that was made before the attach.
[[nodiscard]] inline collective::Communicator communicator_of(ncclComm_t comm) noexcept {
  return detail::communicator_of(comm);
}

#undef RINGMAIN_NCCL_CALL_2
#undef RINGMAIN_NCCL_CALL_1
#undef RINGMAIN_NCCL_LIFE_CALL
#undef RINGMAIN_NCCL_PLAIN_CALL

}  // namespace ringmain::nccl
