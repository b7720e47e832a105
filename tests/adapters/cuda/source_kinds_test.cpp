// Does each call of a program become the one event that says what it did?
#include <cerrno>

#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/cuda/cuda_source.hpp"

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"

namespace ringmain::cuda {
namespace {

class SourceKindsTest : public testing::Test {
 protected:
  SourceKindsTest() {
    fake_cuda_reset();
    fake_cupti_reset();
    (void)cudaSetDevice(0);
    (void)cudaFree(nullptr);  // the context is there
  }
  ~SourceKindsTest() override { EXPECT_EQ(fake_cuda_forbidden(), 0) << fake_cuda_forbidden_name(); }

  void attach(const Options& options = {}) {
    auto made = Source::attach(bus, options);
    ASSERT_TRUE(made) << made.error().message;
    source = std::move(made).value();
  }
  void detach() {
    EXPECT_EQ(source.detach(), Detached::done);
    bus.deliver();
  }

  TestBus bus;
  Source source;
};

/// What all events of a call of this thread say.
template <class E>
void expect_call(const E& event, std::string_view api, Phase phase = Phase::instant,
                 std::int32_t result = 0, Layer layer = Layer::runtime) {
  EXPECT_EQ(event.api.view(), api);
  EXPECT_EQ(event.phase, phase);
  EXPECT_EQ(event.result, result);
  EXPECT_EQ(event.layer, layer);
  EXPECT_EQ(event.thread, static_cast<std::int32_t>(run::this_tid()));
  EXPECT_EQ(event.device, 0);
  EXPECT_EQ(event.context, fake_cuda_context_uid());
  EXPECT_NE(event.correlation, 0);
  EXPECT_NE(event.cbid, 0);
}
std::uint64_t number_of(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

TEST_F(SourceKindsTest, AnEventsLifeIsHeardWithItsGeneration) {
  auto made = bus.heard<EventCreation>();
  auto recorded = bus.heard<EventRecord>();
  auto waited = bus.heard<EventWait>();
  auto gone = bus.heard<EventDeletion>();
  attach();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  detach();

  ASSERT_EQ(made.size(), 1);
  expect_call(made[0], "cudaEventCreateWithFlags");
  EXPECT_EQ(made[0].event, number_of(event));
  EXPECT_EQ(made[0].flags, cudaEventDisableTiming);
  EXPECT_GT(made[0].generation, 0);
  EXPECT_GT(made[0].duration_ns, 0);
  ASSERT_EQ(recorded.size(), 1);
  expect_call(recorded[0], "cudaEventRecord");
  EXPECT_EQ(recorded[0].event, number_of(event));
  EXPECT_EQ(recorded[0].stream, number_of(stream));
  EXPECT_EQ(recorded[0].generation, made[0].generation);
  ASSERT_EQ(waited.size(), 1);
  expect_call(waited[0], "cudaStreamWaitEvent");
  EXPECT_EQ(waited[0].event, number_of(event));
  EXPECT_EQ(waited[0].stream, number_of(stream));
  ASSERT_EQ(gone.size(), 1);
  expect_call(gone[0], "cudaEventDestroy", Phase::instant, kNoResult);
  EXPECT_EQ(gone[0].event, number_of(event));
  EXPECT_EQ(gone[0].generation, made[0].generation);
  EXPECT_EQ(source.counts().published, 4);
}

TEST_F(SourceKindsTest, ADriversOwnCallIsOfTheDriver) {
  auto recorded = bus.heard<EventRecord>();
  attach();
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuEventDestroy_v2(event), CUDA_SUCCESS);
  detach();
  ASSERT_EQ(recorded.size(), 1);
  expect_call(recorded[0], "cuEventRecord", Phase::instant, 0, Layer::driver);
  EXPECT_EQ(recorded[0].stream, 0);
  EXPECT_GT(recorded[0].generation, 0);
}

TEST_F(SourceKindsTest, MemoryIsHeardWithItsBytesAlsoWhenItGoes) {
  auto made = bus.heard<MemoryAllocation>();
  auto gone = bus.heard<MemoryDeallocation>();
  attach();
  void* device = nullptr;
  void* host = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&host, 512), cudaSuccess);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  ASSERT_EQ(cudaFree(device), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(host), cudaSuccess);
  detach();
  ASSERT_EQ(made.size(), 2);
  expect_call(made[0], "cudaMalloc");
  EXPECT_EQ(made[0].address, number_of(device));
  EXPECT_EQ(made[0].bytes, 4096);
  EXPECT_EQ(made[0].memory, MemoryClass::device);
  EXPECT_EQ(made[1].memory, MemoryClass::host_pinned);
  ASSERT_EQ(gone.size(), 2) << "cudaFree(nullptr) releases nothing";
  EXPECT_EQ(gone[0].address, number_of(device));
  EXPECT_EQ(gone[0].bytes, 4096);
  EXPECT_EQ(gone[0].generation, made[0].generation);
  EXPECT_EQ(gone[0].memory, MemoryClass::device);
  EXPECT_EQ(gone[1].bytes, 512);
  EXPECT_EQ(gone[1].memory, MemoryClass::host_pinned);
}

