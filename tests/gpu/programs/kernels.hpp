// What kernels.cu launches. Results are cudaError_t's.
#pragma once
#include <cuda_runtime_api.h>

extern "C" int gpu_launch_nothing(cudaStream_t stream);
extern "C" int gpu_launch_multiply(float* numbers, int count, cudaStream_t stream);
/// Runs until flags[0] is not 0, then sets flags[1]. Pinned memory, by its one address.
extern "C" int gpu_launch_wait(int* flags, cudaStream_t stream);
/// Writes to an address that nothing lies at: after it no work of the context is done.
extern "C" int gpu_launch_fault(cudaStream_t stream);
