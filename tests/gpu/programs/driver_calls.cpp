// Each call of CUDA's driver that makes an event, in fixed numbers, with what it was given.
//
// The driver is looked up when the program starts: who links it cannot start where it is not.
#include <dlfcn.h>
#include <vector>

#include <cuda.h>

#include "tests/gpu/programs/ledger.hpp"

namespace {

using gpu::Deed;
using gpu::number;

/// "cuMemAlloc_v2" of the macro that cuda.h makes of cuMemAlloc.
#define NAME_OF_IT(call) #call
#define NAME_OF(call) NAME_OF_IT(call)
#define FIND(call) reinterpret_cast<decltype(&call)>(find(NAME_OF(call)))

void* find(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "%s is not there: %s\n", name, ::dlerror());
  std::exit(3);
}

/// Calls it, and writes it down with what `deed` says once it has returned.
#define DO(call, arguments, ...)                                              \
  do {                                                                        \
    const CUresult result = FIND(call) arguments;                             \
    gpu::must(1, NAME_OF(call), static_cast<int>(result), Deed{__VA_ARGS__}); \
  } while (false)

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
constexpr std::uint64_t kDefault = 2;
#else
constexpr std::uint64_t kDefault = 0;
#endif

void events(CUstream stream) {
  std::vector<CUevent> made(7);
  for (CUevent& event : made) DO(cuEventCreate, (&event, 2), .handle = number(event), .flags = 2);
  for (std::size_t i = 0; i < 8; ++i) {
    CUevent event = made[i % 7];
    DO(cuEventRecord, (event, stream), .handle = number(event), .stream = number(stream));
  }
  DO(cuEventRecord, (made[0], nullptr), .handle = number(made[0]), .stream = kDefault);
  for (std::size_t i = 0; i < 2; ++i) {
    DO(cuEventRecordWithFlags, (made[i], stream, 0), .handle = number(made[i]),
       .stream = number(stream));
  }
  for (std::size_t i = 0; i < 5; ++i) {
    DO(cuStreamWaitEvent, (stream, made[i], 0), .handle = number(made[i]),
       .stream = number(stream));
  }
  for (std::size_t i = 0; i < 5; ++i) {
    DO(cuEventSynchronize, (made[i]), .handle = number(made[i]));
  }
  for (CUevent event : made) DO(cuEventDestroy, (event), .handle = number(event));
}

std::vector<CUstream> streams() {
  std::vector<CUstream> made(3);
  DO(cuStreamCreate, (&made[0], 0), .handle = number(made[0]));
  DO(cuStreamCreate, (&made[1], 1), .handle = number(made[1]), .flags = 1);
  DO(cuStreamCreateWithPriority, (&made[2], 1, -1), .handle = number(made[2]), .flags = 1,
     .priority = -1);
  for (CUstream stream : made) DO(cuStreamSynchronize, (stream), .handle = number(stream));
  DO(cuStreamSynchronize, (nullptr), .handle = kDefault);
  return made;
}

void memory(CUstream stream) {
  CUdeviceptr flat = 0, pitched = 0, managed = 0, ordered = 0, pooled = 0;
  DO(cuMemAlloc, (&flat, 1000), .handle = flat, .bytes = 1000);
  std::size_t pitch = 0;
  DO(cuMemAllocPitch, (&pitched, &pitch, 100, 8, 4), .handle = pitched, .bytes = pitch * 8);
  DO(cuMemAllocManaged, (&managed, 4096, CU_MEM_ATTACH_GLOBAL), .handle = managed, .bytes = 4096);
  for (const CUdeviceptr address : {flat, pitched, managed}) {
    DO(cuMemFree, (address), .handle = address);
  }
  DO(cuMemAllocAsync, (&ordered, 2000, stream), .handle = ordered, .bytes = 2000,
     .stream = number(stream));
  CUmemoryPool pool = nullptr;
  if (FIND(cuDeviceGetDefaultMemPool)(&pool, 0) != CUDA_SUCCESS) std::exit(4);
  DO(cuMemAllocFromPoolAsync, (&pooled, 3000, pool, nullptr), .handle = pooled, .bytes = 3000,
     .stream = kDefault);
  DO(cuMemFreeAsync, (ordered, stream), .handle = ordered, .stream = number(stream));
  DO(cuMemFreeAsync, (pooled, nullptr), .handle = pooled, .stream = kDefault);
}

void host_memory() {
  void *pinned = nullptr, *mapped = nullptr;
  DO(cuMemAllocHost, (&pinned, 5000), .handle = number(pinned), .bytes = 5000);
  DO(cuMemHostAlloc, (&mapped, 6000, CU_MEMHOSTALLOC_DEVICEMAP), .handle = number(mapped),
     .bytes = 6000);
  alignas(4096) static char ours[8192];
  DO(cuMemHostRegister, (&ours[0], sizeof ours, 0), .handle = number(&ours[0]),
     .bytes = sizeof ours);
  DO(cuMemFreeHost, (pinned), .handle = number(pinned));
  DO(cuMemFreeHost, (mapped), .handle = number(mapped));
  DO(cuMemHostUnregister, (&ours[0]), .handle = number(&ours[0]));
}

/// Memory and addresses taken apart, and put together: what PyTorch's expandable segments do.
void mapped_memory() {
  CUmemAllocationProp kind{};
  kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  kind.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  constexpr std::size_t kBytes = std::size_t{2} << 20;  // what devices since Volta deal in
  CUdeviceptr address = 0;
  if (FIND(cuMemAddressReserve)(&address, kBytes, 0, 0, 0) != CUDA_SUCCESS) std::exit(4);
  CUmemGenericAllocationHandle handle = 0;
  DO(cuMemCreate, (&handle, kBytes, &kind, 0), .handle = handle, .bytes = kBytes);
  DO(cuMemMap, (address, kBytes, 0, handle, 0), .handle = address, .bytes = kBytes);
  DO(cuMemUnmap, (address, kBytes), .handle = address);
  DO(cuMemRelease, (handle), .handle = handle);
  if (FIND(cuMemAddressFree)(address, kBytes) != CUDA_SUCCESS) std::exit(4);
}

}  // namespace

int main() {
  CUcontext context = nullptr;
  if (FIND(cuInit)(0) != CUDA_SUCCESS) return 4;
  if (FIND(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS) return 4;
  if (FIND(cuCtxSetCurrent)(context) != CUDA_SUCCESS) return 4;
  const std::vector<CUstream> made = streams();
  events(made[0]);
  memory(made[1]);
  host_memory();
  mapped_memory();
  for (int i = 0; i < 3; ++i) DO(cuCtxSynchronize, ());
  for (CUstream stream : made) DO(cuStreamDestroy, (stream), .handle = number(stream));
}