TEST_F(SourceKindsTest, AFailedAllocationSaysWhatWasAskedFor) {
  auto made = bus.heard<MemoryAllocation>();
  attach();
  fake_cuda_fail("cudaMalloc", 2, 1);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 1 << 20), cudaErrorMemoryAllocation);
  detach();
  ASSERT_EQ(made.size(), 1);
  expect_call(made[0], "cudaMalloc", Phase::failed, 2);
  EXPECT_EQ(made[0].address, 0);
  EXPECT_EQ(made[0].bytes, 1 << 20);
  EXPECT_EQ(made[0].generation, 0);
}

TEST_F(SourceKindsTest, AReleaseThatFailedIsTakenBack) {
  auto gone = bus.heard<MemoryDeallocation>();
  attach();
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  fake_cuda_fail("cudaFree", 1, 1);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  detach();
  ASSERT_EQ(gone.size(), 3);
  EXPECT_EQ(gone[0].phase, Phase::instant);
  expect_call(gone[1], "cudaFree", Phase::failed, 1);
  EXPECT_EQ(gone[1].correlation, gone[0].correlation);
  EXPECT_EQ(gone[1].generation, gone[0].generation);
  EXPECT_EQ(gone[2].phase, Phase::instant);
  EXPECT_EQ(gone[2].bytes, 64);
  EXPECT_EQ(gone[2].generation, gone[0].generation);
}

TEST_F(SourceKindsTest, SynchronizationsBeginAndEnd) {
  auto device = bus.heard<DeviceSynchronization>();
  auto streams = bus.heard<StreamSynchronization>();
  auto events = bus.heard<EventSynchronization>();
  attach();
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  fake_cuda_fail("cudaDeviceSynchronize", 700, 1);
  EXPECT_EQ(static_cast<int>(cudaDeviceSynchronize()), 700);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  detach();
  ASSERT_EQ(device.size(), 4);
  expect_call(device[0], "cudaDeviceSynchronize", Phase::begin, kNoResult);
  EXPECT_EQ(device[0].duration_ns, 0);
  expect_call(device[1], "cudaDeviceSynchronize", Phase::end);
  EXPECT_GT(device[1].duration_ns, 0);
  EXPECT_EQ(device[1].correlation, device[0].correlation);
  expect_call(device[3], "cudaDeviceSynchronize", Phase::failed, 700);
  ASSERT_EQ(streams.size(), 2);
  EXPECT_EQ(streams[1].stream, number_of(stream));
  EXPECT_GT(streams[1].generation, 0);
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].event, number_of(event));
  EXPECT_GT(events[0].generation, 0);
}

TEST_F(SourceKindsTest, StreamsAreHeardFromBeginToEnd) {
  auto made = bus.heard<StreamCreation>();
  auto gone = bus.heard<StreamDeletion>();
  attach();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -3), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  detach();
  ASSERT_EQ(made.size(), 1);
  expect_call(made[0], "cudaStreamCreateWithPriority");
  EXPECT_EQ(made[0].stream, number_of(stream));
  EXPECT_EQ(made[0].flags, cudaStreamNonBlocking);
  EXPECT_EQ(made[0].priority, -3);
  ASSERT_EQ(gone.size(), 1);
  EXPECT_EQ(gone[0].stream, number_of(stream));
  EXPECT_EQ(gone[0].generation, made[0].generation);
}

TEST_F(SourceKindsTest, CapturesAndLaunchesNameTheirGraph) {
  auto captured = bus.heard<Capture>();
  attach();
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  detach();
  ASSERT_EQ(captured.size(), 3);
  EXPECT_EQ(captured[0].step, CaptureStep::begin);
  EXPECT_EQ(captured[1].step, CaptureStep::end);
  EXPECT_EQ(captured[1].graph, number_of(graph));
  EXPECT_EQ(captured[2].step, CaptureStep::graph_launch);
  EXPECT_EQ(captured[2].graph, number_of(exec));
  for (const Capture& e : captured) EXPECT_EQ(e.stream, number_of(stream));
}

