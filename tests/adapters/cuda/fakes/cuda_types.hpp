// CUDA's and CUPTI's types and functions: from NVIDIA's headers where they are, so that a function
// of the fake with another signature does not compile; else from what mirror.hpp says of them.
#pragma once
#if defined(FAKE_CUDA_REAL_HEADERS)
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#else
#include "tests/adapters/cuda/fakes/mirror.hpp"
#include "tests/adapters/cuda/fakes/mirror_driver.hpp"
#endif
