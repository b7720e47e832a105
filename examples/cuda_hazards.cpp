// Do two streams use one buffer without an order between them? The program says which work uses
// which buffer, since a launch does not; the order is found in its calls of CUDA.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <string>

#include <ringmain/adapters/sources/cuda/cuda_hazards.hpp>
#include <ringmain/adapters/sources/cuda/cuda_source.hpp>
#include <ringmain/bus/bus.hpp>

namespace {

namespace cuda = ringmain::cuda;

/// Functions of CUDA's runtime. A program that is built with CUDA includes <cuda_runtime_api.h>
/// instead; this one is built without it.
struct Runtime {
  int (*malloc)(void**, std::size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*event_create)(void**) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*stream_wait)(void*, void*, unsigned) = nullptr;

  bool load() {
    void* library = nullptr;
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      if (library == nullptr) library = ::dlopen(name, RTLD_NOW);
    }
    if (library == nullptr) return false;
    return find(library, "cudaMalloc", malloc) && find(library, "cudaFree", free) &&
           find(library, "cudaStreamCreateWithFlags", stream_create) &&
           find(library, "cudaStreamDestroy", stream_destroy) &&
           find(library, "cudaEventCreate", event_create) &&
           find(library, "cudaEventDestroy", event_destroy) &&
           find(library, "cudaEventRecord", event_record) &&
           find(library, "cudaStreamWaitEvent", stream_wait);
  }
  template <class F>
  static bool find(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
  }
};

void say(const char* title, const cuda::Use& use) {
  std::printf("  %s: %s on stream %#llx, thread %d\n", title, std::string(use.by.view()).c_str(),
              static_cast<unsigned long long>(use.stream), use.thread);
}

/// One buffer, filled on one stream and read on another one, without an order and with one.
bool use_a_buffer(const Runtime& runtime, ringmain::Channel<cuda::BufferUse>& uses) {
  constexpr unsigned kNonBlocking = 1;
  const ringmain::Name fill("fill"), reduce("reduce");
  void *buffer = nullptr, *one = nullptr, *two = nullptr, *filled = nullptr;
  if (runtime.malloc(&buffer, 4096) != 0 || runtime.stream_create(&one, kNonBlocking) != 0 ||
      runtime.stream_create(&two, kNonBlocking) != 0 || runtime.event_create(&filled) != 0) {
    return false;
  }
  const auto use = [&](void* stream, ringmain::Name by, cuda::Access access) {
    uses.post({.address = reinterpret_cast<std::uintptr_t>(buffer),
               .bytes = 4096,
               .stream = reinterpret_cast<std::uintptr_t>(stream),
               .by = by,
               .access = access});
  };
  use(one, fill, cuda::Access::write);   // beside the launch of fill<<<…, one>>>
  use(two, reduce, cuda::Access::read);  // reduce<<<…, two>>>: nothing makes it wait
  const bool ordered =
      runtime.event_record(filled, one) == 0 && runtime.stream_wait(two, filled, 0) == 0;
  use(two, reduce, cuda::Access::read);  // this one waits
  return ordered && runtime.event_destroy(filled) == 0 && runtime.stream_destroy(one) == 0 &&
         runtime.stream_destroy(two) == 0 && runtime.free(buffer) == 0;
}

}  // namespace

int main() {
  using namespace ringmain;
  Runtime runtime;
  if (!runtime.load() || runtime.free(nullptr) != 0) {
    std::printf("there is no CUDA here\n");
    return 1;
  }

  Bus bus;
  cuda::Hazards hazards([](const cuda::Judgement& verdict) {
    std::printf("%s, %llu bytes\n", verdict.race ? "race" : "ordered",
                static_cast<unsigned long long>(verdict.bytes));
    say("earlier", verdict.earlier);
    say("later", verdict.later);
  });
  auto heard =
      bus.subscribe_ordered<step::Step, cuda::SourceNotice, cuda::ContextEvent,
                            cuda::StreamCreation, cuda::StreamDeletion, cuda::EventCreation,
                            cuda::EventDeletion, cuda::EventRecord, cuda::EventWait,
                            cuda::EventSynchronization, cuda::StreamSynchronization,
                            cuda::DeviceSynchronization, cuda::MemoryAllocation,
                            cuda::MemoryDeallocation, cuda::Capture, cuda::BufferUse>(
          [&hazards](const auto& event) { hazards.hear(event); });

  auto source = cuda::Source::attach(bus);
  if (!source) {
    std::printf("%s\n", source.error().message.c_str());
    return 1;
  }
  if (!use_a_buffer(runtime, bus.channel<cuda::BufferUse>())) return 1;
  source.value().detach();
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  heard.reset();
  std::printf("%llu race, %llu ordered\n", static_cast<unsigned long long>(hazards.figures().races),
              static_cast<unsigned long long>(hazards.figures().ordered));
  return 0;
}
