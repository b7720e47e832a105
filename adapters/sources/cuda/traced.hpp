// How does a program have its CUDA calls heard, and refused, before they are made? It calls them
// by the same names in this namespace.
//
//   #include <cuda_runtime_api.h>   // first, where there is a toolkit; it builds without, too
//   #include <ringmain/adapters/sources/cuda/traced.hpp>
//   namespace traced = ringmain::cuda::traced;
//   …
//   auto budget = bus.channel<cuda::CallBegin>().subscribe_inline([](const cuda::CallBegin& call) {
//     return fits(call.bytes) ? Verdict::allow() : Verdict::veto(over_budget);
//   });
//   auto source = cuda::Source::attach(bus, {.wrapped_only = true});  // or without: CUPTI as well
//   …
//   if (traced::cudaMalloc(&memory, bytes) == cudaErrorMemoryAllocation) …  // traced:: without a
//   toolkit
//
// While a source is attached (cuda_source.hpp), each of these calls is asked about on
// `cuda.call_begin`, and told on its kind's channel with `layer` wrapper, once, whether CUPTI hears
// it as well or not. While none is, or nobody listens, a call costs a load and a branch more.
//
// A call that an inline subscriber refuses is not made. It returns cudaErrorMemoryAllocation if it
// would have given memory, else cudaErrorNotPermitted; CUDA knows nothing of it, and
// cudaGetLastError() says what it said before. What CUDA answers is passed on as it is.
//
// With the toolkit's header the functions that the program is linked with are called, a static
// cudart's too. Without it they are looked for when they are first called: among what is loaded,
// then by the loader as libcudart.so.13, .12. Where there is no runtime, a call answers
// cudaErrorInsufficientDriver; where the runtime is older than the call,
// cudaErrorCallRequiresNewerDriver.
//
// Threads: any. Link ringmain::cuda. Left by longjmp(), a call mutes what CUPTI tells of the
// thread's calls of the driver until its next call of the runtime.
#pragma once
#include <cstddef>
#include <string_view>

#include "../../../events/cuda_wrapped.hpp"

#include "traced_call.hpp"
#include "traced_types.hpp"

// The function of that name that this program is linked with.
#if defined(CUDART_VERSION)
#define RINGMAIN_CUDA_LINKED(name) &::name
#else
#define RINGMAIN_CUDA_LINKED(name) nullptr
#endif

namespace ringmain::cuda::traced {

/// For tests: from now on wrapped calls of this name go to `function`, in all threads. Names are
/// CUDA's, of each thread's own default stream with their ending: "cudaEventRecord_ptsz". Also
/// "cudaGetDevice", which says the events' `device`. False: no wrapped call has that name. The
/// function is called with that call's arguments: its type must be CUDA's.
template <class... A>
bool replace(std::string_view name, cudaError_t (*function)(A...)) {
  return cuda::detail::replace_function(name,
                                        reinterpret_cast<cuda::detail::AnyFunction*>(function));
}
/// Wrapped calls of this name go to CUDA again.
inline bool restore(std::string_view name) {
  return cuda::detail::replace_function(name, nullptr);
}

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
inline namespace streams_of_threads {
#define RINGMAIN_CUDA_STREAMS(legacy, per_thread) per_thread
#else
inline namespace legacy_streams {
#define RINGMAIN_CUDA_STREAMS(legacy, per_thread) legacy
#endif

// Events.

inline cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return detail::Wrapped<177, cudaEvent_t*, cudaIpcEventHandle_t>::call(
      RINGMAIN_CUDA_LINKED(cudaIpcOpenEventHandle), event, handle);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return detail::Wrapped<133, cudaEvent_t*>::call(RINGMAIN_CUDA_LINKED(cudaEventCreate), event);
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return detail::Wrapped<134, cudaEvent_t*, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaEventCreateWithFlags), event, flags);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return detail::Wrapped<136, cudaEvent_t>::call(RINGMAIN_CUDA_LINKED(cudaEventDestroy), event);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(135, 242), cudaEvent_t, cudaStream_t>::call(
      RINGMAIN_CUDA_LINKED(cudaEventRecord), event, stream);
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr,
                                            unsigned flags = 0) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(370, 371), cudaEvent_t, cudaStream_t,
                         unsigned>::call(RINGMAIN_CUDA_LINKED(cudaEventRecordWithFlags), event,
                                         stream, flags);
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(147, 247), cudaStream_t, cudaEvent_t,
                         unsigned>::call(RINGMAIN_CUDA_LINKED(cudaStreamWaitEvent), stream, event,
                                         flags);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return detail::Wrapped<137, cudaEvent_t>::call(RINGMAIN_CUDA_LINKED(cudaEventSynchronize), event);
}

