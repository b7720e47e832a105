// Is nothing read of a call but what is there? Null pointers, entries, default streams, sizes.
//
// arguments_test.cpp reads NVIDIA's own structs, where their headers are.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <tuple>

#include <gtest/gtest.h>

#include "events/terms/cuda_call_table.hpp"

#include "adapters/sources/cuda/cuda_argument_layouts.hpp"
#include "adapters/sources/cuda/cuda_arguments.hpp"

namespace ringmain::cuda {
namespace {

const CallRow& row_of(std::string_view cupti) {
  for (const CallRow& row : call_rows()) {
    if (row.cupti == cupti) return row;
  }
  ADD_FAILURE() << "no row " << cupti;
  return call_rows().front();
}

constexpr std::uint64_t kNowhere = 0;
template <class T>
std::uint64_t address_of(T& place) {
  return reinterpret_cast<std::uint64_t>(&place);
}

TEST(CudaArgumentRulesTest, NullParametersGiveNothing) {
  for (const CallRow& row : call_rows()) {
    for (const bool returned : {false, true}) {
      EXPECT_EQ(read_arguments(row, nullptr, returned), Arguments{}) << row.cupti;
    }
  }
}

TEST(CudaArgumentRulesTest, NullPointersWithinTheParametersAreNotFollowed) {
  const std::uint64_t zeros[8] = {};
  for (const CallRow& row : call_rows()) {
    for (const bool returned : {false, true}) {
      const Arguments read = read_arguments(row, zeros, returned);
      EXPECT_EQ(read.handle, row.per_thread_stream && row.shape == CallShape::stream ? 2u : 0u)
          << row.cupti;
      EXPECT_EQ(read.bytes, 0u) << row.cupti;
    }
  }
}

TEST(CudaArgumentRulesTest, NothingIsFollowedBeforeTheCallHasReturned) {
  // What a call will answer with is not there yet: its place may hold anything, or be no memory.
  std::uint64_t parameters[8];
  std::fill(std::begin(parameters), std::end(parameters), 8);
  for (const CallRow& row : call_rows()) {
    const bool described = row.shape == CallShape::memory_buffer || row.shape == CallShape::array ||
                           row.shape == CallShape::array_3d ||
                           row.shape == CallShape::array_described ||
                           row.shape == CallShape::array_3d_described;
    if (!described) static_cast<void>(read_arguments(row, parameters, false));
  }
}

TEST(CudaArgumentRulesTest, TheDefaultStreamOfThePerThreadInterfaceIsAStreamOfItsOwn) {
  const layout::Record record{0x10, 0};
  EXPECT_EQ(read_arguments(row_of("cudaEventRecord_ptsz_v7000"), &record, true).stream, 2u);
  EXPECT_EQ(read_arguments(row_of("cudaEventRecord_v3020"), &record, true).stream, 0u);
  const layout::Record named{0x10, 0x20};
  EXPECT_EQ(read_arguments(row_of("cudaEventRecord_ptsz_v7000"), &named, true).stream, 0x20u);
  const layout::Handle none{0};
  const Arguments waited = read_arguments(row_of("cuStreamSynchronize_ptsz"), &none, false);
  EXPECT_EQ(waited.stream, 2u);
  EXPECT_EQ(waited.handle, 2u);
  EXPECT_EQ(read_arguments(row_of("cuStreamSynchronize"), &none, false).stream, 0u);
}

TEST(CudaArgumentRulesTest, FreeingNullIsAFreeOfNoHandle) {
  const layout::Handle none{0};
  EXPECT_EQ(read_arguments(row_of("cudaFree_v3020"), &none, false), Arguments{});
}

TEST(CudaArgumentRulesTest, WhatIsMadeIsKnownOnceTheCallHasReturned) {
  std::uint64_t made = 0x1234;
  const layout::StreamPriority stream{address_of(made), 1, -5};
  const CallRow& row = row_of("cudaStreamCreateWithPriority_v5050");
  EXPECT_EQ(read_arguments(row, &stream, false), (Arguments{.flags = 1, .priority = -5}));
  EXPECT_EQ(read_arguments(row, &stream, true),
            (Arguments{.handle = 0x1234, .stream = 0x1234, .flags = 1, .priority = -5}));
}

TEST(CudaArgumentRulesTest, CallsFromBeforeCuda32HaveHalfOfTheBits) {
  // Beyond each there is a word that must not be taken for a part of it.
  const std::uint32_t address[2] = {0x89abcdef, 0xffffffff};
  const struct {
    std::uint64_t out;
    std::uint32_t bytes, beyond;
  } memory{reinterpret_cast<std::uint64_t>(address), 4096, 0xffffffff};
  EXPECT_EQ(read_arguments(row_of("cuMemAlloc"), &memory, true),
            (Arguments{.handle = 0x89abcdef, .bytes = 4096}));
  EXPECT_EQ(read_arguments(row_of("cuMemFree"), address, false), (Arguments{.handle = 0x89abcdef}));
  // The host's addresses have all of theirs.
  std::uint64_t place = 0x123456789abc;
  const struct {
    std::uint64_t out;
    std::uint32_t bytes, beyond;
  } host{address_of(place), 4096, 0xffffffff};
  EXPECT_EQ(read_arguments(row_of("cuMemAllocHost"), &host, true),
            (Arguments{.handle = 0x123456789abc, .bytes = 4096}));
  const std::uint32_t pitch[2] = {512, 0xffffffff};
  const layout::Pitched32 pitched{reinterpret_cast<std::uint64_t>(address),
                                  reinterpret_cast<std::uint64_t>(pitch), 100, 8};
  EXPECT_EQ(read_arguments(row_of("cuMemAllocPitch"), &pitched, false).bytes, 800u);
  EXPECT_EQ(read_arguments(row_of("cuMemAllocPitch"), &pitched, true),
            (Arguments{.handle = 0x89abcdef, .bytes = 4096}));
}

TEST(CudaArgumentRulesTest, WhatLiesSideBySideIsNotConfused) {
  const layout::Wait wait{0x10, 0x20, 3};
  EXPECT_EQ(read_arguments(row_of("cudaStreamWaitEvent_v3020"), &wait, false),
            (Arguments{.handle = 0x20, .stream = 0x10, .flags = 3}));
  std::uint64_t made = 0x40;
  const layout::MemoryFromPool pooled{address_of(made), 512, 0x50, 0x60};
  EXPECT_EQ(read_arguments(row_of("cudaMallocFromPoolAsync_v11020"), &pooled, true),
            (Arguments{.handle = 0x40, .stream = 0x60, .bytes = 512}));
  layout::BufferDescription described{64, 1024};
  const layout::MemoryBuffer buffer{address_of(made), 0x70, address_of(described)};
  EXPECT_EQ(read_arguments(row_of("cuExternalMemoryGetMappedBuffer"), &buffer, true),
            (Arguments{.handle = 0x40, .bytes = 1024}));
  const layout::RecaptureInto again{0x10, 1, 0x80};
  EXPECT_EQ(read_arguments(row_of("cuStreamBeginRecaptureToGraph"), &again, false),
            (Arguments{.stream = 0x10, .graph = 0x80}));
  const layout::GraphLaunch launch{0x80, 0x10};
  EXPECT_EQ(read_arguments(row_of("cudaGraphLaunch_v10000"), &launch, false),
            (Arguments{.stream = 0x10, .graph = 0x80}));
  const layout::ContextMade context{address_of(made), 4, 1};
  EXPECT_EQ(read_arguments(row_of("cuCtxCreate_v2"), &context, true),
            (Arguments{.handle = 0x40, .flags = 4, .device = 1}));
}

TEST(CudaArgumentRulesTest, AStreamThatNobodyAskedForIsNotTheDefaultOne) {
  const layout::StreamFlags nowhere{kNowhere, 1};
  EXPECT_EQ(read_arguments(row_of("cudaStreamCreateWithFlags_v5000"), &nowhere, true),
            (Arguments{.flags = 1}));
}

TEST(CudaArgumentRulesTest, PitchedMemoryIsAsLargeAsItsPitchOnceThatIsKnown) {
  std::uint64_t address = 0x7000, pitch = 512;
  const layout::Pitched flat{address_of(address), address_of(pitch), 100, 8};
  const CallRow& row = row_of("cudaMallocPitch_v3020");
  EXPECT_EQ(read_arguments(row, &flat, false), (Arguments{.bytes = 800}));
  EXPECT_EQ(read_arguments(row, &flat, true), (Arguments{.handle = 0x7000, .bytes = 4096}));
  const layout::Pitched without{address_of(address), kNowhere, 100, 8};
  EXPECT_EQ(read_arguments(row, &without, true), (Arguments{.handle = 0x7000, .bytes = 800}));
  layout::PitchedPointer answer{0x9000, 256};
  const layout::Pitched3d deep{address_of(answer), {100, 8, 3}};
  const CallRow& row_3d = row_of("cudaMalloc3D_v3020");
  EXPECT_EQ(read_arguments(row_3d, &deep, false), (Arguments{.bytes = 2400}));
  EXPECT_EQ(read_arguments(row_3d, &deep, true), (Arguments{.handle = 0x9000, .bytes = 6144}));
}

TEST(CudaArgumentRulesTest, AnArrayHasAsManyBytesAsItsElements) {
  std::uint64_t made = 0x40;
  layout::ChannelBits rgba{8, 8, 8, 8};
  const layout::Array flat{address_of(made), address_of(rgba), 640, 0};
  EXPECT_EQ(read_arguments(row_of("cudaMallocArray_v3020"), &flat, true),
            (Arguments{.handle = 0x40, .bytes = 2560}));
  const layout::Array3d deep{address_of(made), address_of(rgba), {16, 8, 4}};
  EXPECT_EQ(read_arguments(row_of("cudaMalloc3DArray_v3020"), &deep, true).bytes, 2048u);
  layout::ChannelBits nonsense{64, -32, 0, 0};
  const layout::Array none{address_of(made), address_of(nonsense), 640, 1};
  EXPECT_EQ(read_arguments(row_of("cudaMallocArray_v3020"), &none, false).bytes, 0u);
  for (const auto& [format, bytes] : {std::tuple{0x01, 128},
                                      {0x08, 128},
                                      {0x02, 256},
                                      {0x09, 256},
                                      {0x10, 256},
                                      {0x03, 512},
                                      {0x0a, 512},
                                      {0x20, 512},
                                      {0xb0, 0},
                                      {0x91, 0}}) {
    layout::ArrayDescription what{8, 8, static_cast<std::uint32_t>(format), 2};
    const layout::ArrayDescribed described{address_of(made), address_of(what)};
    EXPECT_EQ(read_arguments(row_of("cuArrayCreate_v2"), &described, true).bytes,
              static_cast<std::uint64_t>(bytes))
        << format;
    layout::Array3dDescription what_3d{8, 4, 2, static_cast<std::uint32_t>(format), 2};
    const layout::ArrayDescribed described_3d{address_of(made), address_of(what_3d)};
    EXPECT_EQ(read_arguments(row_of("cuArray3DCreate_v2"), &described_3d, true).bytes,
              static_cast<std::uint64_t>(bytes))
        << format;
  }
}

TEST(CudaArgumentRulesTest, SizesThatOverflowAreAsLargeAsCanBe) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 40;
  const layout::Pitched flat{kNowhere, kNowhere, kLarge, kLarge};
  EXPECT_EQ(read_arguments(row_of("cudaMallocPitch_v3020"), &flat, false).bytes,
            std::numeric_limits<std::uint64_t>::max());
}

TEST(CudaArgumentRulesTest, OfCallsThatNoHeaderDescribesNothingIsRead) {
  const std::uint64_t ones[8] = {8, 8, 8, 8, 8, 8, 8, 8};
  for (const CallRow& row : call_rows()) {
    if (row.shape != CallShape::unread && row.shape != CallShape::none) continue;
    EXPECT_EQ(read_arguments(row, ones, true), Arguments{}) << row.cupti;
  }
}

}  // namespace
}  // namespace ringmain::cuda
