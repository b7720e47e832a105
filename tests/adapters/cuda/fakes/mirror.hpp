// What the fakes need of CUDA's and CUPTI's headers, where those are absent. The names are theirs,
// as programs are to compile with either.
#pragma once
#include <cstddef>
#include <cstdint>

#include "adapters/sources/cuda/cupti_abi.hpp"

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#include "tests/adapters/cuda/fakes/mirror_per_thread.hpp"
#else
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamWriteValue64 cuStreamWriteValue64_v2
#endif

extern "C" {

// ---- The driver ----
enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_CAPTURED_EVENT = 907
};
enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2
};
enum CUdevice_attribute : int { CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122 };
enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2
};
using CUdevice = int;
using cuuint64_t = std::uint64_t;
using CUhostFn = void (*)(void*);
using CUgraphNode = struct CUgraphNode_st*;
struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void* userData;
};
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUevent = struct CUevent_st*;
using CUstream = struct CUstream_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
struct CUctxCreateParams;
struct CUmemAllocationProp;
struct CUipcMemHandle {
  char reserved[64];
};
enum CUarray_format : int { CU_AD_FORMAT_UNSIGNED_INT8 = 0x01, CU_AD_FORMAT_FLOAT = 0x20 };
struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t Width, Height;
  CUarray_format Format;
  unsigned int NumChannels;
};
struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t Width, Height, Depth;
  CUarray_format Format;
  unsigned int NumChannels, Flags;
};

// ---- The runtime ----
enum cudaError : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900
};
using cudaError_t = cudaError;
enum cudaStreamCaptureMode : int {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2
};
enum cudaStreamCaptureStatus : int {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2
};
using cudaHostFn_t = void (*)(void*);
using cudaEvent_t = CUevent;
using cudaStream_t = CUstream;
using cudaGraph_t = CUgraph;
using cudaGraphExec_t = CUgraphExec;
using cudaMemPool_t = CUmemoryPool;
using cudaArray_t = struct cudaArray*;
using cudaMipmappedArray_t = struct cudaMipmappedArray*;
struct cudaIpcMemHandle_t {
  char reserved[64];
};
struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaExtent {
  std::size_t width, height, depth;
};
enum cudaChannelFormatKind : int { cudaChannelFormatKindSigned = 0 };
struct cudaChannelFormatDesc {
  int x, y, z, w;
  cudaChannelFormatKind f;
};
constexpr unsigned cudaEventDisableTiming = 2, cudaStreamNonBlocking = 1, cudaHostAllocMapped = 2,
                   cudaMemAttachGlobal = 1, cudaEventRecordExternal = 1,
                   cudaIpcMemLazyEnablePeerAccess = 1;
constexpr unsigned CU_EVENT_RECORD_EXTERNAL = 1;

cudaError_t cudaGetDeviceCount(int*);
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetDevice(int*);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t, cudaStream_t, unsigned);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t*, unsigned, int);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*);
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t, void*);
cudaError_t cudaGraphCreate(cudaGraph_t*, unsigned);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaMalloc(void**, std::size_t);
cudaError_t cudaMallocPitch(void**, std::size_t*, std::size_t, std::size_t);
cudaError_t cudaMalloc3D(cudaPitchedPtr*, cudaExtent);
cudaError_t cudaFree(void*);
cudaError_t cudaMallocAsync(void**, std::size_t, cudaStream_t);
cudaError_t cudaFreeAsync(void*, cudaStream_t);
cudaError_t cudaMallocFromPoolAsync(void**, std::size_t, cudaMemPool_t, cudaStream_t);
cudaError_t cudaMallocArray(cudaArray_t*, const cudaChannelFormatDesc*, std::size_t, std::size_t,
                            unsigned = 0);
cudaError_t cudaMalloc3DArray(cudaArray_t*, const cudaChannelFormatDesc*, cudaExtent, unsigned = 0);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t*, const cudaChannelFormatDesc*,
                                     cudaExtent, unsigned, unsigned = 0);
cudaError_t cudaFreeArray(cudaArray_t);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t);
cudaError_t cudaMallocHost(void**, std::size_t);
cudaError_t cudaHostAlloc(void**, std::size_t, unsigned);
cudaError_t cudaFreeHost(void*);
cudaError_t cudaHostRegister(void*, std::size_t, unsigned);
cudaError_t cudaHostUnregister(void*);
cudaError_t cudaMallocManaged(void**, std::size_t, unsigned = cudaMemAttachGlobal);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*);
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned);
cudaError_t cudaIpcCloseMemHandle(void*);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t*, int);

}  // extern "C"

// ---- CUPTI ----
using CUptiResult = ringmain::cuda::abi::Result;
using CUpti_SubscriberHandle = ringmain::cuda::abi::Subscriber;
using CUpti_CallbackFunc = ringmain::cuda::abi::Callback;
using CUpti_SubscriberParams = ringmain::cuda::abi::SubscriberParams;
using CUpti_CallbackDomain = ringmain::cuda::abi::Domain;
