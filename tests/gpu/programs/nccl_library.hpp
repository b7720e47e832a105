// Which NCCL does a program here call? Its functions, from the library that GPU_NCCL names, or the
// loader's libnccl.so.2. No header of NCCL's is needed; where <nccl.h> is found, the types are its.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include <cuda_runtime_api.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include "adapters/sources/nccl/nccl_functions.hpp"
#include "adapters/sources/nccl/nccl_types.hpp"

namespace gpu {

constexpr int kMissing = 77;  // what is needed is not here, and standard error says what

/// Ends the program with a sentence if CUDA answered an error.
inline void must_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s answered %d\n", what, static_cast<int>(result));
  std::exit(4);
}
/// The one GPU, or the end of the program with a sentence.
inline void take_gpu() {
  const cudaError_t result = cudaSetDevice(0);
  if (result == cudaSuccess && cudaFree(nullptr) == cudaSuccess) return;
  std::fprintf(stderr, "there is no GPU that CUDA can use: cudaSetDevice answered %d\n",
               static_cast<int>(result));
  std::exit(kMissing);
}

#define GPU_DECLARE(name, since, parameters, ...) ncclResult_t(*name) parameters = nullptr;
#define GPU_DECLARE_OF(result, name, since, parameters, ...) result(*name) parameters = nullptr;
#define GPU_LOOK_UP(name, ...) look_up(name, "nccl" #name);
#define GPU_LOOK_UP_OF(result, name, ...) look_up(name, "nccl" #name);

namespace nccl = ringmain::nccl;

}  // namespace gpu

namespace ringmain::nccl {

/// NCCL's functions by NCCL's names without `nccl`; nullptr: this one is too old for it.
struct GpuNccl {
  GpuNccl() {
    const char* const named = std::getenv("GPU_NCCL");
    library_ = ::dlopen(named == nullptr ? "libnccl.so.2" : named, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      std::fprintf(stderr, "there is no NCCL: %s\n", ::dlerror());
      std::exit(gpu::kMissing);
    }
    RINGMAIN_NCCL_TWINNED(GPU_LOOK_UP)
    RINGMAIN_NCCL_ONE_WAY(GPU_LOOK_UP)
    RINGMAIN_NCCL_GROUP(GPU_LOOK_UP)
    RINGMAIN_NCCL_LIFE(GPU_LOOK_UP)
    RINGMAIN_NCCL_MEMORY(GPU_LOOK_UP_OF)
    RINGMAIN_NCCL_QUERY(GPU_LOOK_UP_OF)
    if (GetVersion != nullptr) (void)GetVersion(&version);
  }
  /// Ends the program with a sentence if NCCL answered an error.
  void must(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    std::fprintf(stderr, "%s answered %d (%s)\n", what, static_cast<int>(result),
                 GetLastError(nullptr));
    std::exit(5);
  }

  RINGMAIN_NCCL_TWINNED(GPU_DECLARE)
  RINGMAIN_NCCL_ONE_WAY(GPU_DECLARE)
  RINGMAIN_NCCL_GROUP(GPU_DECLARE)
  RINGMAIN_NCCL_LIFE(GPU_DECLARE)
  RINGMAIN_NCCL_MEMORY(GPU_DECLARE_OF)
  RINGMAIN_NCCL_QUERY(GPU_DECLARE_OF)
  int version = 0;

 private:
  template <class F>
  void look_up(F*& function, const char* symbol) {
    function = reinterpret_cast<F*>(::dlsym(library_, symbol));
  }
  void* library_ = nullptr;
};

}  // namespace ringmain::nccl
