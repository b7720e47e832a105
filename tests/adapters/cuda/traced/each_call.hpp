// Each call that the wrapper has, once, in an order in which CUDA takes them: through the wrapper,
// or straight to the runtime.
//
// Compiled with NVIDIA's header before the wrapper's, with what stands in for it, and with neither.
#pragma once
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <vector>

#include "adapters/sources/cuda/traced.hpp"

namespace ringmain::cuda::tests {

namespace traced = ringmain::cuda::traced;

template <class... A>
int straight(const char* name, A... arguments) {
  auto* const function = reinterpret_cast<int (*)(A...)>(::dlsym(RTLD_DEFAULT, name));
  return function == nullptr ? -1 : function(arguments...);
}

// The name is quoted as the preprocessor makes it: of each thread's own default stream, with _ptsz.
#define QUOTED_NAME(name) #name
#define QUOTED(name) QUOTED_NAME(name)
#define EITHER(name, ...) \
  (wrapped ? static_cast<int>(traced::name(__VA_ARGS__)) : straight(QUOTED(name), __VA_ARGS__))
#define EITHER_WITHOUT(name) (wrapped ? static_cast<int>(traced::name()) : straight(QUOTED(name)))

/// What the calls give and take.
struct Things {
  traced::cudaEvent_t event = nullptr, flagged = nullptr, opened = nullptr;
  traced::cudaStream_t stream = nullptr, second = nullptr, third = nullptr, of_context = nullptr;
  void *device = nullptr, *pitched = nullptr, *managed = nullptr, *async = nullptr,
       *pooled = nullptr, *imported = nullptr, *host = nullptr, *mapped_host = nullptr,
       *opened_memory = nullptr, *external = nullptr;
  traced::cudaPitchedPtr cube{};
  traced::cudaArray_t flat = nullptr, deep = nullptr;
  traced::cudaMipmappedArray_t levels = nullptr, external_levels = nullptr;
  traced::cudaMemPool_t pool = nullptr;
  traced::cudaIpcMemHandle_t of_memory{};
  traced::cudaIpcEventHandle_t of_event{};
  traced::cudaMemPoolPtrExportData exported{};
  traced::cudaChannelFormatDesc channels{32, 0, 0, 0, {}};
  char registered[4096] = {};
};

struct EachCall {
  std::uint16_t cbid;
  int (*make)(Things& of, bool wrapped);
};

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#define OF_STREAMS(legacy, per_thread) per_thread
#else
#define OF_STREAMS(legacy, per_thread) legacy
#endif
#define CALL(cbid, ...)                                                                 \
  EachCall {                                                                            \
    cbid, []([[maybe_unused]] Things& of, bool wrapped) { return EITHER(__VA_ARGS__); } \
  }

/// Made before the others: what no wrapped call gives.
inline void prepare(Things& of) {
  (void)straight("cudaDeviceGetDefaultMemPool", &of.pool, 0);
  void* memory = nullptr;
  (void)straight("cudaMalloc", &memory, std::size_t{512});
  (void)straight("cudaIpcGetMemHandle", &of.of_memory, memory);
}

inline std::vector<EachCall> each_call() {
  constexpr std::size_t k64 = 64, k4 = 4, k8 = 8;
  return {
      CALL(133, cudaEventCreate, &of.event),
      CALL(134, cudaEventCreateWithFlags, &of.flagged, 2u),
      CALL(177, cudaIpcOpenEventHandle, &of.opened, of.of_event),
      CALL(129, cudaStreamCreate, &of.stream),
      CALL(198, cudaStreamCreateWithFlags, &of.second, 1u),
      CALL(202, cudaStreamCreateWithPriority, &of.third, 1u, -3),
      CALL(OF_STREAMS(135, 242), cudaEventRecord, of.event, of.stream),
      CALL(OF_STREAMS(135, 242), cudaEventRecord, of.event, traced::cudaStream_t{}),
      CALL(OF_STREAMS(370, 371), cudaEventRecordWithFlags, of.flagged, of.second, 0u),
      CALL(OF_STREAMS(147, 247), cudaStreamWaitEvent, of.third, of.event, 0u),
      CALL(137, cudaEventSynchronize, of.event),
      CALL(OF_STREAMS(131, 239), cudaStreamSynchronize, of.stream),
      EachCall{165, [](Things&, bool wrapped) { return EITHER_WITHOUT(cudaDeviceSynchronize); }},
      CALL(20, cudaMalloc, &of.device, k64 * 64),
      CALL(21, cudaMallocPitch, &of.pitched, &of.cube.pitch, k64, k4),
      CALL(140, cudaMalloc3D, &of.cube, traced::cudaExtent{64, 4, 2}),
      CALL(206, cudaMallocManaged, &of.managed, k64, 1u),
      CALL(OF_STREAMS(373, 374), cudaMallocAsync, &of.async, k64, of.stream),
      CALL(OF_STREAMS(391, 392), cudaMallocFromPoolAsync, &of.pooled, k64, of.pool, of.stream),
      CALL(390, cudaMemPoolImportPointer, &of.imported, of.pool, &of.exported),
      CALL(25, cudaMallocHost, &of.host, k64),
      CALL(27, cudaHostAlloc, &of.mapped_host, k64, 2u),
      CALL(152, cudaHostRegister, static_cast<void*>(of.registered), sizeof of.registered, 0u),
      CALL(179, cudaIpcOpenMemHandle, &of.opened_memory, of.of_memory, 1u),
      CALL(275, cudaExternalMemoryGetMappedBuffer, &of.external,
           traced::cudaExternalMemory_t{nullptr},
           static_cast<const traced::cudaExternalMemoryBufferDesc*>(nullptr)),
      CALL(23, cudaMallocArray, &of.flat, &of.channels, k8, k4, 0u),
      CALL(141, cudaMalloc3DArray, &of.deep, &of.channels, traced::cudaExtent{8, 4, 2}, 0u),
      CALL(192, cudaMallocMipmappedArray, &of.levels, &of.channels, traced::cudaExtent{8, 4, 0}, 2u,
           0u),
      CALL(276, cudaExternalMemoryGetMappedMipmappedArray, &of.external_levels,
           traced::cudaExternalMemory_t{nullptr},
           static_cast<const traced::cudaExternalMemoryMipmappedArrayDesc*>(nullptr)),
#ifdef WITH_EXECUTION_CONTEXTS
      CALL(533, cudaExecutionCtxStreamCreate, &of.of_context,
           traced::cudaExecutionContext_t{nullptr}, 1u, -1),
      CALL(534, cudaExecutionCtxSynchronize, traced::cudaExecutionContext_t{nullptr}),
      CALL(543, cudaExecutionCtxRecordEvent, traced::cudaExecutionContext_t{nullptr}, of.event),
      CALL(544, cudaExecutionCtxWaitEvent, traced::cudaExecutionContext_t{nullptr}, of.event),
#endif
      CALL(22, cudaFree, of.device),
      CALL(OF_STREAMS(375, 376), cudaFreeAsync, of.async, of.stream),
      CALL(26, cudaFreeHost, of.host),
      CALL(153, cudaHostUnregister, static_cast<void*>(of.registered)),
      CALL(180, cudaIpcCloseMemHandle, of.opened_memory),
      CALL(24, cudaFreeArray, of.flat),
      CALL(194, cudaFreeMipmappedArray, of.levels),
      CALL(136, cudaEventDestroy, of.event),
      CALL(201, cudaStreamDestroy, of.stream),
  };
}

/// Gives back what the calls of each_call() left, unheard.
inline void clear_away(Things& of) {
  for (void* memory : {of.pitched, of.cube.ptr, of.managed}) (void)straight("cudaFree", memory);
  (void)straight("cudaFreeAsync", of.pooled, of.second);
  (void)straight("cudaFreeHost", of.mapped_host);
  (void)straight("cudaFreeArray", of.deep);
  (void)straight("cudaEventDestroy", of.flagged);
  for (auto stream : {of.second, of.third}) (void)straight("cudaStreamDestroy", stream);
}

#undef CALL

}  // namespace ringmain::cuda::tests
