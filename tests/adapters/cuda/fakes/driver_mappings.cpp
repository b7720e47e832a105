// The fake libcuda.so.1: physical memory, addresses, and the one mapped at the other.
#include "tests/adapters/cuda/fakes/driver_memory.hpp"

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* kind, unsigned long long flags) {
  return driver_call<cuMemCreate_call>({handle, bytes, kind, flags}, [&](Deed& deed) {
    deed.said = true;
    deed.bytes = bytes;
    if (handle == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > kDeviceBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard lock(world().mutex);
    deed.handle = *handle = world().physical.make({MemoryClass::device, bytes, current_context()});
    return CUDA_SUCCESS;
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return driver_call<cuMemRelease_call>({handle}, [&](Deed& deed) {
    deed.said = true;
    deed.handle = handle;
    const std::lock_guard lock(world().mutex);
    return world().physical.give_back(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr address, unsigned long long flags) {
  return driver_call<cuMemAddressReserve_call>(
      {pointer, bytes, alignment, address, flags}, [&](Deed&) {
        Deed of_addresses;  // they are no memory yet
        return allocate(MemoryClass::reserved, bytes, pointer, of_addresses);
      });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t bytes) {
  return driver_call<cuMemAddressFree_call>({pointer, bytes}, [&](Deed&) {
    Deed of_addresses;
    return release(MemoryClass::reserved, pointer, of_addresses);
  });
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return driver_call<cuMemMap_call>({pointer, bytes, offset, handle, flags}, [&](Deed& deed) {
    deed.said = true;
    deed.handle = pointer;
    deed.bytes = bytes;
    const std::lock_guard lock(world().mutex);
    const auto place = world().memory.find(pointer);
    const Block* physical = world().physical.find(handle);
    const bool fits = place != world().memory.end() &&
                      place->second.kind == MemoryClass::reserved && physical != nullptr &&
                      offset + bytes <= physical->bytes && bytes <= place->second.bytes;
    if (!fits) return CUDA_ERROR_INVALID_VALUE;
    place->second.kind = MemoryClass::mapped;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t bytes) {
  return driver_call<cuMemUnmap_call>({pointer, bytes}, [&](Deed& deed) {
    deed.said = true;
    deed.handle = pointer;
    deed.bytes = bytes;
    const std::lock_guard lock(world().mutex);
    const auto place = world().memory.find(pointer);
    if (place == world().memory.end() || place->second.kind != MemoryClass::mapped) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    place->second.kind = MemoryClass::reserved;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
