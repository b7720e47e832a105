// Is a call that a subscriber refuses not made, and is that told once, with the reason?
#if !defined(TRACED_BARE)
#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/cuda/traced/each_call.hpp"

namespace ringmain::cuda {
namespace {

using tests::each_call;
using tests::EachCall;
using tests::straight;
using tests::Things;

traced::cudaError_t device_zero(int* device) {
  *device = 0;
  return traced::cudaSuccess;
}

/// What an event of any kind says of its call.
struct Said {
  std::uint64_t handle, correlation;
  std::uint32_t generation;
  std::int32_t result, device;
  std::int64_t duration_ns;
  std::uint16_t cbid;
  Phase phase;
  Layer layer;
};

class TracedVetoTest : public testing::Test {
 protected:
  TracedVetoTest() {
    fake_cuda_reset();
    fake_cupti_reset();
    fake_cupti_version(130500);
    (void)straight("cudaSetDevice", 0);
    tests::prepare(things);
    EXPECT_TRUE(traced::replace("cudaGetDevice", &device_zero));  // so that the fake serves nothing
    hear<EventCreation>(&EventCreation::event);
    hear<EventDeletion>(&EventDeletion::event);
    hear<EventRecord>(&EventRecord::event);
    hear<EventWait>(&EventWait::event);
    hear<EventSynchronization>(&EventSynchronization::event);
    hear<StreamCreation>(&StreamCreation::stream);
    hear<StreamDeletion>(&StreamDeletion::stream);
    hear<StreamSynchronization>(&StreamSynchronization::stream);
    hear<MemoryAllocation>(&MemoryAllocation::address);
    hear<MemoryDeallocation>(&MemoryDeallocation::address);
    keep_.push_back(bus.channel<DeviceSynchronization>().subscribe([this](const auto& e) {
      said.push_back(
          {0, e.correlation, 0, e.result, e.device, e.duration_ns, e.cbid, e.phase, e.layer});
    }));
  }
  ~TracedVetoTest() override { EXPECT_TRUE(traced::restore("cudaGetDevice")); }

  template <class E>
  void hear(std::uint64_t E::*handle) {
    keep_.push_back(bus.channel<E>().subscribe([this, handle](const E& e) {
      said.push_back({e.*handle, e.correlation, e.generation, e.result, e.device, e.duration_ns,
                      e.cbid, e.phase, e.layer});
    }));
  }
  /// Refuses what `which` says.
  template <class F>
  Subscription refuse(F which) {
    return bus.channel<CallBegin>().subscribe_inline([this, which](const CallBegin& begin) {
      return which(begin) ? Verdict::veto(why) : Verdict::allow();
    });
  }
  void attach(const Options& options = {}) {
    auto made = Source::attach(bus, options);
    ASSERT_TRUE(made) << made.error().message;
    source = std::move(made).value();
  }
  void each_call_is_refused_once();

  const Name why{"over budget"};
  TestBus bus;
  Things things;
  std::vector<Said> said;
  Source source;

