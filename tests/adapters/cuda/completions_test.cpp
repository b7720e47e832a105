// Does each ticket end once, when its stream has come to it, and does each bad question get its
// answer?
#include <atomic>
#include <string>
#include <thread>

#include "tests/adapters/cuda/completions_fixture.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;
using tests::eventually;

/// In each way of knowing.
class CompletionsTest : public CompletionsFixture, public testing::WithParamInterface<Strategy> {
 protected:
  Completions made(CompletionsOptions options = {}) {
    options.strategy = GetParam();
    return CompletionsFixture::made(options);
  }
};
INSTANTIATE_TEST_SUITE_P(, CompletionsTest,
                         testing::Values(Strategy::memory_writes, Strategy::event_queries,
                                         Strategy::host_functions),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(CompletionsTest, ATicketCompletesWhenItsStreamHasComeToItAndNotBefore) {
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  const std::uint64_t held = fake_cuda_hold(stream);
  const Armed armed = completions.arm(stream, 7);
  ASSERT_TRUE(armed) << to_string(armed.code);
  // It has looked several times by then, unless it told too soon.
  EXPECT_TRUE(eventually([&] { return completions.figures().asked > 3 || heard.size() != 0; }));
  EXPECT_EQ(heard.size(), 0U);
  EXPECT_EQ(completions.figures().pending, 1U);
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  const Completion told = heard.all()[0];
  EXPECT_EQ(told.ticket, armed.ticket);
  EXPECT_EQ(told.tag, 7U);
  EXPECT_EQ(told.stream, reinterpret_cast<std::uintptr_t>(stream));
  EXPECT_EQ(told.outcome, Outcome::completed);
  EXPECT_EQ(told.result, 0);
  EXPECT_EQ(told.device, 0);
  EXPECT_EQ(told.thread, ::gettid());
  EXPECT_GT(told.armed_ns, 0);
  EXPECT_GT(told.duration_ns, 0);
  EXPECT_EQ(static_cast<int>(told.mechanism), static_cast<int>(GetParam()) - 1);
  EXPECT_EQ(completions.figures().strategy, GetParam());
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, WhatCompletesTogetherIsToldOneByOneInOrder) {
  const Heard heard(bus);
  Completions completions = made({.lane_tickets = 1024});
  const std::uint64_t held = fake_cuda_hold(stream);
  for (std::uint64_t tag = 0; tag < 1000; ++tag) ASSERT_TRUE(completions.arm(stream, tag));
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1000));
  std::uint64_t tag = 0;
  for (const Completion& told : heard.all()) EXPECT_EQ(told.tag, tag++);
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, AStreamThatIsDestroyedStillComesThere) {
  const Heard heard(bus);
  Completions completions = made();
  cudaStream_t gone = nullptr, next = nullptr;
  cudaStreamCreate(&gone);
  const std::uint64_t held = fake_cuda_hold(gone);
  ASSERT_TRUE(completions.arm(gone, 1));
  EXPECT_EQ(code(cudaStreamDestroy(gone)), 0);
  cudaStreamCreate(&next);  // has the same handle, and what is armed on it overtakes
  EXPECT_EQ(next, gone);
  ASSERT_TRUE(completions.arm(next, 2));
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].tag, 2U);
  EXPECT_EQ(heard.size(), 1U);
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(2));
  EXPECT_EQ(heard.all()[1].tag, 1U);
  expect_balanced(completions, heard);
  cudaStreamDestroy(next);
}

TEST_P(CompletionsTest, AnErrorOfTheGpusFailsWhatIsArmedAndWhatIsArmedLater) {
  const Heard heard(bus);
  std::vector<ContextLost> lost;
  const Subscription of_losses =
      bus.channel<ContextLost>().subscribe_inline([&](const ContextLost& told) {
        lost.push_back(told);
        EXPECT_EQ(heard.size(), 1U);  // before what is armed fails
      });
  Completions completions = made();
  cudaStream_t idle = nullptr;
  cudaStreamCreate(&idle);
  ASSERT_TRUE(completions.arm(idle, 0));
  ASSERT_TRUE(heard.await(1));
  fake_cuda_hold(stream);
  for (std::uint64_t tag = 1; tag <= 100; ++tag) ASSERT_TRUE(completions.arm(stream, tag));
  fake_cuda_break(700);
  ASSERT_TRUE(heard.await(101));
  for (std::size_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(heard.all()[i].outcome, Outcome::failed);
    EXPECT_EQ(heard.all()[i].result, 700);
    EXPECT_EQ(heard.all()[i].tag, i);
  }
  EXPECT_EQ(completions.figures().result, 700);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].result, 700);
  EXPECT_EQ(lost[0].pending, 100U);
  EXPECT_EQ(lost[0].device, 0);
  EXPECT_EQ(lost[0].context, fake_cuda_context_uid());
  const Armed late = completions.arm(stream, 8);
  EXPECT_EQ(late.code, ArmCode::lost);
  EXPECT_EQ(late.result, 700);
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  expect_balanced(completions, heard);
  reset_device();
}

