// Do the rules of README.md hold? Over the fakes they must; over NVIDIA's own libraries, put before
// the fakes by LD_LIBRARY_PATH, this says which of them are confirmed. There the tests of what only
// a fake can do are skipped, and all of them where there is no GPU.
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cupti_abi.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"

#ifndef FAKE_CUDA_REAL_HEADERS
extern "C" {
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle);
CUptiResult cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                std::uint32_t);
CUptiResult cuptiGetCallbackState(std::uint32_t*, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                  std::uint32_t);
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, std::uint32_t, const char**);
CUptiResult cuptiGetDeviceId(CUcontext, std::uint32_t*);
CUptiResult cuptiFinalize();
}
#endif
// NVIDIA's libraries do not have these: then they are null.
#pragma weak fake_cuda_fail
#pragma weak fake_cuda_during
#pragma weak fake_cuda_forbidden
#pragma weak fake_cuda_reset
#pragma weak fake_cuda_raise
#pragma weak fake_cupti_reset
#pragma weak fake_cupti_hostile
#pragma weak fake_cupti_deliver_late
#pragma weak fake_cupti_lose
#pragma weak fake_cupti_fatal

namespace ringmain::tests {
namespace abi = ringmain::cuda::abi;

constexpr std::uint32_t kCudaMalloc = 20, kCuMemAlloc = 243, kCudaEventCreate = 133,
                        kCudaEventRecord = 135, kCudaEventRecordPtsz = 242;
constexpr int kDriverDomain = 1, kRuntimeDomain = 2;

bool is_fake() {
  return &fake_cupti_reset != nullptr;
}
int code(auto result) {
  return static_cast<int>(result);
}

struct Seen {
  int domain;
  std::uint32_t cbid;
  int site, result;
  std::string function;
  std::uint64_t slot;
  std::uint32_t context_uid, correlation;
  const void* data;
};

/// Hears and writes down; stores a number at each entry.
struct Hearer {
  CUpti_SubscriberHandle handle{};
  std::vector<Seen> seen;
  std::atomic<int> calls{0};
  bool counts_only = false;
  std::uint64_t next = 1;

