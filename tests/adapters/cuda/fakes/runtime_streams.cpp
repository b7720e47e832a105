// The fake libcudart.so.13: what is done on a stream. Compiled twice, as driver_streams.cpp is.
#include "tests/adapters/cuda/fakes/runtime_calls.hpp"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define OF_FLAVOUR(name, version, per_thread_version) name##_ptsz_##per_thread_version##_call
#else
#define OF_FLAVOUR(name, version, per_thread_version) name##_##version##_call
#endif

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaEventRecord, v3020, v7000)>(
      {event, stream}, [&](Deed&) { return cuEventRecord(event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return runtime_call<OF_FLAVOUR(cudaEventRecordWithFlags, v11010, v11010)>(
      {event, stream, flags}, [&](Deed&) { return cuEventRecordWithFlags(event, stream, flags); });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return runtime_call<OF_FLAVOUR(cudaStreamWaitEvent, v3020, v7000)>(
      {stream, event, flags}, [&](Deed&) { return cuStreamWaitEvent(stream, event, flags); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaStreamSynchronize, v3020, v7000)>(
      {stream}, [&](Deed&) { return cuStreamSynchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaStreamQuery, v3020, v7000)>(
      {stream}, [&](Deed&) { return cuStreamQuery(stream); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* with) {
  return runtime_call<OF_FLAVOUR(cudaLaunchHostFunc, v10000, v10000)>(
      {stream, function, with}, [&](Deed&) { return cuLaunchHostFunc(stream, function, with); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return runtime_call<OF_FLAVOUR(cudaStreamIsCapturing, v10000, v10000)>(
      {stream, status}, [&](Deed&) {
        return cuStreamIsCapturing(stream, reinterpret_cast<CUstreamCaptureStatus*>(status));
      });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return runtime_call<OF_FLAVOUR(cudaStreamBeginCapture, v10000, v10000)>(
      {stream, mode},
      [&](Deed&) { return cuStreamBeginCapture(stream, static_cast<CUstreamCaptureMode>(mode)); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return runtime_call<OF_FLAVOUR(cudaStreamEndCapture, v10000, v10000)>(
      {stream, graph}, [&](Deed&) { return cuStreamEndCapture(stream, graph); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaGraphLaunch, v10000, v10000)>(
      {exec, stream}, [&](Deed&) { return cuGraphLaunch(exec, stream); });
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaMallocAsync, v11020, v11020)>(
      {pointer, bytes, stream},
      [&](Deed&) { return cuMemAllocAsync(as<CUdeviceptr*>(pointer), bytes, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaMallocFromPoolAsync, v11020, v11020)>(
      {pointer, bytes, pool, stream}, [&](Deed&) {
        return cuMemAllocFromPoolAsync(as<CUdeviceptr*>(pointer), bytes, pool, stream);
      });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return runtime_call<OF_FLAVOUR(cudaFreeAsync, v11020, v11020)>(
      {pointer, stream}, [&](Deed&) { return cuMemFreeAsync(as<CUdeviceptr>(pointer), stream); });
}

}  // extern "C"
