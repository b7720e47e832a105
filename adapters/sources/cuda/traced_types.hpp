// Whose types has the wrapper? CUDA's, where <cuda_runtime_api.h> was included before; else its
// own, with the same names and layouts, so that a program can be built without CUDA's toolkit.
//
// Handles are pointers to CUDA's own structs in either case. Not here are macros, such as
// cudaEventDisableTiming, and what copies and queries take: a program that needs them has the
// toolkit.
#pragma once
#include <cstddef>

#if !defined(CUDART_VERSION)
struct CUevent_st;
struct CUstream_st;
struct CUmemPoolHandle_st;
struct CUexternalMemory_st;
struct cudaArray;
struct cudaMipmappedArray;
struct cudaExecutionContext_st;
struct cudaExternalMemoryBufferDesc;
struct cudaExternalMemoryMipmappedArrayDesc;
#endif

namespace ringmain::cuda::traced {

#if defined(CUDART_VERSION)
inline namespace toolkit_types {

using ::cudaArray_t;
using ::cudaChannelFormatDesc;
using ::cudaError_t;
using ::cudaEvent_t;
using ::cudaExtent;
using ::cudaExternalMemory_t;
using ::cudaExternalMemoryBufferDesc;
using ::cudaExternalMemoryMipmappedArrayDesc;
using ::cudaIpcEventHandle_t;
using ::cudaIpcMemHandle_t;
using ::cudaMemPool_t;
using ::cudaMemPoolPtrExportData;
using ::cudaMipmappedArray_t;
using ::cudaPitchedPtr;
using ::cudaStream_t;

using ::cudaErrorCallRequiresNewerDriver;
using ::cudaErrorInsufficientDriver;
using ::cudaErrorInvalidResourceHandle;
using ::cudaErrorInvalidValue;
using ::cudaErrorMemoryAllocation;
using ::cudaErrorNoDevice;
using ::cudaErrorNotPermitted;
using ::cudaErrorNotReady;
using ::cudaSuccess;
#if CUDART_VERSION >= 13010
using ::cudaExecutionContext_t;
#endif

}  // namespace toolkit_types
#else
inline namespace own_types {

using cudaEvent_t = ::CUevent_st*;
using cudaStream_t = ::CUstream_st*;
using cudaMemPool_t = ::CUmemPoolHandle_st*;
using cudaExternalMemory_t = ::CUexternalMemory_st*;
using cudaArray_t = ::cudaArray*;
using cudaMipmappedArray_t = ::cudaMipmappedArray*;
using cudaExecutionContext_t = ::cudaExecutionContext_st*;
using ::cudaExternalMemoryBufferDesc;
using ::cudaExternalMemoryMipmappedArrayDesc;

/// Those that a program meets most; every value of CUDA's may come.
enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorCallRequiresNewerDriver = 36,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorNotPermitted = 800
};
struct cudaIpcEventHandle_t {
  char reserved[64];
};
struct cudaIpcMemHandle_t {
  char reserved[64];
};
struct cudaMemPoolPtrExportData {
  unsigned char reserved[64];
};
struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaExtent {
  std::size_t width, height, depth;
};
/// `f` is a cudaChannelFormatKind: 0 signed, 1 unsigned, 2 float.
struct cudaChannelFormatDesc {
  int x, y, z, w;
  int f;
};

}  // namespace own_types
#endif

}  // namespace ringmain::cuda::traced
