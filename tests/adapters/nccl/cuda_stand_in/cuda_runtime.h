/* What nccl.h needs of CUDA's headers to be compiled: handles. */
#pragma once
#include <stddef.h>
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
