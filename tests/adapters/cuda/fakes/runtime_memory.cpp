// The fake libcudart.so.13: memory of each class.
#include <cstring>

#include "tests/adapters/cuda/fakes/runtime_calls.hpp"

namespace ringmain::fake {
namespace {

/// `format` in the driver's words: how many numbers an element has, and of which size.
CUDA_ARRAY3D_DESCRIPTOR shape_of(const cudaChannelFormatDesc& format, cudaExtent extent,
                                 unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.Width = extent.width;
  shape.Height = extent.height;
  shape.Depth = extent.depth;
  shape.Format = format.x == 8 ? CU_AD_FORMAT_UNSIGNED_INT8 : CU_AD_FORMAT_FLOAT;
  for (const int bits : {format.x, format.y, format.z, format.w}) {
    if (bits != 0) ++shape.NumChannels;
  }
  shape.Flags = flags;
  return shape;
}

}  // namespace
}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  return runtime_call<cudaMalloc_v3020_call>(
      {pointer, bytes}, [&](Deed&) { return cuMemAlloc_v2(as<CUdeviceptr*>(pointer), bytes); });
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height) {
  return runtime_call<cudaMallocPitch_v3020_call>({pointer, pitch, width, height}, [&](Deed&) {
    return cuMemAllocPitch_v2(as<CUdeviceptr*>(pointer), pitch, width, height, 4);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  return runtime_call<cudaMalloc3D_v3020_call>({pitched, extent}, [&](Deed&) {
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return cuMemAllocPitch_v2(as<CUdeviceptr*>(&pitched->ptr), &pitched->pitch, extent.width,
                              extent.height * extent.depth, 4);
  });
}

cudaError_t cudaFree(void* pointer) {
  return runtime_call<cudaFree_v3020_call>(
      {pointer}, [&](Deed&) { return cuMemFree_v2(as<CUdeviceptr>(pointer)); });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return runtime_call<cudaMallocHost_v3020_call>(
      {pointer, bytes}, [&](Deed&) { return cuMemHostAlloc(pointer, bytes, 0); });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return runtime_call<cudaHostAlloc_v3020_call>(
      {pointer, bytes, flags}, [&](Deed&) { return cuMemHostAlloc(pointer, bytes, flags); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return runtime_call<cudaFreeHost_v3020_call>(
      {pointer}, [&](Deed&) { return pointer == nullptr ? CUDA_SUCCESS : cuMemFreeHost(pointer); });
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned int flags) {
  return runtime_call<cudaHostRegister_v4000_call>(
      {pointer, bytes, flags}, [&](Deed&) { return cuMemHostRegister_v2(pointer, bytes, flags); });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return runtime_call<cudaHostUnregister_v4000_call>(
      {pointer}, [&](Deed&) { return cuMemHostUnregister(pointer); });
}

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned int flags) {
  return runtime_call<cudaMallocManaged_v6000_call>({pointer, bytes, flags}, [&](Deed&) {
    return cuMemAllocManaged(as<CUdeviceptr*>(pointer), bytes, flags);
  });
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                            std::size_t width, std::size_t height, unsigned int flags) {
  return runtime_call<cudaMallocArray_v3020_call>(
      {array, format, width, height, flags}, [&](Deed&) {
        const auto shape = shape_of(*format, {width, height, 0}, flags);
        return cuArray3DCreate_v2(as<CUarray*>(array), &shape);
      });
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned int flags) {
  return runtime_call<cudaMalloc3DArray_v3020_call>({array, format, extent, flags}, [&](Deed&) {
    const auto shape = shape_of(*format, extent, flags);
    return cuArray3DCreate_v2(as<CUarray*>(array), &shape);
  });
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* format, cudaExtent extent,
                                     unsigned int levels, unsigned int flags) {
  return runtime_call<cudaMallocMipmappedArray_v5000_call>(
      {array, format, extent, levels, flags}, [&](Deed&) {
        const auto shape = shape_of(*format, extent, flags);
        return cuMipmappedArrayCreate(as<CUmipmappedArray*>(array), &shape, levels);
      });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return runtime_call<cudaFreeArray_v3020_call>({array}, [&](Deed&) {
    return array == nullptr ? CUDA_SUCCESS : cuArrayDestroy(as<CUarray>(array));
  });
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return runtime_call<cudaFreeMipmappedArray_v5000_call>({array}, [&](Deed&) {
    return array == nullptr ? CUDA_SUCCESS : cuMipmappedArrayDestroy(as<CUmipmappedArray>(array));
  });
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return runtime_call<cudaIpcGetMemHandle_v4010_call>({handle, pointer}, [&](Deed&) {
    return cuIpcGetMemHandle(as<CUipcMemHandle*>(handle), as<CUdeviceptr>(pointer));
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return runtime_call<cudaIpcOpenMemHandle_v4010_call>({pointer, handle, flags}, [&](Deed&) {
    CUipcMemHandle same;
    static_assert(sizeof same == sizeof handle);
    std::memcpy(&same, &handle, sizeof same);
    return cuIpcOpenMemHandle_v2(as<CUdeviceptr*>(pointer), same, flags);
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return runtime_call<cudaIpcCloseMemHandle_v4010_call>(
      {pointer}, [&](Deed&) { return cuIpcCloseMemHandle(as<CUdeviceptr>(pointer)); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return runtime_call<cudaDeviceGetDefaultMemPool_v11020_call>(
      {pool, device}, [&](Deed&) { return cuDeviceGetDefaultMemPool(pool, device); });
}

}  // extern "C"
