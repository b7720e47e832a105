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

constexpr std::uint32_t kStreamSynchronized = 1;

/// The stream as ringmain is to say it: 0 means another one in programs of this flavour.
std::uint64_t said(CUstream stream) {
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  if (stream == nullptr) return 2;
#endif
  return number(stream);
}

/// `world().mutex` is held. Default streams are always there.
Stream* own_of(CUstream stream) {
  return number(stream) <= 2 ? nullptr : world().streams.find(number(stream));
}
bool is_stream(CUstream stream) {
  return number(stream) <= 2 || own_of(stream) != nullptr;
}
bool is_capturing(CUstream stream) {
  const Stream* own = own_of(stream);
  return own != nullptr && own->capturing;
}

void say(Deed& deed, std::uint64_t handle, CUstream stream, std::uint32_t flags = 0) {
  deed.said = true;
  deed.handle = handle;
  deed.stream = said(stream);
  deed.flags = flags;
}

/// `world().mutex` is held. On a stream, or into the graph that it captures.
CUresult put_on(CUstream stream, Op op) {
  Stream* own = own_of(stream);
  if (own != nullptr && own->capturing) {
    if (own->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    own->captured.push_back(std::move(op));
    return CUDA_SUCCESS;
  }
  const std::shared_ptr<Work> work = work_of(said(stream));
  if (work == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  put(work, std::move(op));
  return CUDA_SUCCESS;
}

CUresult record(CUevent event, CUstream stream) {
  const std::lock_guard lock(world().mutex);
  const Event* own = world().events.find(number(event));
  if (own == nullptr || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  own->mark->captured = is_capturing(stream);
  if (own->mark->captured) return CUDA_SUCCESS;  // a node that nobody asks about
  return put_on(stream,
                {.kind = Op::Kind::record, .number = ++own->mark->recorded, .mark = own->mark});
}

CUresult known(CUstream stream) {
  const std::lock_guard lock(world().mutex);
  return is_stream(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuEventRecord)>({event, stream}, [&](Deed& deed) {
    say(deed, number(event), stream);
    return record(event, stream);
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  return driver_call<OF_FLAVOUR(cuEventRecordWithFlags)>({event, stream, flags}, [&](Deed& deed) {
    say(deed, number(event), stream, flags);
    if (const CUresult there = known(stream); there != CUDA_SUCCESS) return there;
    {
      const std::lock_guard lock(world().mutex);
      if (world().events.find(number(event)) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      const bool external = (flags & CU_EVENT_RECORD_EXTERNAL) != 0;
      if (external && !is_capturing(stream)) return CUDA_ERROR_ILLEGAL_STATE;
    }
    return record(event, stream);
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return driver_call<OF_FLAVOUR(cuStreamWaitEvent)>({stream, event, flags}, [&](Deed& deed) {
    say(deed, number(event), stream, flags);
    const std::lock_guard lock(world().mutex);
    const Event* own = world().events.find(number(event));
    if (own == nullptr || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (own->mark->captured || is_capturing(stream)) return CUDA_SUCCESS;  // an edge of a graph's
    return put_on(stream,
                  {.kind = Op::Kind::wait, .number = own->mark->recorded, .mark = own->mark});
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return driver_call<OF_FLAVOUR(cuStreamSynchronize)>({stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    Context* const context = current_context();
    {
      std::unique_lock lock(world().mutex);
      if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
      if (is_capturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      const std::shared_ptr<Work> work = work_of(said(stream));
      works().moved.wait(lock, [&] { return work->over(); });
    }
    if (const int why_not = context->broken; why_not != 0) return static_cast<CUresult>(why_not);
    if (stream != nullptr) raise_notice(kSynchronizations, kStreamSynchronized, context, stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return driver_call<OF_FLAVOUR(cuStreamQuery)>({stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    const std::lock_guard lock(world().mutex);
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (is_capturing(stream) || spoils_captures()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return work_of(said(stream))->over() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return driver_call<OF_FLAVOUR(cuStreamGetId)>({stream, id}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    const Stream* own = own_of(stream);
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    *id = own != nullptr ? own->id : default_stream(said(stream));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return driver_call<OF_FLAVOUR(cuStreamGetCtx)>({stream, context}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    const Stream* own = own_of(stream);
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    *context = handle_of<CUcontext>(number(own != nullptr ? own->context : current_context()));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return driver_call<OF_FLAVOUR(cuStreamIsCapturing)>({stream, status}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    if (!is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const Stream* own = own_of(stream);
    const bool capturing = own != nullptr && own->capturing;
    *status = !capturing         ? CU_STREAM_CAPTURE_STATUS_NONE
              : own->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags) {
  return driver_call<OF_FLAVOUR(cuStreamWriteValue64_v2)>(
      {stream, address, value, flags}, [&](Deed& deed) {
        say(deed, 0, stream, flags);
        constexpr int kCan64BitStreamMemOps = 122;
        if (attribute_of(kCan64BitStreamMemOps) == 0) return CUDA_ERROR_NOT_SUPPORTED;
        const std::lock_guard lock(world().mutex);
        if (address % sizeof value != 0 || host_view(address, sizeof value) == nullptr) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        return put_on(stream, {.kind = Op::Kind::write, .number = value, .address = address});
      });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* with) {
  return driver_call<OF_FLAVOUR(cuLaunchHostFunc)>({stream, function, with}, [&](Deed& deed) {
    say(deed, 0, stream);
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(world().mutex);
    return put_on(stream, {.kind = Op::Kind::host, .function = function, .with = with});
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
    own->invalidated = false;
    own->mode = mode;
    own->by = std::this_thread::get_id();
    own->captured.clear();
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
    if (own->invalidated) {
      *graph = nullptr;
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    deed.graph = world().graphs.make({current_context(), std::move(own->captured)});
    *graph = handle_of<CUgraph>(deed.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return driver_call<OF_FLAVOUR(cuGraphLaunch)>({exec, stream}, [&](Deed& deed) {
    say(deed, 0, stream);
    deed.graph = number(exec);
    const std::lock_guard lock(world().mutex);
    const GraphExec* own = world().execs.find(number(exec));
    if (own == nullptr || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const std::vector<Op> nodes = own->nodes;
    for (const Op& node : nodes) {
      if (const CUresult result = put_on(stream, node); result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
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