// Streams and devices.

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return detail::Wrapped<129, cudaStream_t*>::call(RINGMAIN_CUDA_LINKED(cudaStreamCreate), stream);
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return detail::Wrapped<198, cudaStream_t*, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaStreamCreateWithFlags), stream, flags);
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                int priority) {
  return detail::Wrapped<202, cudaStream_t*, unsigned, int>::call(
      RINGMAIN_CUDA_LINKED(cudaStreamCreateWithPriority), stream, flags, priority);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return detail::Wrapped<201, cudaStream_t>::call(RINGMAIN_CUDA_LINKED(cudaStreamDestroy), stream);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(131, 239), cudaStream_t>::call(
      RINGMAIN_CUDA_LINKED(cudaStreamSynchronize), stream);
}
inline cudaError_t cudaDeviceSynchronize() {
  return detail::Wrapped<165>::call(RINGMAIN_CUDA_LINKED(cudaDeviceSynchronize));
}

// Memory.

inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return detail::Wrapped<20, void**, std::size_t>::call(RINGMAIN_CUDA_LINKED(cudaMalloc), memory,
                                                        bytes);
}
inline cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width,
                                   std::size_t height) {
  return detail::Wrapped<21, void**, std::size_t*, std::size_t, std::size_t>::call(
      RINGMAIN_CUDA_LINKED(cudaMallocPitch), memory, pitch, width, height);
}
inline cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  return detail::Wrapped<140, cudaPitchedPtr*, cudaExtent>::call(RINGMAIN_CUDA_LINKED(cudaMalloc3D),
                                                                 memory, extent);
}
inline cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned flags = 1) {
  return detail::Wrapped<206, void**, std::size_t, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaMallocManaged), memory, bytes, flags);
}
inline cudaError_t cudaFree(void* memory) {
  return detail::Wrapped<22, void*>::call(RINGMAIN_CUDA_LINKED(cudaFree), memory);
}
inline cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(373, 374), void**, std::size_t, cudaStream_t>::call(
      RINGMAIN_CUDA_LINKED(cudaMallocAsync), memory, bytes, stream);
}
inline cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(391, 392), void**, std::size_t, cudaMemPool_t,
                         cudaStream_t>::call(RINGMAIN_CUDA_LINKED(cudaMallocFromPoolAsync), memory,
                                             bytes, pool, stream);
}
inline cudaError_t cudaMemPoolImportPointer(void** memory, cudaMemPool_t pool,
                                            cudaMemPoolPtrExportData* exported) {
  return detail::Wrapped<390, void**, cudaMemPool_t, cudaMemPoolPtrExportData*>::call(
      RINGMAIN_CUDA_LINKED(cudaMemPoolImportPointer), memory, pool, exported);
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return detail::Wrapped<RINGMAIN_CUDA_STREAMS(375, 376), void*, cudaStream_t>::call(
      RINGMAIN_CUDA_LINKED(cudaFreeAsync), memory, stream);
}
inline cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return detail::Wrapped<25, void**, std::size_t>::call(RINGMAIN_CUDA_LINKED(cudaMallocHost),
                                                        memory, bytes);
}
inline cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return detail::Wrapped<27, void**, std::size_t, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaHostAlloc), memory, bytes, flags);
}
inline cudaError_t cudaFreeHost(void* memory) {
  return detail::Wrapped<26, void*>::call(RINGMAIN_CUDA_LINKED(cudaFreeHost), memory);
}
inline cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  return detail::Wrapped<152, void*, std::size_t, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaHostRegister), memory, bytes, flags);
}
inline cudaError_t cudaHostUnregister(void* memory) {
  return detail::Wrapped<153, void*>::call(RINGMAIN_CUDA_LINKED(cudaHostUnregister), memory);
}
inline cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags) {
  return detail::Wrapped<179, void**, cudaIpcMemHandle_t, unsigned>::call(
      RINGMAIN_CUDA_LINKED(cudaIpcOpenMemHandle), memory, handle, flags);
}
inline cudaError_t cudaIpcCloseMemHandle(void* memory) {
  return detail::Wrapped<180, void*>::call(RINGMAIN_CUDA_LINKED(cudaIpcCloseMemHandle), memory);
}
inline cudaError_t cudaExternalMemoryGetMappedBuffer(
    void** memory, cudaExternalMemory_t external, const cudaExternalMemoryBufferDesc* described) {
  return detail::Wrapped<275, void**, cudaExternalMemory_t, const cudaExternalMemoryBufferDesc*>::
      call(RINGMAIN_CUDA_LINKED(cudaExternalMemoryGetMappedBuffer), memory, external, described);
}

// Arrays.

