// The fake libcudart.so.13: devices, errors, events and graphs.
#include "tests/adapters/cuda/fakes/runtime_calls.hpp"

namespace ringmain::fake {
namespace {
thread_local int last_error = 0;
}

cudaError_t remember(int result) {
  if (result != 0) last_error = result;
  return static_cast<cudaError_t>(result);
}

int begin_driver() {
  static const int begun = static_cast<int>(cuInit(0));
  return begun;
}

int ensure_context() {
  if (fake_cuda_context_uid() != 0) return 0;
  CUcontext context = nullptr;
  CUdevice device = 0;
  (void)cuCtxGetCurrent(&context);
  (void)cuCtxSetCurrent(nullptr);
  if (const CUresult result = fake_cuda_take_primary(&context, 0); result != CUDA_SUCCESS) {
    return static_cast<int>(result);
  }
  (void)cuCtxGetCurrent(&context);
  return static_cast<int>(cuCtxGetDevice_v2(&device, context));
}

}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const int begun = begin_driver();
  return remember(serve<cudaGetDeviceCount_v3020_call>({count}, [&](Deed&) -> int {
    return begun != 0 ? begun : static_cast<int>(cuDeviceGetCount(count));
  }));
}

cudaError_t cudaSetDevice(int device) {
  return runtime_call<cudaSetDevice_v3020_call>(
      {device}, [&](Deed&) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

cudaError_t cudaGetDevice(int* device) {
  return remember(
      serve<cudaGetDevice_v3020_call>({device}, [&](Deed&) -> int { return *device = 0; }));
}

cudaError_t cudaGetLastError() {
  return static_cast<cudaError_t>(serve<cudaGetLastError_v3020_call>({}, [](Deed&) -> int {
    const int result = last_error;
    last_error = 0;
    return result;
  }));
}

cudaError_t cudaPeekAtLastError() {
  return static_cast<cudaError_t>(
      serve<cudaPeekAtLastError_v3020_call>({}, [](Deed&) -> int { return last_error; }));
}

cudaError_t cudaDeviceSynchronize() {
  return runtime_call<cudaDeviceSynchronize_v3020_call>({}, [](Deed&) {
    CUcontext context = nullptr;
    const CUresult asked = cuCtxGetCurrent(&context);
    return asked == CUDA_SUCCESS ? cuCtxSynchronize_v2(context) : asked;
  });
}

cudaError_t cudaDeviceReset() {
  return runtime_call<cudaDeviceReset_v3020_call>(
      {}, [](Deed&) { return cuDevicePrimaryCtxReset_v2(0); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return runtime_call<cudaEventCreate_v3020_call>({event},
                                                  [&](Deed&) { return cuEventCreate(event, 0); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return runtime_call<cudaEventCreateWithFlags_v3020_call>(
      {event, flags}, [&](Deed&) { return cuEventCreate(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return runtime_call<cudaEventDestroy_v3020_call>({event},
                                                   [&](Deed&) { return cuEventDestroy_v2(event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return runtime_call<cudaEventSynchronize_v3020_call>(
      {event}, [&](Deed&) { return cuEventSynchronize(event); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return runtime_call<cudaEventQuery_v3020_call>({event},
                                                 [&](Deed&) { return cuEventQuery(event); });
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return runtime_call<cudaStreamCreate_v3020_call>(
      {stream}, [&](Deed&) { return cuStreamCreate(stream, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return runtime_call<cudaStreamCreateWithFlags_v5000_call>(
      {stream, flags}, [&](Deed&) { return cuStreamCreate(stream, flags); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return runtime_call<cudaStreamCreateWithPriority_v5050_call>(
      {stream, flags, priority},
      [&](Deed&) { return cuStreamCreateWithPriority(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return runtime_call<cudaStreamDestroy_v5050_call>(
      {stream}, [&](Deed&) { return cuStreamDestroy_v2(stream); });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return runtime_call<cudaThreadExchangeStreamCaptureMode_v10010_call>({mode}, [&](Deed&) {
    return cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode));
  });
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return runtime_call<cudaGraphCreate_v10000_call>(
      {graph, flags}, [&](Deed&) { return cuGraphCreate(graph, flags); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return runtime_call<cudaGraphInstantiate_v12000_call>(
      {exec, graph, flags}, [&](Deed&) { return cuGraphInstantiateWithFlags(exec, graph, flags); });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return runtime_call<cudaGraphDestroy_v10000_call>({graph},
                                                    [&](Deed&) { return cuGraphDestroy(graph); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return runtime_call<cudaGraphExecDestroy_v10000_call>(
      {exec}, [&](Deed&) { return cuGraphExecDestroy(exec); });
}

}  // extern "C"