TEST_P(CompletionsTest, AThreadWithoutAContextArmsStreamsAndHasNoneAfterwards) {
  const Heard heard(bus);
  Completions completions = made();
  std::thread([&] {
    CUcontext current = nullptr;
    EXPECT_TRUE(completions.arm(stream, 1));
    EXPECT_TRUE(completions.arm(stream, 2));
    cuCtxGetCurrent(&current);
    EXPECT_EQ(current, nullptr);
    const Armed of_nobodys_default = completions.arm(nullptr, 3);
    EXPECT_EQ(of_nobodys_default.code, ArmCode::driver);
    EXPECT_EQ(of_nobodys_default.result, 201);
  }).join();
  ASSERT_TRUE(heard.await(2));
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, TheLegacyStreamIsRefusedWhileAnotherThatItWaitsForCaptures) {
  Completions completions = made();
  fake_cuda_fail("cuStreamIsCapturing", 906, 1);
  EXPECT_EQ(completions.arm(nullptr, 1).code, ArmCode::capturing);
  EXPECT_TRUE(completions.arm(nullptr, 1));
}

TEST_P(CompletionsTest, ADeviceThatIsResetFailsWhatIsArmed) {
  const Heard heard(bus);
  Completions completions = made();
  fake_cuda_hold(stream);
  ASSERT_TRUE(completions.arm(stream, 1));
  reset_device();  // another context lives at once
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::failed);
  EXPECT_EQ(heard.all()[0].result, 709);
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, WhatIsNotReachedByTheEndIsAbandonedAndComesLateWithoutHarm) {
  const Heard heard(bus);
  std::uint64_t held = 0;
  {
    Completions completions = made();
    ASSERT_TRUE(completions.arm(stream, 1));
    ASSERT_TRUE(heard.await(1));
    held = fake_cuda_hold(stream);
    ASSERT_TRUE(completions.arm(stream, 2));
    EXPECT_EQ(completions.end(milliseconds(1)), Detached::done);
    expect_balanced(completions, heard);
    ASSERT_EQ(heard.size(), 2U);
    EXPECT_EQ(heard.all()[1].outcome, Outcome::abandoned);
    EXPECT_EQ(heard.all()[1].result, kNoResult);
    EXPECT_EQ(completions.end(milliseconds(1)), Detached::was_not_attached);
    EXPECT_EQ(completions.arm(stream, 3).code, ArmCode::ended);
    EXPECT_EQ(completions.figures().arms[static_cast<int>(ArmCode::ended)], 1U);
  }
  fake_cuda_finish(held);
  fake_cuda_settle();
  EXPECT_EQ(code(cudaStreamSynchronize(stream)), 0);
  EXPECT_EQ(heard.size(), 2U);
}

TEST_P(CompletionsTest, TheEndWaitsForWhatIsOnItsWay) {
  const Heard heard(bus);
  Completions completions = made();
  const std::uint64_t held = fake_cuda_hold(stream);
  ASSERT_TRUE(completions.arm(stream, 1));
  std::thread finishes([&] {
    EXPECT_TRUE(eventually([&] { return !completions.arm(stream, 2); }));  // it has begun to end
    fake_cuda_finish(held);
  });
  const Detached ended = completions.end(minutes(10));
  finishes.join();
  EXPECT_EQ(ended, Detached::done);
  EXPECT_EQ(completions.figures().abandoned, 0U);
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, ALaneThatIsFullRefusesAndGoesOnOnceThereIsRoom) {
  const Heard heard(bus);
  Completions completions = made({.lane_tickets = 4});
  const std::uint64_t held = fake_cuda_hold(stream);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(completions.arm(stream, 1));
  EXPECT_EQ(completions.arm(stream, 5).code, ArmCode::full);
  EXPECT_EQ(completions.figures().arms[static_cast<int>(ArmCode::full)], 1U);
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(4));
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(completions.arm(stream, 6)); }));
  ASSERT_TRUE(heard.await(5));
  expect_balanced(completions, heard);
}

TEST_P(CompletionsTest, LanesAreLimitedAndComeBackFromIdleStreamsAndThreadsThatEnded) {
  const Heard heard(bus);
  Completions completions = made({.lanes_max = 2});
  cudaStream_t streams[3] = {};
  for (cudaStream_t& each : streams) cudaStreamCreate(&each);
  const std::uint64_t first = fake_cuda_hold(streams[0]);
  const std::uint64_t second = fake_cuda_hold(streams[1]);
  ASSERT_TRUE(completions.arm(streams[0], 0));
  std::thread([&] {
    (void)cudaSetDevice(0);
    ASSERT_TRUE(completions.arm(streams[1], 1));
  }).join();
  EXPECT_EQ(completions.arm(streams[2], 2).code, ArmCode::no_lane);
  fake_cuda_finish(second);
  ASSERT_TRUE(heard.await(1));
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(completions.arm(streams[2], 3)); }));
  ASSERT_TRUE(heard.await(2));
  // Of its own two lanes the thread gives the idle one to another stream.
  EXPECT_TRUE(eventually([&] { return static_cast<bool>(completions.arm(streams[1], 4)); }));
  ASSERT_TRUE(heard.await(3));
  EXPECT_EQ(heard.all()[2].stream, reinterpret_cast<std::uintptr_t>(streams[1]));
  fake_cuda_finish(first);
  ASSERT_TRUE(heard.await(4));
  EXPECT_EQ(completions.figures().lanes, 2U);
  expect_balanced(completions, heard);
  for (cudaStream_t each : streams) cudaStreamDestroy(each);
}

