// Has each call of CUDA's the kind that its events say, by name and by number?
#include "events/terms/cuda_calls.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

namespace ringmain::cuda {
namespace {

constexpr Call kDeviceMemory{CallKind::memory_allocation, MemoryClass::device};
constexpr Call kStreamOrdered{CallKind::memory_allocation, MemoryClass::stream_ordered};

// The tables' order, and that each number leads to a call, is asserted beside them.
TEST(CudaCallsTest, CallsThatMoveMemoryAndNoOthersSayWhichMemory) {
  for (const detail::Stem& stem : detail::kStems) {
    const CallKind kind = stem.call.kind;
    EXPECT_NE(kind, CallKind::none) << stem.name;
    const bool moves = kind == CallKind::memory_allocation || kind == CallKind::memory_deallocation;
    EXPECT_EQ(moves, stem.call.memory != MemoryClass::unknown) << stem.name;
  }
}

TEST(CudaCallsTest, OneRowServesEachInterfaceVersionAndDefaultStream) {
  EXPECT_EQ(call_named("cudaMalloc"), kDeviceMemory);
  EXPECT_EQ(call_named("cudaMalloc_v3020"), kDeviceMemory);
  EXPECT_EQ(call_named("hipMalloc"), kDeviceMemory);
  EXPECT_EQ(call_named("cuMemAlloc_v2"), kDeviceMemory);
  EXPECT_EQ(call_named("cudaMallocAsync_ptsz_v11020"), kStreamOrdered);
  EXPECT_EQ(call_named("cuStreamWaitEvent_ptsz"), Call{CallKind::event_wait});
  EXPECT_EQ(call_named("cudaEventRecord_spt"), Call{CallKind::event_record});
}

TEST(CudaCallsTest, OtherCallsHaveNoKindAndOtherNamesAreNoCalls) {
  EXPECT_EQ(call_named("cudaLaunchKernel"), Call{});
  EXPECT_EQ(call_named("cudaMalloc_v"), Call{});
  EXPECT_EQ(call_named("cudaMalloc_v2x"), Call{});
  EXPECT_EQ(call_named("cudaMallocSomethingNew"), Call{});
  EXPECT_EQ(call_named("INVALID"), std::nullopt);
  EXPECT_EQ(call_named("Malloc"), std::nullopt);
  EXPECT_EQ(call_named("cuda"), std::nullopt);
  EXPECT_EQ(call_named(""), std::nullopt);
}

TEST(CudaCallsTest, TheTwoInterfacesHaveNumbersOfTheirOwn) {
  EXPECT_EQ(runtime_call(20), kDeviceMemory);
  EXPECT_EQ(runtime_call(374), kStreamOrdered);
  EXPECT_EQ(driver_call(243), kDeviceMemory);
  EXPECT_EQ(driver_call(800), Call{CallKind::device_synchronization});
  EXPECT_EQ(runtime_call(126), Call{CallKind::device_synchronization});
  EXPECT_EQ(driver_call(126), Call{CallKind::stream_synchronization});
  for (const std::int64_t none : {-1, 0, 211, 100000}) {
    EXPECT_EQ(runtime_call(none), Call{}) << none;
    EXPECT_EQ(driver_call(none), Call{}) << none;
  }
}

TEST(CudaCallsTest, AllTenKindsCanBeCalledInBothInterfaces) {
  const auto has = [](const auto& numbers, CallKind kind) {
    return std::any_of(std::begin(numbers), std::end(numbers), [kind](const detail::Number& one) {
      return detail::call_of_stem(one.stem).kind == kind;
    });
  };
  for (auto i = static_cast<int>(CallKind::event_creation);
       i <= static_cast<int>(CallKind::event_synchronization); ++i) {
    EXPECT_TRUE(has(detail::kRuntimeNumbers, static_cast<CallKind>(i))) << i;
    EXPECT_TRUE(has(detail::kDriverNumbers, static_cast<CallKind>(i))) << i;
  }
}

}  // namespace
}  // namespace ringmain::cuda
