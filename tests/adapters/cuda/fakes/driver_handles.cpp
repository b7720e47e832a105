// The fake libcuda.so.1: events, streams and graphs as things that are made and end.
#include "tests/adapters/cuda/fakes/driver_world.hpp"

namespace ringmain::fake {
namespace {

constexpr std::uint32_t kStreamCreated = 3, kStreamDestroyStarting = 4;

void say(Deed& deed, std::uint64_t handle, std::uint32_t flags = 0) {
  deed.said = true;
  deed.handle = handle;
  deed.flags = flags;
}

CUresult make_stream(CUstream* stream, unsigned flags, int priority, Deed& deed) {
  deed.said = true;
  deed.flags = flags;
  deed.priority = priority;
  if (stream == nullptr || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(world().mutex);
    Stream made;
    made.context = current_context();
    made.id = ++world().last_stream_id;
    made.flags = flags;
    made.work = std::make_shared<Work>();
    made.work->context = made.context;
    deed.handle = world().streams.make(std::move(made));
  }
  deed.stream = deed.handle;
  *stream = handle_of<CUstream>(deed.handle);
  raise_notice(kResources, kStreamCreated, current_context(), *stream);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return driver_call<cuEventCreate_call>({event, flags}, [&](Deed& deed) {
    say(deed, 0, flags);
    if (event == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(world().mutex);
    deed.handle = world().events.make({current_context(), flags, std::make_shared<Mark>()});
    *event = handle_of<CUevent>(deed.handle);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return driver_call<cuEventDestroy_v2_call>({event}, [&](Deed& deed) {
    say(deed, number(event));
    const std::lock_guard lock(world().mutex);
    return world().events.give_back(number(event)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return driver_call<cuEventSynchronize_call>({event}, [&](Deed& deed) {
    say(deed, number(event));
    const Context* const context = current_context();
    std::unique_lock lock(world().mutex);
    const Event* own = world().events.find(number(event));
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Mark> mark = own->mark;
    const std::uint64_t until = mark->recorded;
    works().moved.wait(lock,
                       [&] { return mark->reached >= until || context->broken || !context->live; });
    return static_cast<CUresult>(context->broken.load());
  });
}

CUresult cuEventQuery(CUevent event) {
  return driver_call<cuEventQuery_call>({event}, [&](Deed& deed) {
    say(deed, number(event));
    const std::lock_guard lock(world().mutex);
    if (spoils_captures()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    const Event* own = world().events.find(number(event));
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (own->mark->captured) return CUDA_ERROR_CAPTURED_EVENT;
    return own->mark->reached < own->mark->recorded ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return driver_call<cuStreamCreate_call>(
      {stream, flags}, [&](Deed& deed) { return make_stream(stream, flags, 0, deed); });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return driver_call<cuStreamCreateWithPriority_call>({stream, flags, priority}, [&](Deed& deed) {
    return make_stream(stream, flags, priority, deed);
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return driver_call<cuStreamDestroy_v2_call>({stream}, [&](Deed& deed) {
    say(deed, number(stream));
    deed.stream = number(stream);
    {
      const std::lock_guard lock(world().mutex);
      if (world().streams.find(number(stream)) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    }
    raise_notice(kResources, kStreamDestroyStarting, current_context(), stream);
    const std::lock_guard lock(world().mutex);
    return world().streams.give_back(number(stream)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return driver_call<cuThreadExchangeStreamCaptureMode_call>({mode}, [&](Deed&) {
    if (mode == nullptr || *mode < 0 || *mode > 2) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, capture_mode());
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return driver_call<cuGraphCreate_call>({graph, flags}, [&](Deed& deed) {
    if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(world().mutex);
    deed.graph = world().graphs.make({current_context(), {}});
    *graph = handle_of<CUgraph>(deed.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            std::size_t many, const CUDA_HOST_NODE_PARAMS* what) {
  return driver_call<cuGraphAddHostNode_call>(
      {node, graph, dependencies, many, what}, [&](Deed& deed) {
        deed.graph = number(graph);
        if (node == nullptr || what == nullptr || what->fn == nullptr) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        const std::lock_guard lock(world().mutex);
        Graph* own = world().graphs.find(number(graph));
        if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
        own->nodes.push_back(
            {.kind = Op::Kind::host, .function = what->fn, .with = what->userData});
        *node = handle_of<CUgraphNode>(number(graph) + own->nodes.size());
        return CUDA_SUCCESS;
      });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return driver_call<cuGraphInstantiateWithFlags_call>({exec, graph, flags}, [&](Deed& deed) {
    const std::lock_guard lock(world().mutex);
    const Graph* own = world().graphs.find(number(graph));
    if (own == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    deed.graph = world().execs.make({current_context(), number(graph), own->nodes});
    *exec = handle_of<CUgraphExec>(deed.graph);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return driver_call<cuGraphDestroy_call>({graph}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    return world().graphs.give_back(number(graph)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return driver_call<cuGraphExecDestroy_call>({exec}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    return world().execs.give_back(number(exec)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // extern "C"