TEST_P(CompletionsTest, ACapturingStreamIsRefusedAndItsCaptureIsWhole) {
  Completions completions = made();
  ASSERT_EQ(code(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)), 0);
  EXPECT_EQ(completions.arm(stream, 1).code, ArmCode::capturing);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(code(cudaStreamEndCapture(stream, &graph)), 0);
  cudaGraphDestroy(graph);
  EXPECT_EQ(completions.figures().armed, 0U);
}

TEST_P(CompletionsTest, AGlobalCaptureElsewhereIsNotSpoiledByWhatIsAsked) {
  const Heard heard(bus);
  Completions completions = made({.watch_us = microseconds(1)});
  cudaStream_t captures = nullptr;
  cudaStreamCreate(&captures);
  const std::uint64_t held = fake_cuda_hold(stream);
  ASSERT_EQ(code(cudaStreamBeginCapture(captures, cudaStreamCaptureModeGlobal)), 0);
  ASSERT_TRUE(completions.arm(stream, 1));
  EXPECT_TRUE(eventually([&] { return completions.figures().asked > 5; }));
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(code(cudaStreamEndCapture(captures, &graph)), 0);
  cudaGraphDestroy(graph);
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  EXPECT_EQ(heard.all()[0].outcome, Outcome::completed);
  cudaStreamDestroy(captures);
}

TEST_P(CompletionsTest, AGraphIsArmedBehindItsLaunch) {
  const Heard heard(bus);
  Completions completions = made();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphCreate(&graph, 0);
  std::atomic<int> ran{0};
  const CUDA_HOST_NODE_PARAMS what{[](void* with) { ++*static_cast<std::atomic<int>*>(with); },
                                   &ran};
  CUgraphNode node = nullptr;
  ASSERT_EQ(code(cuGraphAddHostNode(&node, graph, nullptr, 0, &what)), 0);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 1; i <= 10; ++i) {
    const Armed armed = completions.arm_after_launch(exec, stream, 1);
    ASSERT_TRUE(armed);
    EXPECT_TRUE(armed.launched);
    ASSERT_TRUE(heard.await(static_cast<std::size_t>(i)));
    EXPECT_EQ(ran, i);
  }
  const Armed none = completions.arm_after_launch(nullptr, stream, 1);
  EXPECT_EQ(none.code, ArmCode::driver);
  EXPECT_FALSE(none.launched);
  ASSERT_TRUE(completions.arm(stream, 1));  // the refusal left nothing behind
  ASSERT_TRUE(heard.await(11));
  expect_balanced(completions, heard);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_P(CompletionsTest, ANodeSaysEachLaunchOfItsGraph) {
  const Heard heard(bus);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphCreate(&graph, 0);
  {
    Completions completions = made();
    const auto node = completions.add_host_node(graph, {}, 42);
    ASSERT_TRUE(node) << node.error().message;
    cudaGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(code(cudaGraphLaunch(exec, stream)), 0);
    ASSERT_TRUE(heard.await(100));
    for (const Completion& each : heard.all()) {
      EXPECT_EQ(each.tag, 42U);
      EXPECT_EQ(each.mechanism, Mechanism::host_node);
      EXPECT_EQ(each.lane, node.value().lane);
    }
    expect_balanced(completions, heard);
  }
  EXPECT_EQ(code(cudaGraphLaunch(exec, stream)), 0);  // the node has outlived what it spoke for
  EXPECT_EQ(code(cudaStreamSynchronize(stream)), 0);
  EXPECT_EQ(heard.size(), 100U);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_P(CompletionsTest, AForkedChildArmsNothingAndWaitsForNobody) {
  const Heard heard(bus);
  Completions completions = made();
  const std::uint64_t held = fake_cuda_hold(stream);
  ASSERT_TRUE(completions.arm(stream, 1));
  EXPECT_EXIT(
      {
        const bool inert = completions.arm(stream, 2).code == ArmCode::forbidden &&
                           completions.end(minutes(10)) == Detached::was_not_attached;
        { const Completions goes = std::move(completions); }
        ::_exit(inert ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  fake_cuda_finish(held);
  ASSERT_TRUE(heard.await(1));
  expect_balanced(completions, heard);
}

}  // namespace
}  // namespace ringmain::cuda
