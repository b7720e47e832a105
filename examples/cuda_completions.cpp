// When has the GPU come to the end of each step? Without waiting for it: it says so itself.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <string>

#include <ringmain/adapters/sources/cuda/completions.hpp>
#include <ringmain/bus/bus.hpp>

namespace {

/// Two functions of CUDA's runtime. A program that is built with CUDA includes <cuda_runtime_api.h>
/// instead; this one is built without it.
struct Runtime {
  int (*free)(void*) = nullptr;
  int (*stream_create)(void**) = nullptr;

  bool load() {
    void* library = nullptr;
    for (const char* name : {"libcudart.so.13", "libcudart.so.12"}) {
      if (library == nullptr) library = ::dlopen(name, RTLD_NOW);
    }
    if (library == nullptr) return false;
    free = reinterpret_cast<decltype(free)>(::dlsym(library, "cudaFree"));
    stream_create = reinterpret_cast<decltype(stream_create)>(::dlsym(library, "cudaStreamCreate"));
    return free != nullptr && stream_create != nullptr;
  }
};

}  // namespace

int main() {
  using namespace ringmain;
  Runtime runtime;
  void* stream = nullptr;
  // cudaFree(0) makes the device's context, if there is none yet.
  const bool ready =
      runtime.load() && runtime.free(nullptr) == 0 && runtime.stream_create(&stream) == 0;
  if (!ready) std::printf("there is no CUDA here\n");

  Bus bus;
  std::atomic<int> completed{0};
  auto heard = bus.channel<cuda::Completion>().subscribe([&](const cuda::Completion& said) {
    if (said.outcome == cuda::Outcome::completed) ++completed;
  });

  auto made = cuda::Completions::make(bus);  // for streams of this thread's current context
  if (!made) {                               // no driver, or no context: one sentence
    std::printf("%s\n", made.error().message.c_str());
    return 1;
  }
  cuda::Completions completions = std::move(made).value();
  for (std::uint64_t step = 1; step <= 3; ++step) {
    // … launch the step's work on the stream …
    const cuda::Armed armed = completions.arm(stream, step);  // behind what is on the stream by now
    if (!armed) std::printf("not armed: %s\n", std::string(to_string(armed.code)).c_str());
  }
  (void)completions.end(std::chrono::seconds(10));  // what is not reached by then is abandoned
  (void)bus.flush(std::chrono::seconds(10));
  const cuda::CompletionFigures figures = completions.figures();
  std::printf("%llu armed, %d heard to have completed, by %s\n",
              static_cast<unsigned long long>(figures.armed), completed.load(),
              std::string(to_string(figures.strategy)).c_str());
  return completed == 3 ? 0 : 1;
}
