// Are the fakes as unkind as they are told to be, and do they know the forms of subscribing?
#include <array>
#include <atomic>
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
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                              CUpti_SubscriberParams*);
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle);
CUptiResult cuptiEnableCallback(std::uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                std::uint32_t);
}
#endif

namespace ringmain::tests {
namespace abi = ringmain::cuda::abi;

constexpr auto kRuntimeDomain = static_cast<CUpti_CallbackDomain>(abi::kRuntime);
constexpr auto kResourceDomain = static_cast<CUpti_CallbackDomain>(abi::kResource);
constexpr std::uint32_t kCudaMalloc = 20, kCudaEventRecord = 135;

/// What reached the callback that all of these tests use.
struct Counts {
  std::atomic<int> entries{0}, exits{0}, unknown{0}, without_params{0}, bad_slots{0}, notices{0};
};

void count(void* to, CUpti_CallbackDomain domain, std::uint32_t cbid, const void* data) {
  auto& counts = *static_cast<Counts*>(to);
  if (domain == kResourceDomain) {
    ++counts.notices;
    return;
  }
  if (cbid >= 60000) {
    ++counts.unknown;
    return;
  }
  const auto& call = *static_cast<const abi::CallData*>(data);
  if (call.params == nullptr) ++counts.without_params;
  if (call.site == abi::kEnter) {
    ++counts.entries;
    *call.correlation_data = cbid;
  } else {
    ++counts.exits;
    if (*call.correlation_data != cbid) ++counts.bad_slots;
  }
}

class HostileTest : public testing::Test {
 protected:
  void SetUp() override {
    fake_cupti_reset();
    fake_cuda_reset();
    ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  }
  void TearDown() override { fake_cupti_reset(); }
  void hear(std::uint32_t cbid, CUpti_CallbackDomain domain = kRuntimeDomain) {
    if (handle_ == nullptr) {
      ASSERT_EQ(static_cast<int>(cuptiSubscribe(&handle_, &count, &counts_)), 0);
    }
    ASSERT_EQ(static_cast<int>(cuptiEnableCallback(1, handle_, domain, cbid)), 0);
  }
  /// Subscribes by the second form; `bytes` is the struct's size.
  int subscribe(const char* name, bool several, std::size_t bytes) {
    abi::SubscriberParamsSeveral params{};
    params.struct_bytes = bytes;
    params.name = name;
    params.old_name = owner_.data();
    params.old_name_bytes = owner_.size();
    params.several = several ? 1 : 0;
    CUpti_SubscriberHandle handle{};
    return static_cast<int>(cuptiSubscribe_v2(&handle, &count, &counts_,
                                              reinterpret_cast<CUpti_SubscriberParams*>(&params)));
  }

  CUpti_SubscriberHandle handle_{};
  Counts counts_;
  std::array<char, abi::kOldNameBytesMin> owner_{};
};

TEST_F(HostileTest, PoisonedDeliveriesAreWholeWhileTheyLastInEightThreads) {
  hear(kCudaEventRecord);
  fake_cupti_hostile(FAKE_POISON);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      cudaEvent_t event = nullptr;
      ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
      for (int n = 0; n < 1000; ++n) ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
      cudaEventDestroy(event);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counts_.entries, 8000);
  EXPECT_EQ(counts_.exits, 8000);
  EXPECT_EQ(counts_.bad_slots, 0);
  EXPECT_EQ(counts_.without_params, 0);
}

TEST_F(HostileTest, ParametersAreLeftOutAndUnknownNumbersComeIfToldTo) {
  hear(kCudaMalloc);
  fake_cupti_hostile(FAKE_NULL_PARAMS | FAKE_UNKNOWN_NUMBERS);
  void* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 512), cudaSuccess);
  cudaFree(pointer);
  EXPECT_EQ(counts_.without_params, 2);
  EXPECT_EQ(counts_.unknown, 2);
}

TEST_F(HostileTest, ContextsAndStreamsAreToldOfWhenTheyBeginAndEnd) {
  for (std::uint32_t cbid = 1; cbid <= 4; ++cbid) hear(cbid, kResourceDomain);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(counts_.notices, 2);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(counts_.notices, 3);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);  // makes the context again
  EXPECT_EQ(counts_.notices, 4);
}

TEST_F(HostileTest, TheOwnersNameIsTold) {
  EXPECT_EQ(subscribe("first", false, 32), abi::kSuccess);
  EXPECT_EQ(subscribe("second", false, 32), abi::kMultipleSubscribers);
  EXPECT_STREQ(owner_.data(), "CUPTI for first");
}

TEST_F(HostileTest, TheLargerStructIsKnownFrom132On) {
  EXPECT_EQ(subscribe("one", false, 40), abi::kInvalidParameter);
  fake_cupti_version(130202);
  EXPECT_EQ(subscribe("one", true, 40), abi::kSuccess);
  EXPECT_EQ(subscribe("two", true, 40), abi::kMultipleSubscribers);  // not yet several
}

TEST_F(HostileTest, SeveralMustAllAskForItFrom133On) {
  fake_cupti_version(130301);
  EXPECT_EQ(subscribe("one", true, 40), abi::kSuccess);
  EXPECT_EQ(subscribe("two", true, 40), abi::kSuccess);
  EXPECT_EQ(subscribe("alone", false, 40), abi::kMultipleSubscribers);
  EXPECT_EQ(subscribe("alone", false, 32), abi::kMultipleSubscribers);
  EXPECT_EQ(fake_cupti_subscribers(), 2U);
}

TEST_F(HostileTest, AnswersAreGivenAsOftenAsToldTo) {
  fake_cupti_answer("cuptiEnableCallback", abi::kUnknown, 1, nullptr);
  ASSERT_EQ(static_cast<int>(cuptiSubscribe(&handle_, &count, &counts_)), 0);
  const auto enable = [&] {
    return static_cast<int>(cuptiEnableCallback(1, handle_, kRuntimeDomain, kCudaMalloc));
  };
  EXPECT_EQ(enable(), abi::kUnknown);
  EXPECT_EQ(fake_cupti_enabled(abi::kRuntime, kCudaMalloc), 0);
  EXPECT_EQ(enable(), abi::kSuccess);
  EXPECT_EQ(fake_cupti_enabled(abi::kRuntime, kCudaMalloc), 1);
  EXPECT_EQ(fake_cupti_enabled_count(), 1U);
}

}  // namespace ringmain::tests