TEST_F(SourceKindsTest, AContextsEndTakesItsHandlesAlong) {
  auto contexts = bus.heard<ContextEvent>();
  auto recorded = bus.heard<EventRecord>();
  attach();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  detach();
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_GT(recorded[0].generation, 0);
  ASSERT_GE(contexts.size(), 2);
  EXPECT_EQ(contexts[0].change, ContextChange::reset);
  EXPECT_EQ(contexts[0].api.view(), "cudaDeviceReset");
  EXPECT_EQ(contexts[0].phase, Phase::instant);
  EXPECT_EQ(contexts[0].context, recorded[0].context);
  EXPECT_EQ(contexts[1].change, ContextChange::destroyed);
  EXPECT_NE(contexts[1].handle, 0);
  EXPECT_EQ(contexts[1].correlation, contexts[0].correlation);
}

TEST_F(SourceKindsTest, AMadeContextIsOneEvent) {
  auto contexts = bus.heard<ContextEvent>();
  attach();
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate_v4(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context), CUDA_SUCCESS);
  detach();
  ASSERT_EQ(contexts.size(), 2);
  EXPECT_EQ(contexts[0].change, ContextChange::made);
  EXPECT_EQ(contexts[0].handle, number_of(context));
  EXPECT_EQ(contexts[0].api.view(), "cuCtxCreate");
  EXPECT_EQ(contexts[1].change, ContextChange::destroyed);
  EXPECT_EQ(contexts[1].handle, number_of(context));
}

TEST_F(SourceKindsTest, ARecycledHandleHasANewGeneration) {
  auto made = bus.heard<EventCreation>();
  attach();
  for (int i = 0; i < 3; ++i) {
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  }
  detach();
  ASSERT_EQ(made.size(), 3);
  for (std::size_t i = 1; i < 3; ++i) {
    if (made[i].event == made[i - 1].event) {
      EXPECT_GT(made[i].generation, made[i - 1].generation);
    }
  }
}

TEST_F(SourceKindsTest, AHandleFromBeforeHasNoGeneration) {
  auto recorded = bus.heard<EventRecord>();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  attach();
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  detach();
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_EQ(recorded[0].generation, 0);
}

TEST_F(SourceKindsTest, HandlesThatLivedOnUnseenAreNotMistaken) {
  cudaEvent_t event = nullptr;
  {
    auto recorded = bus.heard<EventRecord>();
    attach();
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
    detach();
    ASSERT_EQ(recorded.size(), 1);
    EXPECT_GT(recorded[0].generation, 0);
  }
  auto recorded = bus.heard<EventRecord>();
  attach();  // it may be another event by now, for all that was heard
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  detach();
  ASSERT_EQ(recorded.size(), 1);
  EXPECT_EQ(recorded[0].generation, 0);
}

TEST_F(SourceKindsTest, OnlyTheDriversCallsIfAskedFor) {
  auto recorded = bus.heard<EventRecord>();
  attach({.driver_only = true});
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  detach();
  ASSERT_EQ(recorded.size(), 1);
  expect_call(recorded[0], "cuEventRecord", Phase::instant, 0, Layer::driver);
}

TEST_F(SourceKindsTest, HostileDeliveriesDoNoHarm) {
  auto recorded = bus.heard<EventRecord>();
  auto made = bus.heard<EventCreation>();
  for (const unsigned mode : {FAKE_POISON, FAKE_NULL_PARAMS, FAKE_UNKNOWN_NUMBERS}) {
    SCOPED_TRACE(mode);
    recorded.clear();
    made.clear();
    fake_cupti_hostile(mode);
    attach();
    cudaEvent_t event = nullptr;
    ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
    detach();
    fake_cupti_hostile(0);
    EXPECT_EQ(made.size(), 1);
    ASSERT_EQ(recorded.size(), 1);
    EXPECT_EQ(recorded[0].api.view(), "cudaEventRecord");
  }
}

TEST_F(SourceKindsTest, AnExitOrEntryThatNeverComesMutesNobody) {
  auto recorded = bus.heard<EventRecord>();
  auto made = bus.heard<EventCreation>();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  attach();
  fake_cupti_lose(0, 1);
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);  // its driver call is heard instead
  ASSERT_EQ(cudaEventRecord(event, nullptr), cudaSuccess);
  detach();
  ASSERT_EQ(recorded.size(), 2);
  EXPECT_EQ(recorded[0].layer, Layer::driver);
  EXPECT_EQ(recorded[1].layer, Layer::runtime);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(SourceKindsTest, ErrnoStaysWhatItWas) {
  auto recorded = bus.heard<EventRecord>();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  attach();
  errno = 4711;
  (void)cudaEventRecord(event, nullptr);
  EXPECT_EQ(errno, 4711);
  detach();
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
}

}  // namespace
}  // namespace ringmain::cuda
