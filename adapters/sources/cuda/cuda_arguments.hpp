// What was a call of CUDA's given, and what did it answer?
//
// CUPTI hands over each call's arguments as a struct. A row of the table says how they lie in it.
#pragma once
#include <cstdint>

#include "events/cuda.hpp"
#include "events/terms/cuda_call_table.hpp"

namespace ringmain::cuda {

/// What a call has none of, or what cannot be known yet, keeps the value that it has here.
struct Arguments {
  /// The event, stream, array, context, address or allocation that is made, released, recorded or
  /// waited for; of cudaFree(nullptr) and the like 0. Of a launch: none.
  std::uint64_t handle = 0;
  /// 2 (cudaStreamPerThread) where a call of the per-thread interface says 0: each thread's own.
  std::uint64_t stream = kNoStream;
  /// What was asked for. Pitched memory, once it is there: with its pitch. Arrays: their elements,
  /// without what the device adds; 0 for formats that have no fixed size, and for mipmapped ones.
  std::uint64_t bytes = 0;
  std::uint64_t graph = 0;  // the executable one at a launch
  std::uint32_t flags = 0;  // of events, records, waits, streams, contexts
  std::int32_t priority = 0;
  std::int32_t device = kNoDevice;  // where it is an argument: calls that make or reset contexts

  bool operator==(const Arguments&) const noexcept = default;
};

/// At a call's entry (`returned` false) what goes in; at the exit of one that returned 0
/// (`returned` true) also what came out through the caller's pointers. `params`: CUPTI's
/// functionParams, of the call that `row` is; may be null, as any pointer in it may be: then
/// nothing is read.
///
/// For callbacks: no lock, no memory, no call of CUDA. Wait-free.
[[nodiscard]] Arguments read_arguments(const CallRow& row, const void* params,
                                       bool returned) noexcept;

}  // namespace ringmain::cuda
