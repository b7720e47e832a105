// Do the rules of README.md hold for work that is not done at once? Only the fakes can hold work,
// so this says nothing of NVIDIA's libraries.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

int code(auto result) {
  return static_cast<int>(result);
}

class WorkTest : public testing::Test {
 protected:
  WorkTest() {
    fake_cuda_reset();
    EXPECT_EQ(code(cudaFree(nullptr)), 0);
    EXPECT_EQ(code(cudaStreamCreate(&stream)), 0);
    EXPECT_EQ(code(cudaStreamCreate(&other)), 0);
    EXPECT_EQ(code(cudaEventCreate(&event)), 0);
    EXPECT_EQ(code(cuMemHostRegister_v2(words, sizeof words, 0)), 0);
    EXPECT_EQ(code(cuMemHostGetDevicePointer_v2(&device, words, 0)), 0);
  }
  ~WorkTest() override {
    fake_cuda_finish(0);
    fake_cuda_settle();
    (void)cudaStreamDestroy(stream);
    (void)cudaStreamDestroy(other);
    (void)cudaEventDestroy(event);
    (void)cuMemHostUnregister(words);
    EXPECT_EQ(fake_cuda_in_host_functions(), 0U);
    EXPECT_EQ(fake_cuda_stray_writes(), 0U);
  }
  [[nodiscard]] std::uint64_t word(int i) { return __atomic_load_n(&words[i], __ATOMIC_ACQUIRE); }
  int write(cudaStream_t to, int i, std::uint64_t value) {
    return code(cuStreamWriteValue64(to, device + 8 * static_cast<unsigned>(i), value, 0));
  }

  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  alignas(64) std::uint64_t words[8] = {};
  CUdeviceptr device = 0;
};

TEST_F(WorkTest, WhatComesLaterWaitsForWhatIsHeld) {
  const std::uint64_t held = fake_cuda_hold(stream);
  EXPECT_EQ(code(cudaEventRecord(event, stream)), 0);
  EXPECT_EQ(write(stream, 0, 7), 0);
  EXPECT_EQ(code(cudaEventQuery(event)), 600);
  EXPECT_EQ(code(cudaStreamQuery(stream)), 600);
  EXPECT_EQ(code(cudaStreamQuery(other)), 0);
  EXPECT_EQ(word(0), 0U);
  fake_cuda_finish(held);
  EXPECT_EQ(code(cudaEventQuery(event)), 0);
  EXPECT_EQ(code(cudaStreamQuery(stream)), 0);
  EXPECT_EQ(word(0), 7U);
}

TEST_F(WorkTest, AWaitIsForTheRecordBeforeItAndNotForLaterOnes) {
  const std::uint64_t first = fake_cuda_hold(stream);
  cudaEventRecord(event, stream);
  EXPECT_EQ(code(cudaStreamWaitEvent(other, event, 0)), 0);
  const std::uint64_t second = fake_cuda_hold(stream);
  cudaEventRecord(event, stream);
  EXPECT_EQ(code(cudaStreamQuery(other)), 600);
  fake_cuda_finish(first);
  EXPECT_EQ(code(cudaStreamQuery(other)), 0);
  EXPECT_EQ(code(cudaEventQuery(event)), 600);
  fake_cuda_finish(second);
  EXPECT_EQ(code(cudaEventQuery(event)), 0);
}

TEST_F(WorkTest, AWaitOutlivesItsEvent) {
  cudaEvent_t gone = nullptr;
  cudaEventCreate(&gone);
  const std::uint64_t held = fake_cuda_hold(stream);
  cudaEventRecord(gone, stream);
  cudaStreamWaitEvent(other, gone, 0);
  EXPECT_EQ(code(cudaEventDestroy(gone)), 0);
  EXPECT_EQ(code(cudaStreamQuery(other)), 600);
  fake_cuda_finish(held);
  EXPECT_EQ(code(cudaStreamQuery(other)), 0);
}

TEST_F(WorkTest, SynchronizingWaits) {
  const std::uint64_t held = fake_cuda_hold(stream);
  cudaEventRecord(event, stream);
  std::atomic<int> back{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] { back += cudaStreamSynchronize(stream) == cudaSuccess; });
  threads.emplace_back([&] { back += cudaEventSynchronize(event) == cudaSuccess; });
  threads.emplace_back([&] { back += cudaDeviceSynchronize() == cudaSuccess; });
  EXPECT_EQ(back, 0);
  fake_cuda_finish(held);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(back, 3);
}

TEST_F(WorkTest, AStreamsWorkGoesOnWhenItIsDestroyed) {
  cudaStream_t gone = nullptr;
  cudaStreamCreate(&gone);
  const std::uint64_t held = fake_cuda_hold(gone);
  write(gone, 1, 3);
  EXPECT_EQ(code(cudaStreamDestroy(gone)), 0);
  EXPECT_EQ(word(1), 0U);
  fake_cuda_finish(held);
  EXPECT_EQ(word(1), 3U);
}

TEST_F(WorkTest, AStreamsIdIsNeverAnothersThoughItsHandleComesAgain) {
  cudaStream_t first = nullptr, second = nullptr;
  unsigned long long id = 0, later = 0;
  cudaStreamCreate(&first);
  cuStreamGetId(first, &id);
  cudaStreamDestroy(first);
  cudaStreamCreate(&second);
  cuStreamGetId(second, &later);
  EXPECT_EQ(first, second);
  EXPECT_NE(id, later);
  cudaStreamDestroy(second);
}

