// What kernels.cu launches. Results are cudaError_t's.
#pragma once
#include <cuda_runtime_api.h>

extern "C" int gpu_launch_nothing(cudaStream_t stream);
extern "C" int gpu_launch_multiply(float* numbers, int count, cudaStream_t stream);
