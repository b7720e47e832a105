// How much device memory does this program hold? Asked of CUDA's own calls, also those of its
// libraries, while it runs.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>

#include <ringmain/adapters/sources/cuda/cuda_source.hpp>
#include <ringmain/bus/bus.hpp>
#include <ringmain/events/cuda.hpp>

namespace {

/// Two functions of CUDA's runtime. A program that is built with CUDA includes <cuda_runtime_api.h>
/// instead; this one is built without it.
struct Runtime {
  int (*malloc)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;

  bool load() {
    void* library = nullptr;
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      if (library == nullptr) library = ::dlopen(name, RTLD_NOW);
    }
    if (library == nullptr) return false;
    malloc = reinterpret_cast<decltype(malloc)>(::dlsym(library, "cudaMalloc"));
    free = reinterpret_cast<decltype(free)>(::dlsym(library, "cudaFree"));
    return malloc != nullptr && free != nullptr;
  }
};

}  // namespace

int main() {
  using namespace ringmain;
  Bus bus;
  std::atomic<std::int64_t> held{0};
  std::atomic<int> calls{0};
  auto more = bus.channel<cuda::MemoryAllocation>().subscribe([&](const auto& call) {
    ++calls;
    if (call.phase != cuda::Phase::failed) held += static_cast<std::int64_t>(call.bytes);
  });
  auto less = bus.channel<cuda::MemoryDeallocation>().subscribe([&](const auto& call) {
    ++calls;  // it is told before CUDA takes the memory, and once more where CUDA refused
    const auto bytes = static_cast<std::int64_t>(call.bytes);
    held += call.phase == cuda::Phase::failed ? bytes : -bytes;
  });

  auto source = cuda::Source::attach(bus);
  if (!source) {  // no driver, no CUPTI, or its place is taken: the program goes on all the same
    std::printf("%s\n", source.error().message.c_str());
    return 1;
  }

  Runtime cuda;
  if (!cuda.load()) return 1;
  void* weights = nullptr;
  void* scratch = nullptr;
  if (cuda.malloc(&weights, 6'000'000) != 0 || cuda.malloc(&scratch, 1'000'000) != 0) return 1;
  if (cuda.free(scratch) != 0) return 1;

  source.value().detach();  // no call is heard from here on; CUPTI is free for others
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  std::printf("%d calls; %lld bytes are held\n", calls.load(), static_cast<long long>(held.load()));
  return cuda.free(weights);
}