TEST_F(WorkTest, HostFunctionsComeInOrderInAThreadOfTheDriversAndMayNotCallCuda) {
  struct Seen {
    std::thread::id thread;
    std::atomic<int> calls{0};
    int answer = 0;
  } seen;
  EXPECT_EQ(code(cudaLaunchHostFunc(
                stream,
                [](void* with) {
                  auto& to = *static_cast<Seen*>(with);
                  to.thread = std::this_thread::get_id();
                  to.answer = code(cudaGetLastError());
                  ++to.calls;
                },
                &seen)),
            0);
  write(stream, 2, 9);
  EXPECT_TRUE(eventually([&] { return word(2) == 9; }));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
  EXPECT_EQ(seen.answer, 800);
  EXPECT_EQ(fake_cuda_in_host_functions(), 1U);
  fake_cuda_reset();
}

TEST_F(WorkTest, AStreamThatCannotWriteSaysSo) {
  fake_cuda_attribute(122, 0);
  EXPECT_EQ(write(stream, 0, 1), 801);
  int can = -1;
  EXPECT_EQ(code(cuDeviceGetAttribute(&can, static_cast<CUdevice_attribute>(122), 0)), 0);
  EXPECT_EQ(can, 0);
}

TEST_F(WorkTest, OnlyPinnedMemoryIsWrittenAndByItsDevicesAddress) {
  EXPECT_EQ(code(cuStreamWriteValue64(stream, reinterpret_cast<std::uintptr_t>(words), 1, 0)), 1);
  EXPECT_EQ(code(cuStreamWriteValue64(stream, device + 4, 1, 0)), 1);
  const std::uint64_t held = fake_cuda_hold(stream);
  write(stream, 0, 1);
  cuMemHostUnregister(words);
  fake_cuda_finish(held);
  EXPECT_EQ(fake_cuda_stray_writes(), 1U);
  EXPECT_EQ(word(0), 0U);
  cuMemHostRegister_v2(words, sizeof words, 0);
  fake_cuda_reset();
}

TEST_F(WorkTest, WhatIsCapturedIsDoneAtEachLaunch) {
  std::atomic<int> calls{0};
  ASSERT_EQ(code(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)), 0);
  cudaStreamCaptureStatus status{};
  EXPECT_EQ(code(cudaStreamIsCapturing(stream, &status)), 0);
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  write(stream, 3, 5);
  cudaEventRecord(event, stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(code(cudaStreamEndCapture(stream, &graph)), 0);
  EXPECT_EQ(word(3), 0U);
  EXPECT_EQ(code(cudaEventQuery(event)), 907);
  const CUDA_HOST_NODE_PARAMS what{[](void* with) { ++*static_cast<std::atomic<int>*>(with); },
                                   &calls};
  CUgraphNode node = nullptr;
  ASSERT_EQ(code(cuGraphAddHostNode(&node, graph, nullptr, 0, &what)), 0);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(code(cudaGraphInstantiate(&exec, graph, 0)), 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(word(3), 5U);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_F(WorkTest, AQuestionOfAnotherThreadSpoilsAGlobalCaptureUnlessItsModeSaysOtherwise) {
  for (const bool shields : {false, true}) {
    ASSERT_EQ(code(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)), 0);
    std::thread([&] {
      auto mode = cudaStreamCaptureModeThreadLocal;
      (void)cudaSetDevice(0);
      if (shields) cudaThreadExchangeStreamCaptureMode(&mode);
      EXPECT_EQ(code(cudaEventQuery(event)), shields ? 0 : 900);
    }).join();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(code(cudaStreamEndCapture(stream, &graph)), shields ? 0 : 901);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
}

TEST_F(WorkTest, ADeviceThatIsResetForgetsWhatItsStreamsHeld) {
  unsigned long long before = 0, after = 0;
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  cuCtxGetId(context, &before);
  fake_cuda_hold(stream);
  write(stream, 4, 1);
  EXPECT_EQ(code(cudaDeviceReset()), 0);
  fake_cuda_finish(0);
  EXPECT_EQ(word(4), 0U);
  EXPECT_EQ(code(cuCtxGetId(context, &after)), 709);
  EXPECT_EQ(code(cuMemHostUnregister(words)), 201);
}

/// The last one: a context that is broken stays so.
TEST_F(WorkTest, ABrokenContextDropsItsWorkAndSaysSoUntilItIsReset) {
  std::atomic<int> calls{0};
  fake_cuda_hold(stream);
  cudaLaunchHostFunc(
      stream, [](void* with) { ++*static_cast<std::atomic<int>*>(with); }, &calls);
  write(stream, 5, 1);
  cudaEventRecord(event, stream);
  std::thread waits([&] { EXPECT_EQ(code(cudaStreamSynchronize(stream)), 700); });
  fake_cuda_break(700);
  waits.join();
  fake_cuda_finish(0);
  fake_cuda_settle();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(word(5), 0U);
  EXPECT_EQ(code(cudaEventQuery(event)), 700);
  EXPECT_EQ(code(cudaStreamQuery(nullptr)), 700);
  (void)cuDevicePrimaryCtxReset_v2(0);
  EXPECT_EQ(code(cudaFree(nullptr)), 0);
}

}  // namespace
}  // namespace ringmain::tests
