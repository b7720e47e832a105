// The fake libcuda.so.1: memory of each class. What a program may touch is real; device memory is a
// number.
#include "tests/adapters/cuda/fakes/driver_memory.hpp"

#include <cstdlib>
#include <cstring>

namespace ringmain::fake {
namespace {

constexpr std::uint64_t kStep = 512;

bool is_touched(MemoryClass kind) {
  return kind == MemoryClass::host || kind == MemoryClass::managed;
}

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + kStep - 1) / kStep * kStep;
}

/// `world().mutex` is held. The last one given back of this size comes first.
std::uint64_t address_for(MemoryClass kind, std::uint64_t bytes) {
  World& w = world();
  auto& free = w.free_memory[{kind, bytes}];
  if (!free.empty()) {
    const std::uint64_t last = free.back();
    free.pop_back();
    return last;
  }
  if (is_touched(kind)) return number(std::aligned_alloc(kStep, rounded(bytes)));
  const std::uint64_t fresh = w.next_address;
  w.next_address += rounded(bytes);
  return fresh;
}

void say(Deed& deed, std::uint64_t handle, std::uint64_t bytes, std::uint32_t flags = 0) {
  deed.said = true;
  deed.handle = handle;
  deed.bytes = bytes;
  deed.flags = flags;
}

std::uint64_t bytes_of(std::size_t width, std::size_t height, std::size_t depth,
                       CUarray_format format, unsigned channels) {
  const std::uint64_t element = format == CU_AD_FORMAT_UNSIGNED_INT8 ? 1 : 4;
  return width * (height == 0 ? 1 : height) * (depth == 0 ? 1 : depth) * element * channels;
}

template <class H>
CUresult make_array(H* handle, std::uint64_t bytes, bool mipmapped, Deed& deed) {
  deed.said = true;
  deed.bytes = bytes;
  if (handle == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kDeviceBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(world().mutex);
  deed.handle = world().arrays.make({current_context(), mipmapped});
  *handle = handle_of<H>(deed.handle);
  return CUDA_SUCCESS;
}

CUresult end_array(std::uint64_t handle, bool mipmapped, Deed& deed) {
  deed.said = true;
  deed.handle = handle;
  const std::lock_guard lock(world().mutex);
  const Array* known = world().arrays.find(handle);
  if (known == nullptr || known->mipmapped != mipmapped) return CUDA_ERROR_INVALID_HANDLE;
  world().arrays.give_back(handle);
  return CUDA_SUCCESS;
}

/// The address that an allocation's handle for other processes stands for.
std::uint64_t address_in(const CUipcMemHandle& handle) {
  std::uint64_t address = 0;
  std::memcpy(&address, &handle, sizeof address);
  return address;
}

}  // namespace

CUresult allocate(MemoryClass kind, std::uint64_t bytes, CUdeviceptr* pointer, Deed& deed) {
  deed.said = true;
  deed.bytes = bytes;
  if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  World& w = world();
  const std::lock_guard lock(w.mutex);
  if (bytes > kDeviceBytes - w.used_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t address = address_for(kind, bytes);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  w.memory[address] = {kind, bytes, current_context()};
  w.used_bytes += bytes;
  deed.handle = *pointer = address;
  return CUDA_SUCCESS;
}

CUresult release(MemoryClass kind, CUdeviceptr pointer, Deed& deed) {
  deed.said = true;
  deed.handle = pointer;
  World& w = world();
  const std::lock_guard lock(w.mutex);
  const auto found = w.memory.find(pointer);
  if (found == w.memory.end()) return CUDA_ERROR_INVALID_VALUE;
  // cuMemFree takes managed memory back, too.
  const bool fits = found->second.kind == kind ||
                    (kind == MemoryClass::device && found->second.kind == MemoryClass::managed);
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  const Block block = found->second;
  w.memory.erase(found);
  w.used_bytes -= block.bytes;
  if (block.kind != MemoryClass::registered) {
    w.free_memory[{block.kind, block.bytes}].push_back(pointer);
  }
  return CUDA_SUCCESS;
}

}  // namespace ringmain::fake

using namespace ringmain::fake;  // NOLINT: the functions below are at C's level

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  return driver_call<cuMemAlloc_v2_call>({pointer, bytes}, [&](Deed& deed) {
    return allocate(MemoryClass::device, bytes, pointer, deed);
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned int element_bytes) {
  return driver_call<cuMemAllocPitch_v2_call>(
      {pointer, pitch, width, height, element_bytes}, [&](Deed& deed) {
        *pitch = rounded(width);
        return allocate(MemoryClass::device, *pitch * height, pointer, deed);
      });
}

CUresult cuMemFree_v2(CUdeviceptr pointer) {
  return driver_call<cuMemFree_v2_call>({pointer}, [&](Deed& deed) {
    if (pointer == 0) return CUDA_SUCCESS;
    {  // what still runs may use it
      const Context* const context = current_context();
      std::unique_lock lock(world().mutex);
      works().moved.wait(lock, [&] { return all_over(context); });
    }
    return release(MemoryClass::device, pointer, deed);
  });
}

CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return driver_call<cuMemAllocHost_v2_call>({pointer, bytes}, [&](Deed& deed) {
    return allocate(MemoryClass::host, bytes, reinterpret_cast<CUdeviceptr*>(pointer), deed);
  });
}

CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
  return driver_call<cuMemHostAlloc_call>({pointer, bytes, flags}, [&](Deed& deed) {
    deed.flags = flags;
    return allocate(MemoryClass::host, bytes, reinterpret_cast<CUdeviceptr*>(pointer), deed);
  });
}

CUresult cuMemFreeHost(void* pointer) {
  return driver_call<cuMemFreeHost_call>(
      {pointer}, [&](Deed& deed) { return release(MemoryClass::host, number(pointer), deed); });
}

CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned int flags) {
  return driver_call<cuMemHostRegister_v2_call>({pointer, bytes, flags}, [&](Deed& deed) {
    say(deed, number(pointer), bytes, flags);
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(world().mutex);
    const bool fresh =
        world()
            .memory
            .emplace(number(pointer), Block{MemoryClass::registered, bytes, current_context()})
            .second;
    if (fresh) world().used_bytes += bytes;
    return fresh ? CUDA_SUCCESS : static_cast<CUresult>(712);  // registered already
  });
}

CUresult cuMemHostUnregister(void* pointer) {
  return driver_call<cuMemHostUnregister_call>({pointer}, [&](Deed& deed) {
    const CUresult result = release(MemoryClass::registered, number(pointer), deed);
    return result == CUDA_SUCCESS ? result : static_cast<CUresult>(713);  // not registered
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* pointer, unsigned int flags) {
  return driver_call<cuMemHostGetDevicePointer_v2_call>({device, pointer, flags}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    const std::uint64_t seen = number(pointer) + kDeviceView;
    if (device == nullptr || flags != 0 || host_view(seen, 1) == nullptr) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *device = seen;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned int flags) {
  return driver_call<cuMemAllocManaged_call>({pointer, bytes, flags}, [&](Deed& deed) {
    deed.flags = flags;
    return allocate(MemoryClass::managed, bytes, pointer, deed);
  });
}

CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* shape) {
  return driver_call<cuArrayCreate_v2_call>({handle, shape}, [&](Deed& deed) {
    return make_array(handle,
                      bytes_of(shape->Width, shape->Height, 0, shape->Format, shape->NumChannels),
                      false, deed);
  });
}

CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return driver_call<cuArray3DCreate_v2_call>({handle, shape}, [&](Deed& deed) {
    return make_array(
        handle,
        bytes_of(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels),
        false, deed);
  });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int levels) {
  return driver_call<cuMipmappedArrayCreate_call>({handle, shape, levels}, [&](Deed& deed) {
    return make_array(
        handle,
        bytes_of(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels),
        true, deed);
  });
}

CUresult cuArrayDestroy(CUarray array) {
  return driver_call<cuArrayDestroy_call>(
      {array}, [&](Deed& deed) { return end_array(number(array), false, deed); });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return driver_call<cuMipmappedArrayDestroy_call>(
      {array}, [&](Deed& deed) { return end_array(number(array), true, deed); });
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return driver_call<cuIpcGetMemHandle_call>({handle, pointer}, [&](Deed&) {
    const std::lock_guard lock(world().mutex);
    if (world().memory.count(pointer) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::memset(handle, 0, sizeof *handle);
    std::memcpy(handle, &pointer, sizeof pointer);
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned int flags) {
  return driver_call<cuIpcOpenMemHandle_v2_call>({pointer, handle, flags}, [&](Deed& deed) {
    say(deed, 0, 0, flags);
    const std::lock_guard lock(world().mutex);
    const auto found = world().memory.find(address_in(handle));
    if (found == world().memory.end()) return CUDA_ERROR_INVALID_VALUE;
    deed.handle = *pointer = address_for(MemoryClass::ipc, found->second.bytes);
    world().memory[*pointer] = {MemoryClass::ipc, found->second.bytes, current_context()};
    world().used_bytes += found->second.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return driver_call<cuIpcCloseMemHandle_call>(
      {pointer}, [&](Deed& deed) { return release(MemoryClass::ipc, pointer, deed); });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return driver_call<cuDeviceGetDefaultMemPool_call>({pool, device}, [&](Deed&) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    *pool = handle_of<CUmemoryPool>(0x5B0000000000);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