inline cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                                   std::size_t width, std::size_t height = 0, unsigned flags = 0) {
  return detail::Wrapped<23, cudaArray_t*, const cudaChannelFormatDesc*, std::size_t, std::size_t,
                         unsigned>::call(RINGMAIN_CUDA_LINKED(cudaMallocArray), array, channels,
                                         width, height, flags);
}
inline cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                                     cudaExtent extent, unsigned flags = 0) {
  return detail::Wrapped<141, cudaArray_t*, const cudaChannelFormatDesc*, cudaExtent,
                         unsigned>::call(RINGMAIN_CUDA_LINKED(cudaMalloc3DArray), array, channels,
                                         extent, flags);
}
inline cudaError_t cudaFreeArray(cudaArray_t array) {
  return detail::Wrapped<24, cudaArray_t>::call(RINGMAIN_CUDA_LINKED(cudaFreeArray), array);
}
inline cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                            const cudaChannelFormatDesc* channels,
                                            cudaExtent extent, unsigned levels,
                                            unsigned flags = 0) {
  return detail::Wrapped<192, cudaMipmappedArray_t*, const cudaChannelFormatDesc*, cudaExtent,
                         unsigned, unsigned>::call(RINGMAIN_CUDA_LINKED(cudaMallocMipmappedArray),
                                                   array, channels, extent, levels, flags);
}
inline cudaError_t cudaExternalMemoryGetMappedMipmappedArray(
    cudaMipmappedArray_t* array, cudaExternalMemory_t external,
    const cudaExternalMemoryMipmappedArrayDesc* described) {
  return detail::Wrapped<276, cudaMipmappedArray_t*, cudaExternalMemory_t,
                         const cudaExternalMemoryMipmappedArrayDesc*>::
      call(RINGMAIN_CUDA_LINKED(cudaExternalMemoryGetMappedMipmappedArray), array, external,
           described);
}
inline cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return detail::Wrapped<194, cudaMipmappedArray_t>::call(
      RINGMAIN_CUDA_LINKED(cudaFreeMipmappedArray), array);
}

// Execution contexts, of CUDA 13.1 and later.

#if !defined(CUDART_VERSION) || CUDART_VERSION >= 13010
inline cudaError_t cudaExecutionCtxStreamCreate(cudaStream_t* stream,
                                                cudaExecutionContext_t context, unsigned flags,
                                                int priority) {
  return detail::Wrapped<533, cudaStream_t*, cudaExecutionContext_t, unsigned, int>::call(
      RINGMAIN_CUDA_LINKED(cudaExecutionCtxStreamCreate), stream, context, flags, priority);
}
inline cudaError_t cudaExecutionCtxSynchronize(cudaExecutionContext_t context) {
  return detail::Wrapped<534, cudaExecutionContext_t>::call(
      RINGMAIN_CUDA_LINKED(cudaExecutionCtxSynchronize), context);
}
inline cudaError_t cudaExecutionCtxRecordEvent(cudaExecutionContext_t context, cudaEvent_t event) {
  return detail::Wrapped<543, cudaExecutionContext_t, cudaEvent_t>::call(
      RINGMAIN_CUDA_LINKED(cudaExecutionCtxRecordEvent), context, event);
}
inline cudaError_t cudaExecutionCtxWaitEvent(cudaExecutionContext_t context, cudaEvent_t event) {
  return detail::Wrapped<544, cudaExecutionContext_t, cudaEvent_t>::call(
      RINGMAIN_CUDA_LINKED(cudaExecutionCtxWaitEvent), context, event);
}
#endif

// As <cuda_runtime.h> has them, for pointers to any type.

template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return traced::cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** memory, std::size_t bytes, cudaStream_t stream) {
  return traced::cudaMallocAsync(reinterpret_cast<void**>(memory), bytes, stream);
}
template <class T>
cudaError_t cudaMallocPitch(T** memory, std::size_t* pitch, std::size_t width, std::size_t height) {
  return traced::cudaMallocPitch(reinterpret_cast<void**>(memory), pitch, width, height);
}
template <class T>
cudaError_t cudaMallocManaged(T** memory, std::size_t bytes, unsigned flags = 1) {
  return traced::cudaMallocManaged(reinterpret_cast<void**>(memory), bytes, flags);
}
template <class T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes) {
  return traced::cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes, unsigned flags) {
  return traced::cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}
template <class T>
cudaError_t cudaMallocFromPoolAsync(T** memory, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return traced::cudaMallocFromPoolAsync(reinterpret_cast<void**>(memory), bytes, pool, stream);
}
template <class T>
cudaError_t cudaMallocAsync(T** memory, std::size_t bytes, cudaMemPool_t pool,
                            cudaStream_t stream) {
  return traced::cudaMallocFromPoolAsync(memory, bytes, pool, stream);
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return traced::cudaEventCreateWithFlags(event, flags);
}
template <class T>
cudaError_t cudaHostAlloc(T** memory, std::size_t bytes, unsigned flags) {
  return traced::cudaHostAlloc(reinterpret_cast<void**>(memory), bytes, flags);
}

}  // NOLINT: one of two inline namespaces

}  // namespace ringmain::cuda::traced

#undef RINGMAIN_CUDA_LINKED
#undef RINGMAIN_CUDA_STREAMS
