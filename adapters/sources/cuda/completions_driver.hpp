// Which of the driver's functions do completions need? Found in the libcuda that the process has,
// never linked, so that programs with a static runtime have them too.
#pragma once
#include <cstddef>
#include <cstdint>

#include "bus/result.hpp"

#include "adapters/sources/cuda/cuda_own_call.hpp"

namespace ringmain::cuda {

/// Results of the driver's.
enum DriverResult : std::int32_t {
  kDone = 0,
  kInvalidValue = 1,
  kNotStarted = 3,
  kNotReady = 600,
  kNoContext = 201,
  kContextGone = 709,
  kCaptureFirst = 900,  // to kCaptureLast: a capture forbids the question, which says nothing else
  kCaptureImplicit = 906,  // the legacy stream, while one that it waits for captures
  kCaptureLast = 908
};

/// A capture forbids the question: that says nothing of the context.
[[nodiscard]] constexpr bool is_fatal(std::int32_t result) noexcept {
  const bool of_capture = result >= kCaptureFirst && result <= kCaptureLast;
  return result != kDone && result != kNotReady && !of_capture;
}

using HostFn = void (*)(void*);
struct HostNodeParams {
  HostFn function;
  void* with;
};

/// Handles are addresses: CUcontext, CUstream, CUevent, CUgraph and so on. Each function answers a
/// CUresult.
struct Driver {
  int (*context_current)(void**) = nullptr;
  int (*set_context)(void*) = nullptr;
  int (*context_id)(void*, unsigned long long*) = nullptr;
  int (*context_device)(int*) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*stream_query)(void*) = nullptr;
  int (*stream_id)(void*, unsigned long long*) = nullptr;
  int (*stream_context)(void*, void**) = nullptr;
  int (*is_capturing)(void*, int*) = nullptr;
  int (*exchange_capture_mode)(int*) = nullptr;
  int (*write_value)(void*, unsigned long long, std::uint64_t, unsigned) = nullptr;
  int (*launch_host)(void*, HostFn, void*) = nullptr;
  int (*host_register)(void*, std::size_t, unsigned) = nullptr;
  int (*host_unregister)(void*) = nullptr;
  int (*device_pointer)(unsigned long long*, void*, unsigned) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*graph_launch)(void*, void*) = nullptr;
  int (*add_host_node)(void**, void*, void* const*, std::size_t, const HostNodeParams*) = nullptr;

  /// Finds them. The Error (`not_found`) is one sentence: there is no driver, or it is older than
  /// CUDA 12.0's. What was found stays. Threads: any. Blocks: it loads the driver, if the process
  /// has none yet.
  static Result<const Driver*> open();
};

/// Calls one of them as our own.
template <class... To, class... From>
std::int32_t own(int (*function)(To...), From... arguments) noexcept {
  const OwnCall call;
  return function(arguments...);
}

}  // namespace ringmain::cuda