  static void hear(void* self, CUpti_CallbackDomain domain, std::uint32_t cbid, const void* data) {
    static_cast<Hearer*>(self)->hear(static_cast<int>(domain), cbid, data);
  }
  void hear(int domain, std::uint32_t cbid, const void* data) {
    ++calls;
    if (counts_only) return;
    if (domain > kRuntimeDomain) {
      seen.push_back({domain, cbid, 0, 0, "", 0, 0, 0, data});
      return;
    }
    const auto& call = *static_cast<const abi::CallData*>(data);
    const bool exit = call.site == abi::kExit;
    if (!exit) *call.correlation_data = next++;
    seen.push_back({domain, cbid, call.site,
                    exit ? *static_cast<const std::int32_t*>(call.result) : -1, call.function,
                    *call.correlation_data, call.context_uid, call.correlation_id, data});
  }
  int subscribe() { return code(cuptiSubscribe(&handle, &Hearer::hear, this)); }
  int enable(int domain, std::uint32_t cbid, bool on = true) {
    return code(
        cuptiEnableCallback(on ? 1 : 0, handle, static_cast<CUpti_CallbackDomain>(domain), cbid));
  }
  ~Hearer() { cuptiUnsubscribe(handle); }
};

class ContractTest : public testing::Test {
 protected:
  void SetUp() override {
    if (is_fake() != (&fake_cuda_reset != nullptr)) {
      GTEST_SKIP() << "skipped: of CUPTI and the runtime one is NVIDIA's and the other stands in";
    }
    if (is_fake()) fake_cupti_reset(), fake_cuda_reset();
    if (const auto ready = cudaFree(nullptr); ready != cudaSuccess) {
      GTEST_SKIP() << "skipped: no GPU, CUDA's answer is " << code(ready);
    }
  }
};
/// What NVIDIA's libraries cannot be told to do.
class FakeTest : public ContractTest {
 protected:
  void SetUp() override {
    if (!is_fake()) GTEST_SKIP() << "skipped: these are NVIDIA's libraries";
    ContractTest::SetUp();
  }
};

TEST_F(ContractTest, SubscribingEnablesNothing) {
  Hearer hearer;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  cudaFree(pointer);
  EXPECT_EQ(hearer.calls, 0);
}

TEST_F(ContractTest, ASecondSubscriberOfTheFirstFormGets39) {
  Hearer first, second;
  ASSERT_EQ(first.subscribe(), abi::kSuccess);
  EXPECT_EQ(second.subscribe(), abi::kMultipleSubscribers);
}

TEST_F(ContractTest, ACallIsToldAtBothEndsWithTheDriversInside) {
  Hearer hearer;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  ASSERT_EQ(hearer.enable(kRuntimeDomain, kCudaMalloc), abi::kSuccess);
  ASSERT_EQ(hearer.enable(kDriverDomain, kCuMemAlloc), abi::kSuccess);
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  ASSERT_EQ(hearer.seen.size(), 4U);
  EXPECT_EQ(hearer.seen[0].function, "cudaMalloc");
  EXPECT_EQ(hearer.seen[0].site, abi::kEnter);
  EXPECT_EQ(hearer.seen[1].function, "cuMemAlloc_v2");
  EXPECT_EQ(hearer.seen[2].site, abi::kExit);
  EXPECT_EQ(hearer.seen[3].site, abi::kExit);
  EXPECT_EQ(hearer.seen[3].result, 0);
  EXPECT_EQ(hearer.seen[0].slot, hearer.seen[3].slot);  // each invocation has its own
  EXPECT_EQ(hearer.seen[1].slot, hearer.seen[2].slot);
  EXPECT_NE(hearer.seen[0].slot, hearer.seen[1].slot);
  EXPECT_NE(hearer.seen[0].context_uid, 0U);
  for (const Seen& each : hearer.seen) EXPECT_EQ(each.correlation, hearer.seen[0].correlation);
  cudaFree(pointer);
}

TEST_F(ContractTest, FailuresAreToldAtTheExit) {
  Hearer hearer;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, std::size_t{1} << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(code(cudaGetLastError()), 2);
  EXPECT_EQ(code(cudaGetLastError()), 0);
  ASSERT_EQ(hearer.seen.size(), 2U);
  EXPECT_EQ(hearer.seen[1].result, 2);
}

TEST_F(ContractTest, AnExternalRecordOutsideACaptureFails) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  EXPECT_EQ(code(cudaEventRecordWithFlags(event, nullptr, cudaEventRecordExternal)), 401);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(ContractTest, AfterUnsubscribingTheHandleIsWorthless) {
  Hearer hearer;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  ASSERT_EQ(code(cuptiUnsubscribe(hearer.handle)), abi::kSuccess);
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  cudaFree(pointer);
  EXPECT_EQ(hearer.calls, 0);
  EXPECT_EQ(code(cuptiUnsubscribe(nullptr)), abi::kInvalidParameter);
}

TEST_F(ContractTest, TheStateOfACallbackCanBeAsked) {
  Hearer hearer;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  std::uint32_t on = 7;
  const auto domain = static_cast<CUpti_CallbackDomain>(kRuntimeDomain);
  EXPECT_EQ(code(cuptiGetCallbackState(&on, hearer.handle, domain, kCudaMalloc)), 0);
  EXPECT_EQ(on, 1U);
  hearer.enable(kRuntimeDomain, kCudaMalloc, false);
  EXPECT_EQ(code(cuptiGetCallbackState(&on, hearer.handle, domain, kCudaMalloc)), 0);
  EXPECT_EQ(on, 0U);
}

TEST_F(ContractTest, NumbersHaveNames) {
  const char* name = nullptr;
  const auto runtime = static_cast<CUpti_CallbackDomain>(kRuntimeDomain);
  ASSERT_EQ(code(cuptiGetCallbackName(runtime, kCudaMalloc, &name)), 0);
  EXPECT_STREQ(name, "cudaMalloc_v3020");
  EXPECT_EQ(code(cuptiGetCallbackName(runtime, 60000, &name)), abi::kInvalidParameter);
}

TEST_F(ContractTest, EveryThreadIsHeard) {
  Hearer hearer;
  hearer.counts_only = true;
  ASSERT_EQ(hearer.subscribe(), abi::kSuccess);
  hearer.enable(kRuntimeDomain, kCudaEventRecord);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      cudaEvent_t event = nullptr;
      ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
      for (int n = 0; n < 100; ++n) EXPECT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
      cudaEventDestroy(event);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(hearer.calls, 1600);
}

TEST_F(FakeTest, AHandleThatIsGivenBackComesAgain) {
  cudaEvent_t first = nullptr, second = nullptr;
  cudaEventCreate(&first);
  cudaEventDestroy(first);
  cudaEventCreate(&second);
  EXPECT_EQ(first, second);
  cudaEventDestroy(second);
  EXPECT_EQ(cudaEventDestroy(second), cudaErrorInvalidResourceHandle);
}

TEST_F(FakeTest, WhatItIsToldToFailFailsAsOftenAsToldTo) {
  fake_cuda_fail("cudaStreamCreate", 2, 1);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(FakeTest, DeliveriesComeLateIfToldTo) {
  Hearer hearer;
  hearer.counts_only = true;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, kCudaEventCreate);
  fake_cupti_deliver_late(1);
  cuptiUnsubscribe(hearer.handle);
  for (int i = 0; i < 3; ++i) cudaGetLastError();
  EXPECT_EQ(hearer.calls, 1);
}

TEST_F(FakeTest, EntriesAndExitsAreLostIfToldTo) {
  Hearer hearer;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  void* pointer = nullptr;
  fake_cupti_lose(abi::kEnter, 1);
  cudaMalloc(&pointer, 512);
  cudaFree(pointer);
  ASSERT_EQ(hearer.seen.size(), 1U);
  EXPECT_EQ(hearer.seen[0].site, abi::kExit);
  EXPECT_EQ(hearer.seen[0].slot, 0U);
}

TEST_F(FakeTest, UnsubscribingInTheMiddleOfACallLosesItsExit) {
  Hearer hearer;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  fake_cuda_during(
      "cudaMalloc", [](void* h) { cuptiUnsubscribe(static_cast<Hearer*>(h)->handle); }, &hearer);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  cudaFree(pointer);
  EXPECT_EQ(hearer.seen.size(), 1U);
}

TEST_F(FakeTest, CallsFromInsideACallbackAreCounted) {
  CUpti_SubscriberHandle handle{};
  cuptiSubscribe(
      &handle,
      [](void*, CUpti_CallbackDomain, std::uint32_t, const void* data) {
        if (static_cast<const abi::CallData*>(data)->site != abi::kEnter) return;
        cudaStreamSynchronize(nullptr);  // may be
        int count = 0;
        cudaGetDeviceCount(&count);
      },
      nullptr);
  cuptiEnableCallback(1, handle, static_cast<CUpti_CallbackDomain>(kRuntimeDomain), kCudaMalloc);
  EXPECT_EQ(fake_cuda_forbidden(), 0U);
  void* pointer = nullptr;
  cudaMalloc(&pointer, 512);
  EXPECT_EQ(fake_cuda_forbidden(), 2U);  // with the driver's inside
  cuptiUnsubscribe(handle);
  cudaFree(pointer);
}

TEST_F(FakeTest, AfterAFatalFaultNothingIsHeardAndAllIsRefused) {
  Hearer hearer;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  hearer.enable(abi::kState, abi::kFatalError);
  fake_cupti_fatal(999, "it broke");
  ASSERT_EQ(hearer.seen.size(), 1U);
  EXPECT_EQ(hearer.seen[0].domain, abi::kState);
  EXPECT_NE(hearer.enable(kRuntimeDomain, kCudaMalloc), abi::kSuccess);
  void* pointer = nullptr;
  cudaMalloc(&pointer, 512);
  cudaFree(pointer);
  EXPECT_EQ(hearer.calls, 1);
}

TEST_F(FakeTest, ACallThatNoFunctionMakesCanBeRaised) {
  Hearer hearer;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, 533);
  struct {
    void* stream;
  } const params{};
  EXPECT_EQ(fake_cuda_raise(kRuntimeDomain, 533, "cudaNew", &params, sizeof params, 400), 400);
  ASSERT_EQ(hearer.seen.size(), 2U);
  EXPECT_EQ(hearer.seen[1].function, "cudaNew");
  EXPECT_EQ(hearer.seen[1].result, 400);
}

TEST_F(FakeTest, WhatACallbackWasGivenCannotBeReadLaterIfPoisoned) {
  Hearer hearer;
  hearer.subscribe();
  hearer.enable(kRuntimeDomain, kCudaMalloc);
  fake_cupti_hostile(FAKE_POISON);
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  cudaFree(pointer);
  ASSERT_EQ(hearer.seen.size(), 2U);
  EXPECT_EQ(hearer.seen[1].result, 0);
  EXPECT_EQ(hearer.seen[0].slot, hearer.seen[1].slot);
  const auto* kept = static_cast<const volatile std::int32_t*>(hearer.seen[0].data);
  EXPECT_DEATH((void)*kept, "");
}

}  // namespace ringmain::tests