 private:
  std::vector<Subscription> keep_;
};

void TracedVetoTest::each_call_is_refused_once() {
  auto refused = bus.heard<CallRefused>();
  bool armed = false;
  const auto veto = refuse([&armed](const CallBegin&) { return armed; });
  ASSERT_TRUE(bus.wait_told(std::chrono::minutes(10)));
  Things of = things;
  for (const EachCall& each : each_call()) {
    SCOPED_TRACE(each.cbid);
    bus.deliver();
    said.clear();
    refused.clear();
    armed = true;
    const std::uint64_t served = fake_cuda_served();
    const int answer = each.make(of, true);
    EXPECT_EQ(fake_cuda_served(), served) << "CUDA was called";
    armed = false;
    bus.deliver();
    ASSERT_EQ(refused.size(), 1);
    EXPECT_EQ(answer, refused[0].kind == CallKind::memory_allocation ? 2 : 800);
    EXPECT_EQ(refused[0].result, answer);
    EXPECT_EQ(refused[0].reason, why);
    EXPECT_EQ(refused[0].cbid, each.cbid);
    EXPECT_EQ(refused[0].device, 0);
    ASSERT_EQ(said.size(), 1);
    EXPECT_EQ(said[0].phase, Phase::failed);
    EXPECT_EQ(said[0].result, answer);
    EXPECT_EQ(said[0].layer, Layer::wrapper);
    EXPECT_EQ(said[0].correlation, refused[0].correlation);
    EXPECT_EQ(said[0].cbid, each.cbid);
    EXPECT_EQ(said[0].duration_ns, 0);
    EXPECT_EQ(each.make(of, true), 0) << "it did what it was not to do";
  }
  tests::clear_away(of);
}

TEST_F(TracedVetoTest, EachCallIsRefusedAndToldOnce) {
  attach();
  each_call_is_refused_once();
}
TEST_F(TracedVetoTest, EachCallIsRefusedWithoutCupti) {
  attach({.wrapped_only = true});
  each_call_is_refused_once();
}

TEST_F(TracedVetoTest, WhoIsAskedKnowsWhatIsWanted) {
  std::vector<CallBegin> asked;
  const auto ask =
      bus.channel<CallBegin>().subscribe_inline([&](const CallBegin& b) { asked.push_back(b); });
  attach();
  void* memory = nullptr;
  traced::cudaStream_t stream = nullptr;
  ASSERT_EQ(traced::cudaStreamCreateWithPriority(&stream, 1, -2), traced::cudaSuccess);
  ASSERT_EQ(traced::cudaMallocAsync(&memory, 4096, stream), traced::cudaSuccess);
  ASSERT_EQ(traced::cudaFreeAsync(memory, stream), traced::cudaSuccess);
  bus.deliver();
  ASSERT_EQ(asked.size(), 3);
  EXPECT_EQ(asked[0].kind, CallKind::stream_creation);
  EXPECT_EQ(asked[0].priority, -2);
  EXPECT_EQ(asked[0].flags, 1);
  EXPECT_EQ(asked[0].handle, 0);
  EXPECT_EQ(asked[1].kind, CallKind::memory_allocation);
  EXPECT_EQ(asked[1].memory, MemoryClass::stream_ordered);
  EXPECT_EQ(asked[1].bytes, 4096);
  EXPECT_EQ(asked[1].stream, reinterpret_cast<std::uintptr_t>(stream));
  EXPECT_EQ(asked[2].handle, reinterpret_cast<std::uintptr_t>(memory));
  EXPECT_EQ(asked[2].kind, CallKind::memory_deallocation);
  ASSERT_EQ(said.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto same = [&](const Said& one) { return one.correlation == asked[i].correlation; };
    EXPECT_EQ(std::count_if(said.begin(), said.end(), same), 1);
  }
  ASSERT_EQ(traced::cudaStreamDestroy(stream), traced::cudaSuccess);
}

TEST_F(TracedVetoTest, ARefusedReleaseLeavesTheHandleAliveWithItsGeneration) {
  bool armed = true;
  const auto veto = refuse([&armed](const CallBegin& begin) {
    return armed && begin.kind == CallKind::memory_deallocation;
  });
  attach();
  void* memory = nullptr;
  ASSERT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaSuccess);
  EXPECT_EQ(traced::cudaFree(memory), traced::cudaErrorNotPermitted);
  armed = false;
  EXPECT_EQ(traced::cudaFree(memory), traced::cudaSuccess);
  bus.deliver();
  std::vector<Said> gone;
  for (const Said& one : said) {
    if (one.cbid == 22) gone.push_back(one);
  }
  ASSERT_EQ(gone.size(), 2);
  EXPECT_EQ(gone[0].phase, Phase::failed);
  EXPECT_GT(gone[0].generation, 0);
  EXPECT_EQ(gone[1].phase, Phase::instant);
  EXPECT_EQ(gone[1].generation, gone[0].generation);
}

TEST_F(TracedVetoTest, CudasLastErrorIsNotOfARefusedCall) {
  const auto veto = refuse([](const CallBegin&) { return true; });
  attach();
  (void)straight("cudaGetLastError");
  void* memory = nullptr;
  EXPECT_EQ(traced::cudaMalloc(&memory, 64), traced::cudaErrorMemoryAllocation);
  EXPECT_EQ(straight("cudaGetLastError"), 0);
  EXPECT_EQ(memory, nullptr);
}

TEST_F(TracedVetoTest, OneThatThrowsRefusesOnlyIfItWasSubscribedSo) {
  auto refused = bus.heard<CallRefused>();
  for (const OnThrow on_throw : {OnThrow::veto, OnThrow::keep}) {
    const auto throws = bus.channel<CallBegin>().subscribe_inline(
        [](const CallBegin&) { throw std::runtime_error("a guard that fails"); },
        {.name = "guard", .on_throw = on_throw});
    attach();
    EXPECT_EQ(traced::cudaDeviceSynchronize() == traced::cudaSuccess, on_throw == OnThrow::keep);
    (void)source.detach();
  }
  bus.deliver();
  ASSERT_EQ(refused.size(), 1);
  EXPECT_NE(refused[0].reason.view().find("threw"), std::string_view::npos)
      << refused[0].reason.view();
}

TEST_F(TracedVetoTest, AVetoHoldsWhileCuptiIsLentAndEndsWithTheSource) {
  const auto veto = refuse([](const CallBegin&) { return true; });
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess) << "nobody is attached";
  attach();
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  ASSERT_TRUE(source.lend("a profiler").value());
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  ASSERT_TRUE(source.take_back().value());
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  EXPECT_EQ(straight("cudaDeviceSynchronize"), 0) << "what is not wrapped is not asked about";
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
}

TEST_F(TracedVetoTest, ARefusalIsHeardByWhoListensToNothingElse) {
  TestBus alone;
  const auto veto = alone.channel<CallBegin>().subscribe_inline(
      [&](const CallBegin&) { return Verdict::veto(why); });
  auto refused = alone.heard<CallRefused>();
  auto made = Source::attach(alone, {.wrapped_only = true});
  ASSERT_TRUE(made);
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  alone.deliver();
  EXPECT_EQ(refused.size(), 1);
}

TEST_F(TracedVetoTest, WhoComesAfterTheSourceIsAskedOnceItWasTold) {
  TestBus alone;
  auto made = Source::attach(alone, {.wrapped_only = true});
  ASSERT_TRUE(made);
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
  auto veto = alone.channel<CallBegin>().subscribe_inline(
      [&](const CallBegin&) { return Verdict::veto(why); });
  ASSERT_TRUE(alone.wait_told(std::chrono::minutes(10)));
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  veto.reset();
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
}

TEST_F(TracedVetoTest, ASourceThatIsDetachedWhileItIsAskedSaysNoMore) {
  const auto asks = bus.channel<CallBegin>().subscribe_inline([this](const CallBegin&) {
    EXPECT_EQ(source.detach(), Detached::deferred);
    return Verdict::veto(why);
  });
  attach();
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaErrorNotPermitted);
  EXPECT_EQ(traced::cudaDeviceSynchronize(), traced::cudaSuccess);
}

}  // namespace
}  // namespace ringmain::cuda
