// Work for a GPU: nothing at all, or a few microseconds of arithmetic. What the programs beside this
// file launch; the only file that nvcc compiles.
#include <cuda_runtime_api.h>

namespace {

__global__ void nothing() {}

__global__ void multiply(float* numbers, int count) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at >= count) return;
  float one = numbers[at];
  for (int i = 0; i < 64; ++i) one = one * 0.999f + 0.001f;
  numbers[at] = one;
}

/// flags[0]: the host says that it may end; flags[1]: the kernel says that it does.
__global__ void wait_for(volatile int* flags) {
  while (flags[0] == 0) {
  }
  flags[1] = 1;
  __threadfence_system();
}

__global__ void fault() {
  *reinterpret_cast<volatile int*>(16) = 1;
}

}  // namespace

extern "C" int gpu_launch_nothing(cudaStream_t stream) {
  nothing<<<1, 1, 0, stream>>>();
  return static_cast<int>(cudaPeekAtLastError());
}

extern "C" int gpu_launch_multiply(float* numbers, int count, cudaStream_t stream) {
  multiply<<<(count + 255) / 256, 256, 0, stream>>>(numbers, count);
  return static_cast<int>(cudaPeekAtLastError());
}

extern "C" int gpu_launch_wait(int* flags, cudaStream_t stream) {
  wait_for<<<1, 1, 0, stream>>>(flags);
  return static_cast<int>(cudaPeekAtLastError());
}

extern "C" int gpu_launch_fault(cudaStream_t stream) {
  fault<<<1, 1, 0, stream>>>();
  return static_cast<int>(cudaPeekAtLastError());
}
