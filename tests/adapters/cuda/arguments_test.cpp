// Is each argument read from where NVIDIA's own structs have it?
//
// For every row of the table: the struct that CUPTI hands over, as its headers declare it, is
// filled with values that are all different, and each field that is read is compared. The structs
// lie in memory of exactly their size, so that AddressSanitizer sees whoever reads beyond them.
#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include "events/terms/cuda_call_table.hpp"

#if __has_include(<cupti.h>)
#include <cupti.h>

#include "tests/adapters/cuda/struct_filling.hpp"
#endif

namespace ringmain::cuda {
namespace {

#ifndef CUPTI_API_VERSION
TEST(CudaArgumentsTest, EachIsReadFromWhereNvidiasStructsHaveIt) {
  GTEST_SKIP()
      << "no headers of CUPTI; ./dev test fetches them, RINGMAIN_CUDA_HEADERS names a folder";
}
#else

// P is the struct of the call, as CUPTI names it.
#define CALL(call, ...)           \
  {                               \
    using P = call##_params;      \
    check<P>(#call, __VA_ARGS__); \
  }

void check_events() {
  CALL(cuEventCreate, out(&P::phEvent), flags(&P::Flags))
  CALL(cuEventRecord, in(&P::hEvent), stream(&P::hStream))
  CALL(cuEventSynchronize, in(&P::hEvent))
  CALL(cuEventDestroy, in(&P::hEvent))
  CALL(cuStreamWaitEvent, stream(&P::hStream), in(&P::hEvent), flags(&P::Flags))
  CALL(cuEventDestroy_v2, in(&P::hEvent))
  CALL(cuIpcOpenEventHandle, out(&P::phEvent))
  CALL(cuStreamWaitEvent_ptsz, stream(&P::hStream), in(&P::hEvent), flags(&P::Flags))
  CALL(cuEventRecord_ptsz, in(&P::hEvent), stream(&P::hStream))
  CALL(cuEventRecordWithFlags, in(&P::hEvent), stream(&P::hStream), flags(&P::flags))
  CALL(cuEventRecordWithFlags_ptsz, in(&P::hEvent), stream(&P::hStream), flags(&P::flags))
  CALL(cuGreenCtxRecordEvent, in(&P::hEvent))
  CALL(cuGreenCtxWaitEvent, in(&P::hEvent))
  CALL(cuCtxRecordEvent, in(&P::hEvent))
  CALL(cuCtxWaitEvent, in(&P::hEvent))
  CALL(cudaEventCreate_v3020, out(&P::event))
  CALL(cudaEventCreateWithFlags_v3020, out(&P::event), flags(&P::flags))
  CALL(cudaEventRecord_v3020, in(&P::event), stream(&P::stream))
  CALL(cudaEventDestroy_v3020, in(&P::event))
  CALL(cudaEventSynchronize_v3020, in(&P::event))
  CALL(cudaStreamWaitEvent_v3020, stream(&P::stream), in(&P::event), flags(&P::flags))
  CALL(cudaIpcOpenEventHandle_v4010, out(&P::event))
  CALL(cudaEventRecord_ptsz_v7000, in(&P::event), stream(&P::stream))
  CALL(cudaStreamWaitEvent_ptsz_v7000, stream(&P::stream), in(&P::event), flags(&P::flags))
  CALL(cudaEventRecordWithFlags_v11010, in(&P::event), stream(&P::stream), flags(&P::flags))
  CALL(cudaEventRecordWithFlags_ptsz_v11010, in(&P::event), stream(&P::stream), flags(&P::flags))
#if CUPTI_API_VERSION >= 130100
  CALL(cudaExecutionCtxRecordEvent_v13010, in(&P::event))
  CALL(cudaExecutionCtxWaitEvent_v13010, in(&P::event))
#endif
}

void check_streams() {
  CALL(cuStreamCreate, out_stream(&P::phStream), flags(&P::Flags))
  CALL(cuStreamSynchronize, in_stream(&P::hStream))
  CALL(cuStreamDestroy, in_stream(&P::hStream))
  CALL(cuStreamDestroy_v2, in_stream(&P::hStream))
  CALL(cuStreamCreateWithPriority, out_stream(&P::phStream), flags(&P::flags),
       priority(&P::priority))
  CALL(cuStreamSynchronize_ptsz, in_stream(&P::hStream))
  CALL(cuGreenCtxStreamCreate, out_stream(&P::phStream), flags(&P::flags), priority(&P::priority))
  CALL(cudaStreamCreate_v3020, out_stream(&P::pStream))
  CALL(cudaStreamSynchronize_v3020, in_stream(&P::stream))
  CALL(cudaStreamCreateWithFlags_v5000, out_stream(&P::pStream), flags(&P::flags))
  CALL(cudaStreamDestroy_v5050, in_stream(&P::stream))
  CALL(cudaStreamCreateWithPriority_v5050, out_stream(&P::pStream), flags(&P::flags),
       priority(&P::priority))
  CALL(cudaStreamSynchronize_ptsz_v7000, in_stream(&P::stream))
#if CUPTI_API_VERSION >= 130000
  CALL(cuCtxSynchronize_v2, in(&P::ctx))
#endif
#if CUPTI_API_VERSION >= 130100
  CALL(cudaExecutionCtxStreamCreate_v13010, out_stream(&P::phStream), flags(&P::flags),
       priority(&P::priority))
  CALL(cudaExecutionCtxSynchronize_v13010, in(&P::ctx))
#endif
}

void check_memory() {
  CALL(cuMemAlloc, out(&P::dptr), bytes(&P::bytesize))
  CALL(cuMemFree, in(&P::dptr))
  CALL(cuMemAllocHost, out(&P::pp), bytes(&P::bytesize))
  CALL(cuMemFreeHost, in(&P::p))
  CALL(cuMemHostAlloc, out(&P::pp), bytes(&P::bytesize))
  CALL(cuArrayCreate, out(&P::pHandle))
  CALL(cuArrayDestroy, in(&P::hArray))
  CALL(cuArray3DCreate, out(&P::pHandle))
  CALL(cuMemAlloc_v2, out(&P::dptr), bytes(&P::bytesize))
  CALL(cuMemFree_v2, in(&P::dptr))
  CALL(cuMemAllocHost_v2, out(&P::pp), bytes(&P::bytesize))
  CALL(cuMemHostRegister, in(&P::p), bytes(&P::bytesize))
  CALL(cuMemHostUnregister, in(&P::p))
  CALL(cuIpcOpenMemHandle, out(&P::pdptr))
  CALL(cuIpcCloseMemHandle, in(&P::dptr))
  CALL(cuMipmappedArrayCreate, out(&P::pHandle))
  CALL(cuMipmappedArrayDestroy, in(&P::hMipmappedArray))
  CALL(cuMemAllocManaged, out(&P::dptr), bytes(&P::bytesize))
  CALL(cuMemHostRegister_v2, in(&P::p), bytes(&P::bytesize))
  CALL(cuExternalMemoryGetMappedMipmappedArray, out(&P::mipmap))
  CALL(cuMemCreate, out(&P::handle), bytes(&P::size))
  CALL(cuMemRelease, in(&P::handle))
  CALL(cuMemMap, in(&P::ptr), bytes(&P::size))
  CALL(cuMemUnmap, in(&P::ptr), bytes(&P::size))
  CALL(cuMemImportFromShareableHandle, out(&P::handle))
  CALL(cuIpcOpenMemHandle_v2, out(&P::pdptr))
  CALL(cuMemAllocAsync, out(&P::dptr), bytes(&P::bytesize), stream(&P::hStream))
  CALL(cuMemAllocAsync_ptsz, out(&P::dptr), bytes(&P::bytesize), stream(&P::hStream))
  CALL(cuMemFreeAsync, in(&P::dptr), stream(&P::hStream))
  CALL(cuMemFreeAsync_ptsz, in(&P::dptr), stream(&P::hStream))
  CALL(cuMemAllocFromPoolAsync, out(&P::dptr), bytes(&P::bytesize), stream(&P::hStream))
  CALL(cuMemAllocFromPoolAsync_ptsz, out(&P::dptr), bytes(&P::bytesize), stream(&P::hStream))
  CALL(cuMemPoolImportPointer, out(&P::ptr_out))
  CALL(cuMulticastCreate, out(&P::mcHandle))
  CALL(cudaMalloc_v3020, out(&P::devPtr), bytes(&P::size))
  CALL(cudaFree_v3020, in(&P::devPtr))
  CALL(cudaFreeArray_v3020, in(&P::array))
  CALL(cudaMallocHost_v3020, out(&P::ptr), bytes(&P::size))
  CALL(cudaFreeHost_v3020, in(&P::ptr))
  CALL(cudaHostAlloc_v3020, out(&P::pHost), bytes(&P::size))
  CALL(cudaHostRegister_v4000, in(&P::ptr), bytes(&P::size))
  CALL(cudaHostUnregister_v4000, in(&P::ptr))
  CALL(cudaIpcOpenMemHandle_v4010, out(&P::devPtr))
  CALL(cudaIpcCloseMemHandle_v4010, in(&P::devPtr))
  CALL(cudaMallocMipmappedArray_v5000, out(&P::mipmappedArray))
  CALL(cudaFreeMipmappedArray_v5000, in(&P::mipmappedArray))
  CALL(cudaMallocManaged_v6000, out(&P::devPtr), bytes(&P::size))
  CALL(cudaExternalMemoryGetMappedMipmappedArray_v10000, out(&P::mipmap))
  CALL(cudaMallocAsync_v11020, out(&P::devPtr), bytes(&P::size), stream(&P::hStream))
  CALL(cudaMallocAsync_ptsz_v11020, out(&P::devPtr), bytes(&P::size), stream(&P::hStream))
  CALL(cudaFreeAsync_v11020, in(&P::devPtr), stream(&P::hStream))
  CALL(cudaFreeAsync_ptsz_v11020, in(&P::devPtr), stream(&P::hStream))
  CALL(cudaMemPoolImportPointer_v11020, out(&P::ptr))
  CALL(cudaMallocFromPoolAsync_v11020, out(&P::ptr), bytes(&P::size), stream(&P::stream))
  CALL(cudaMallocFromPoolAsync_ptsz_v11020, out(&P::ptr), bytes(&P::size), stream(&P::stream))
}

void check_contexts() {
  CALL(cuCtxCreate, out(&P::pctx), flags(&P::flags), device(&P::dev))
  CALL(cuCtxDestroy, in(&P::ctx))
  CALL(cuCtxCreate_v2, out(&P::pctx), flags(&P::flags), device(&P::dev))
  CALL(cuCtxDestroy_v2, in(&P::ctx))
  CALL(cuDevicePrimaryCtxReset, device(&P::dev))
  CALL(cuDevicePrimaryCtxReset_v2, device(&P::dev))
  CALL(cuCtxCreate_v3, out(&P::pctx), flags(&P::flags), device(&P::dev))
  CALL(cuGreenCtxCreate, out(&P::phCtx), device(&P::dev), flags(&P::flags))
  CALL(cuGreenCtxDestroy, in(&P::hCtx))
  CALL(cuCtxCreate_v4, out(&P::pctx), flags(&P::flags), device(&P::dev))
#if CUPTI_API_VERSION >= 130100
  CALL(cudaGreenCtxCreate_v13010, out(&P::phCtx), device(&P::device), flags(&P::flags))
  CALL(cudaExecutionCtxDestroy_v13010, in(&P::ctx))
#endif
}

void check_captures() {
  CALL(cuStreamBeginCapture, in_stream(&P::hStream))
  CALL(cuStreamBeginCapture_ptsz, in_stream(&P::hStream))
  CALL(cuStreamEndCapture, stream(&P::hStream), out_graph(&P::phGraph))
  CALL(cuStreamEndCapture_ptsz, stream(&P::hStream), out_graph(&P::phGraph))
  CALL(cuGraphLaunch, graph(&P::hGraph), stream(&P::hStream))
  CALL(cuGraphLaunch_ptsz, graph(&P::hGraphExec), stream(&P::hStream))
  CALL(cuStreamBeginCapture_v2, in_stream(&P::hStream))
  CALL(cuStreamBeginCapture_v2_ptsz, in_stream(&P::hStream))
  CALL(cuStreamBeginCaptureToGraph, stream(&P::hStream), graph(&P::hGraph))
  CALL(cuStreamBeginCaptureToGraph_ptsz, stream(&P::hStream), graph(&P::hGraph))
  CALL(cudaGraphLaunch_v10000, graph(&P::graphExec), stream(&P::stream))
  CALL(cudaGraphLaunch_ptsz_v10000, graph(&P::graphExec), stream(&P::stream))
  CALL(cudaStreamBeginCapture_v10000, in_stream(&P::stream))
  CALL(cudaStreamBeginCapture_ptsz_v10000, in_stream(&P::stream))
  CALL(cudaStreamEndCapture_v10000, stream(&P::stream), out_graph(&P::pGraph))
  CALL(cudaStreamEndCapture_ptsz_v10000, stream(&P::stream), out_graph(&P::pGraph))
  CALL(cudaStreamBeginCaptureToGraph_v12030, stream(&P::stream), graph(&P::graph))
  CALL(cudaStreamBeginCaptureToGraph_ptsz_v12030, stream(&P::stream), graph(&P::graph))
#if CUPTI_API_VERSION >= 130100
  CALL(cuStreamBeginCaptureToCig, in_stream(&P::hStream))
  CALL(cuStreamBeginCaptureToCig_ptsz, in_stream(&P::hStream))
  CALL(cuStreamEndCaptureToCig, in_stream(&P::hStream))
  CALL(cuStreamEndCaptureToCig_ptsz, in_stream(&P::hStream))
#endif
#if CUPTI_API_VERSION >= 130300
  CALL(cuStreamBeginRecaptureToGraph, stream(&P::hStream), graph(&P::hGraph))
  CALL(cuStreamBeginRecaptureToGraph_ptsz, stream(&P::hStream), graph(&P::hGraph))
#endif
#if CUPTI_API_VERSION >= 130400
  CALL(cudaStreamBeginRecaptureToGraph_v13030, stream(&P::stream), graph(&P::graph))
  CALL(cudaStreamBeginRecaptureToGraph_ptsz_v13030, stream(&P::stream), graph(&P::graph))
#endif
}

// Sizes that are more than one argument.
void check_sizes() {
  check<cuMemHostAlloc_params>("cuMemHostAlloc_v2", out(&cuMemHostAlloc_params::pp),
                               bytes(&cuMemHostAlloc_params::bytesize));
  const auto pitched = [](auto& width, auto& height, auto*& pitch, Filling& filling) {
    using Size = std::remove_reference_t<decltype(width)>;
    width = 100, height = 8;
    filling.answer(pitch);
    *pitch = static_cast<Size>(512);
    filling.before.bytes = 800;
    filling.after.bytes = 4096;
  };
  CALL(cuMemAllocPitch, out(&P::dptr),
       [&](P& p, Filling& filling) { pitched(p.WidthInBytes, p.Height, p.pPitch, filling); })
  CALL(cuMemAllocPitch_v2, out(&P::dptr),
       [&](P& p, Filling& filling) { pitched(p.WidthInBytes, p.Height, p.pPitch, filling); })
  CALL(cudaMallocPitch_v3020, out(&P::devPtr),
       [&](P& p, Filling& filling) { pitched(p.width, p.height, p.pitch, filling); })
  cudaPitchedPtr deep{};
  deep.pitch = 512;
  CALL(cudaMalloc3D_v3020, [&](P& p, Filling& filling) {
    filling.after.handle = filling.fill(deep.ptr);
    p.pitchedDevPtr = &deep;
    p.extent = {100, 8, 3};
    filling.before.bytes = 2400;
    filling.after.bytes = 12288;
  })
  const cudaChannelFormatDesc rg{16, 16, 0, 0, cudaChannelFormatKindFloat};
  CALL(cudaMallocArray_v3020, out(&P::array), [&](P& p, Filling& filling) {
    p.desc = &rg, p.width = 30, p.height = 20;
    filling.expect(&Arguments::bytes, 2400);
  })
  CALL(cudaMalloc3DArray_v3020, out(&P::array), [&](P& p, Filling& filling) {
    p.desc = &rg, p.extent = {30, 20, 3};
    filling.expect(&Arguments::bytes, 7200);
  })
  CUDA_ARRAY_DESCRIPTOR flat{30, 20, CU_AD_FORMAT_HALF, 2};
  CALL(cuArrayCreate_v2, out(&P::pHandle), [&](P& p, Filling& filling) {
    p.pAllocateArray = &flat;
    filling.expect(&Arguments::bytes, 2400);
  })
  CUDA_ARRAY3D_DESCRIPTOR layers{30, 20, 3, CU_AD_FORMAT_FLOAT, 4, 0};
  CALL(cuArray3DCreate_v2, out(&P::pHandle), [&](P& p, Filling& filling) {
    p.pAllocateArray = &layers;
    filling.expect(&Arguments::bytes, 28800);
  })
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  CALL(cuExternalMemoryGetMappedBuffer, out(&P::devPtr), [&](P& p, Filling& filling) {
    p.bufferDesc = &buffer;
    filling.expect(&Arguments::bytes, filling.fill(buffer.size));
  })
  cudaExternalMemoryBufferDesc mapped{};
  CALL(cudaExternalMemoryGetMappedBuffer_v10000, out(&P::devPtr), [&](P& p, Filling& filling) {
    p.bufferDesc = &mapped;
    filling.expect(&Arguments::bytes, filling.fill(mapped.size));
  })
}

struct Missing {
  std::string_view cupti, reason;
};
constexpr std::string_view kNoArguments = "it has no arguments, and so no struct";
constexpr std::string_view kUndescribed = "no header describes it, and nothing is read";
constexpr std::string_view kAsInEgl = "no struct: the arguments are those of EGL's header";
constexpr Missing kWithoutStruct[] = {
    {"cuCtxSynchronize", kNoArguments},
    {"cudaThreadExit_v3020", kNoArguments},
    {"cudaThreadSynchronize_v3020", kNoArguments},
    {"cudaDeviceReset_v3020", kNoArguments},
    {"cudaDeviceSynchronize_v3020", kNoArguments},
    {"cuEventCreateFromNVNSync", kUndescribed},
    {"cuStreamCreateForCaptureToCig", kUndescribed},
    {"cuEventCreateFromEGLSync", kAsInEgl},
    {"cudaEventCreateFromEGLSync_v9000", kAsInEgl},
    {"cudaStreamDestroy_v3020", "its struct is in a header that needs one which is not shipped"},
};

TEST(CudaArgumentsTest, EachIsReadFromWhereNvidiasStructsHaveIt) {
  check_events();
  check_streams();
  check_memory();
  check_sizes();
  check_contexts();
  check_captures();
  std::set<std::string_view> missing;
  for (const Missing& each : kWithoutStruct) missing.insert(each.cupti);
  for (const CallRow& row : call_rows()) {
    if (row.since > CUPTI_API_VERSION) continue;
    EXPECT_EQ(checked.count(row.cupti) + missing.count(row.cupti), 1u)
        << row.cupti << ": compare its struct, or say why there is none";
  }
}

#endif

}  // namespace
}  // namespace ringmain::cuda
