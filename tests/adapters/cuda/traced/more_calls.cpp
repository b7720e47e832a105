// Calls of the runtime that its stand-in does not have. Each goes through CUPTI's stand-in as all
// do, and gives a handle of its own.
#include <cstddef>
#include <cstdint>

#include "tests/adapters/cuda/fakes/fake_cuda.h"

namespace {

constexpr int kRuntime = 2;

struct Reserved {
  char bytes[64];
};
struct Opened {
  void** out;
  Reserved handle;
};
struct Three {
  void** out;
  const void *second, *third;
};
struct StreamOfContext {
  void** out;
  void* context;
  unsigned flags;
  int priority;
};
struct Two {
  void *first, *second;
};

template <class Params>
int raise(std::uint32_t cbid, const char* name, const Params& params) {
  return fake_cuda_raise(kRuntime, cbid, name, &params, sizeof params, 0);
}
template <class Params>
int give(std::uint32_t cbid, const char* name, const Params& params) {
  *params.out = reinterpret_cast<void*>(std::uintptr_t{0x1000} * cbid);
  return raise(cbid, name, params);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cudaIpcOpenEventHandle(void** event, Reserved handle) {
  return give(177, "cudaIpcOpenEventHandle_v4010", Opened{event, handle});
}
int cudaMemPoolImportPointer(void** memory, void* pool, void* exported) {
  return give(390, "cudaMemPoolImportPointer_v11020", Three{memory, pool, exported});
}
int cudaExternalMemoryGetMappedBuffer(void** memory, void* external, const void* described) {
  return give(275, "cudaExternalMemoryGetMappedBuffer_v10000", Three{memory, external, described});
}
int cudaExternalMemoryGetMappedMipmappedArray(void** array, void* external, const void* described) {
  return give(276, "cudaExternalMemoryGetMappedMipmappedArray_v10000",
              Three{array, external, described});
}
#ifdef WITH_EXECUTION_CONTEXTS
int cudaExecutionCtxStreamCreate(void** stream, void* context, unsigned flags, int priority) {
  return give(533, "cudaExecutionCtxStreamCreate_v13010",
              StreamOfContext{stream, context, flags, priority});
}
int cudaExecutionCtxSynchronize(void* context) {
  return raise(534, "cudaExecutionCtxSynchronize_v13010", context);
}
int cudaExecutionCtxRecordEvent(void* context, void* event) {
  return raise(543, "cudaExecutionCtxRecordEvent_v13010", Two{context, event});
}
int cudaExecutionCtxWaitEvent(void* context, void* event) {
  return raise(544, "cudaExecutionCtxWaitEvent_v13010", Two{context, event});
}
#endif

}  // extern "C"
#pragma GCC visibility pop
