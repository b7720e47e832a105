// The fake libcuda.so.1: what is done on a stream. Compiled twice: with
// CUDA_API_PER_THREAD_DEFAULT_STREAM these are the functions whose names end in _ptsz, which CUDA's
// header gives their names.
#include "tests/adapters/cuda/fakes/driver_memory.hpp"
#include "tests/adapters/cuda/fakes/driver_world.hpp"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define OF_FLAVOUR(name) name##_ptsz_call
#else
#define OF_FLAVOUR(name) name##_call
#endif

namespace ringmain::fake {
namespace {

/// The stream as ringmain is to say it: 0 means another one in programs of this flavour.
std::uint64_t said(CUstream stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  if (stream == nullptr) return 2;
#endif
  return number(stream);
}

/// `world().mutex` is held. Default streams are always there.
bool is_stream(CUstream stream) {
  return number(stream) <= 2 || world().streams.find(number(stream)) != nullptr;
}

bool is_capturing(CUstream stream) {
  const Stream* own = number(stream) <= 2 ? nullptr : world().streams.find(number(stream));
  return own != nullptr && own->capturing;
}

void say(Deed& deed, std::uint64_t handle, CUstream stream, std::uint32_t flags = 0) {
  deed.said = true;
  deed.handle = handle;
  deed.stream = said(stream);
  deed.flags = flags;
}

CUresult both_known(CUevent event, CUstream stream) {
  const std::lock_guard lock(world().mutex);
  const bool known = is_stream(stream) && world().events.find(number(event)) != nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult ready(CUstream stream) {
  const std::lock_guard lock(world().mutex);
  if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return is_capturing(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

}  // namespace
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuEventRecord)>({event, stream}, [&](Deed& deed) {
    say(deed, number(event), stream);
    return both_known(event, stream);
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return driver_call<OF_FLAVOUR(cuEventRecordWithFlags)>({event, stream, flags}, [&](Deed& deed) {
    say(deed, number(event), stream, flags);
    const CUresult known = both_known(event, stream);
    if (known != CUDA_SUCCESS) return known;
    const std::lock_guard lock(world().mutex);
    const bool external = (flags & CU_EVENT_RECORD_EXTERNAL) != 0;
    return external && !is_capturing(stream) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return driver_call<OF_FLAVOUR(cuStreamWaitEvent)>({stream, event, flags}, [&](Deed& deed) {
    say(deed, number(event), stream, flags);
    return both_known(event, stream);
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return driver_call<OF_FLAVOUR(cuStreamSynchronize)>({stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    return ready(stream);
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return driver_call<OF_FLAVOUR(cuStreamQuery)>({stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    return ready(stream);
  });
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return driver_call<OF_FLAVOUR(cuStreamBeginCapture_v2)>({stream, mode}, [&](Deed& deed) {
    say(deed, 0, stream);
    deed.flags = static_cast<std::uint32_t>(mode);
    const std::lock_guard lock(world().mutex);
    if (number(stream) <= 2) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    Stream* own = world().streams.find(number(stream));
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (own->capturing) return CUDA_ERROR_ILLEGAL_STATE;
    own->capturing = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return driver_call<OF_FLAVOUR(cuStreamEndCapture)>({stream, graph}, [&](Deed& deed) {
    say(deed, 0, stream);
    const std::lock_guard lock(world().mutex);
    Stream* own = world().streams.find(number(stream));
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!own->capturing) return CUDA_ERROR_ILLEGAL_STATE;
    own->capturing = false;
    deed.graph = world().graphs.make({current_context()});
    *graph = handle_of<CUgraph>(deed.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuGraphLaunch)>({exec, stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    deed.graph = number(exec);
    const std::lock_guard lock(world().mutex);
    const bool known = is_stream(stream) && world().execs.find(number(exec)) != nullptr;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuMemAllocAsync)>({pointer, bytes, stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    return allocate(MemoryClass::device, bytes, pointer, deed);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return driver_call<OF_FLAVOUR(cuMemAllocFromPoolAsync)>(
      {pointer, bytes, pool, stream}, [&](Deed& deed) {
        say(deed, 0, stream);
        return allocate(MemoryClass::device, bytes, pointer, deed);
      });
}

CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuMemFreeAsync)>({pointer, stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    return release(MemoryClass::device, pointer, deed);
  });
}

}  // extern "C"
