// Has each call of CUDA's the kind that its events say, by name and by number?
#include "events/terms/cuda_calls.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <gtest/gtest.h>

namespace ringmain::cuda {
namespace {

constexpr Call kDeviceMemory{CallKind::memory_allocation, MemoryClass::device};
constexpr Call kStreamOrdered{CallKind::memory_allocation, MemoryClass::stream_ordered};

/// What the words of a name say, the first of these that is in it.
struct Word {
  std::string_view word;
  Call call;
};
constexpr Word kWords[] = {
    {"EventCreate", {CallKind::event_creation}},
    {"IpcOpenEventHandle", {CallKind::event_creation}},
    {"EventDestroy", {CallKind::event_deletion}},
    {"EventRecord", {CallKind::event_record}},
    {"RecordEvent", {CallKind::event_record}},
    {"WaitEvent", {CallKind::event_wait}},
    {"EventSynchronize", {CallKind::event_synchronization}},
    {"StreamCreate", {CallKind::stream_creation}},
    {"StreamDestroy", {CallKind::stream_deletion}},
    {"StreamSynchronize", {CallKind::stream_synchronization}},
    {"Synchronize", {CallKind::device_synchronization}},
    {"CtxCreate", {.kind = CallKind::context, .change = ContextChange::made}},
    {"CtxDestroy", {.kind = CallKind::context, .change = ContextChange::destroyed}},
    {"Reset", {.kind = CallKind::context, .change = ContextChange::reset}},
    {"ThreadExit", {.kind = CallKind::context, .change = ContextChange::reset}},
    {"BeginCapture", {.kind = CallKind::capture, .step = CaptureStep::begin}},
    {"BeginRecapture", {.kind = CallKind::capture, .step = CaptureStep::begin}},
    {"EndCapture", {.kind = CallKind::capture, .step = CaptureStep::end}},
    {"GraphLaunch", {.kind = CallKind::capture, .step = CaptureStep::graph_launch}},
};
constexpr struct {
  std::string_view word;
  MemoryClass memory;
} kMemories[] = {
    {"Array", MemoryClass::array},
    {"Async", MemoryClass::stream_ordered},
    {"Ipc", MemoryClass::ipc},
    {"Import", MemoryClass::ipc},
    {"Managed", MemoryClass::managed},
    {"HostRegister", MemoryClass::host_registered},
    {"Host", MemoryClass::host_pinned},
    {"MemMap", MemoryClass::mapping},
    {"MemUnmap", MemoryClass::mapping},
    {"MappedBuffer", MemoryClass::mapping},
    {"MemCreate", MemoryClass::physical},
    {"MemRelease", MemoryClass::physical},
    {"Multicast", MemoryClass::physical},
    {"", MemoryClass::device},
};
Call as_words_say(std::string_view name) {
  const auto has = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  for (const Word& each : kWords) {
    if (has(each.word)) return each.call;
  }
  const bool back = has("Free") || has("Destroy") || has("Release") || has("Unmap") ||
                    has("Unregister") || has("Close");
  for (const auto& each : kMemories) {
    if (!has(each.word) && !(each.word == "HostRegister" && has("HostUnregister"))) continue;
    return {back ? CallKind::memory_deallocation : CallKind::memory_allocation, each.memory};
  }
  return {};
}

TEST(CudaCallsTest, EachRowIsWhatTheWordsOfItsNameSay) {
  for (const CallRow& row : call_rows()) {
    EXPECT_EQ(row.call, as_words_say(row.name)) << row.name;
  }
}

// The table's order, and that a name has one meaning, is asserted beside it.
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

TEST(CudaCallsTest, TheTenKindsCanBeCalledInBothInterfaces) {
  const auto has = [](CallDomain domain, CallKind kind) {
    return std::any_of(call_rows().begin(), call_rows().end(), [=](const CallRow& row) {
      return row.domain == domain && row.call.kind == kind;
    });
  };
  for (auto i = static_cast<int>(CallKind::event_creation);
       i <= static_cast<int>(CallKind::capture); ++i) {
    EXPECT_TRUE(has(CallDomain::runtime, static_cast<CallKind>(i))) << i;
    EXPECT_TRUE(has(CallDomain::driver, static_cast<CallKind>(i))) << i;
  }
}

TEST(CudaCallsTest, EachNumberLeadsToItsRowInEachOfItsVersions) {
  for (const CallRow& row : call_rows()) {
    for (const std::uint32_t version : {row.since, row.until - 1}) {
      EXPECT_EQ(call_of(row.domain, row.cbid, version), &row) << row.cupti << ' ' << version;
    }
    EXPECT_NE(call_of(row.domain, row.cbid, row.until), &row) << row.cupti;
    if (row.since > 0) {
      EXPECT_NE(call_of(row.domain, row.cbid, row.since - 1), &row) << row.cupti;
    }
    EXPECT_EQ(call_named(row.cupti), row.call) << row.cupti;
  }
  EXPECT_EQ(call_of(CallDomain::runtime, 211, 130001), nullptr);
  EXPECT_EQ(call_of(CallDomain::driver, 65535, 130001), nullptr);
  EXPECT_EQ(call_of(static_cast<CallDomain>(3), 20, 130001), nullptr);
}

TEST(CudaCallsTest, ANumberIsACallOnlyTogetherWithTheVersion) {
  EXPECT_EQ(driver_call(783), Call{CallKind::stream_creation});
  EXPECT_EQ(driver_call(783, 28), Call{CallKind::stream_creation});
  EXPECT_EQ(driver_call(783, 130101).kind, CallKind::capture);
  EXPECT_EQ(runtime_call(533), Call{});
  EXPECT_EQ(runtime_call(533, 130500), Call{CallKind::stream_creation});
  EXPECT_EQ(driver_call(271, 130301).memory, MemoryClass::host_pinned);
  EXPECT_EQ(driver_call(271, 130500), Call{});
  EXPECT_EQ(driver_call(std::int64_t{1} << 40), Call{});
}

TEST(CudaCallsTest, ContextsAndCapturesSayWhatHappensToThem) {
  EXPECT_EQ(call_named("cuCtxCreate_v4")->change, ContextChange::made);
  EXPECT_EQ(call_named("cuCtxDestroy_v2")->change, ContextChange::destroyed);
  EXPECT_EQ(call_named("cudaDeviceReset")->change, ContextChange::reset);
  EXPECT_EQ(call_named("hipStreamBeginCapture")->step, CaptureStep::begin);
  EXPECT_EQ(call_named("cudaStreamEndCapture_ptsz_v10000")->step, CaptureStep::end);
  EXPECT_EQ(call_named("cuGraphLaunch_ptsz")->step, CaptureStep::graph_launch);
}

}  // namespace
}  // namespace ringmain::cuda
