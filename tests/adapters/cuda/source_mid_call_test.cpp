// Is each call told exactly once at each of its edges, whoever comes and goes in its middle and
// whatever is not heard of it?
#include <chrono>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

class SourceMidCallTest : public SourceFixture {
 protected:
  /// In the middle of the next call of this name, before the calls of the driver that it makes.
  void during(const char* name, std::function<void()> middle) {
    middle_ = std::move(middle);
    fake_cuda_during(
        name, [](void* of) { (*static_cast<std::function<void()>*>(of))(); }, &middle_);
  }
  void tell() { ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10))); }
  /// Nobody listens for a moment.
  template <class E>
  std::function<void()> pause(Heard<E>& heard) {
    return [this, &heard] {
      earlier = heard.size();
      { const Heard<E> last = std::move(heard); }
      tell();
      heard = bus.heard<E>();
      tell();
    };
  }
  void* allocated() {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
    return memory;
  }
  std::size_t earlier = 0;

 private:
  std::function<void()> middle_;
};

TEST_F(SourceMidCallTest, AnExitThatNeverComesMutesNobody) {
  auto recorded = bus.heard<EventRecord>();
  auto synchronized = bus.heard<DeviceSynchronization>();
  Source source = attached(bus);
  fake_cupti_lose(1, 2);  // of the runtime's call and the driver's
  record();
  record();
  EXPECT_EQ(source.counts().published, 1);
  fake_cupti_lose(1, 2);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  record();
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(recorded.size(), 2);
  EXPECT_EQ(synchronized.size(), 3) << "a begin, then begin and end";
}

TEST_F(SourceMidCallTest, AReleaseIsToldOnceAlsoIfNobodyListensForAMoment) {
  auto gone = bus.heard<MemoryDeallocation>();
  Source source = attached(bus);
  void* memory = allocated();
  during("cudaFree", [&] {
    bus.deliver();
    pause(gone)();
  });
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(earlier, 1);
  EXPECT_EQ(gone.size(), 0);
  memory = allocated();
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(gone.size(), 1) << "the next one is heard";
}

TEST_F(SourceMidCallTest, AReleaseIsToldOnceAlsoIfCuptiIsLentMeanwhile) {
  auto gone = bus.heard<MemoryDeallocation>();
  Source source = attached(bus);
  void* memory = allocated();
  during("cudaFree", [&] {
    EXPECT_TRUE(source.lend("another").value());
    EXPECT_TRUE(source.take_back().value());
  });
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(gone.size(), 1);
}

TEST_F(SourceMidCallTest, WhatNobodyHeardBeginDoesNotEnd) {
  auto other = bus.heard<DeviceSynchronization>();
  Source source = attached(bus);
  { const auto last = std::move(other); }  // nobody listens, and CUPTI tells still
  during("cudaDeviceSynchronize", [&] { other = bus.heard<DeviceSynchronization>(); });
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(other.size(), 0);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(other.size(), 2);
}

TEST_F(SourceMidCallTest, WhatNobodyHeardGoDoesNotFailToGo) {
  const auto made = bus.heard<MemoryAllocation>();  // so that releases are told, too
  Source source = attached(bus);
  void* memory = allocated();
  auto releases = bus.heard<MemoryDeallocation>();
  { const auto last = std::move(releases); }
  during("cudaFree", [&] { releases = bus.heard<MemoryDeallocation>(); });
  fake_cuda_fail("cudaFree", 1, 1);
  ASSERT_NE(cudaFree(memory), cudaSuccess);
  bus.deliver();
  EXPECT_EQ(releases.size(), 0);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  bus.deliver();
  ASSERT_EQ(releases.size(), 1);
  EXPECT_GT(releases[0].generation, 0) << "it lived on";
}

TEST_F(SourceMidCallTest, ACallThatIsBeingSwitchedOffHidesNoOther) {
  auto recorded = bus.heard<EventRecord>();
  auto made = bus.heard<MemoryAllocation>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiEnableCallback", 15, 1000, nullptr);
  { const auto last = std::move(made); }
  tell();  // CUPTI goes on telling
  during("cudaMalloc", [&] { (void)cuEventRecord(event, nullptr); });
  void* memory = allocated();
  fake_cupti_answer("cuptiEnableCallback", 0, 0, nullptr);
  (void)cudaFree(memory);
  bus.deliver();
  EXPECT_EQ(recorded.size(), 1);
}

}  // namespace
}  // namespace ringmain::cuda
