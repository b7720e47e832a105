// Is an operation completed when its stream has done it, once, and not before? Over the libraries
// that stand in for NCCL and for CUDA, whose streams can be held.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "adapters/sources/cuda/completions.hpp"
#include "adapters/sources/nccl/nccl.hpp"

#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/cuda/fakes/cuda_types.hpp"
#include "tests/adapters/cuda/fakes/fake_cuda.h"
#include "tests/adapters/nccl/fake/fake_nccl.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;

class EndsTest : public testing::Test {
 protected:
  EndsTest() {
    fake_nccl::fake_nccl_reset();
    fake_cuda_reset();
    EXPECT_EQ(static_cast<int>(cudaFree(nullptr)), 0);
    EXPECT_EQ(static_cast<int>(cudaStreamCreate(&stream_)), 0);
    auto made = nccl::Calls::attach(bus_, {.completions = true});
    EXPECT_TRUE(made);
    calls_ = std::move(made).value();
    EXPECT_EQ(nccl::CommInitAll(&comm_, 1, nullptr), nccl::ncclSuccess);
  }
  ~EndsTest() override {
    if (comm_ != nullptr) (void)nccl::CommDestroy(comm_);
    fake_cuda_finish(0);
    fake_cuda_settle();
    calls_.detach();
    (void)cudaStreamDestroy(stream_);
  }
  nccl::ncclResult_t all_reduce() {
    static float data;
    return nccl::AllReduce(&data, &data, 1, nccl::ncclFloat32, nccl::ncclSum, comm_,
                           reinterpret_cast<nccl::cudaStream_t>(stream_));
  }
  [[nodiscard]] std::uint32_t open() {
    return collective::Ledger::of(bus_).value()->figures().open;
  }
  [[nodiscard]] bool completed(std::size_t many) {
    return eventually([&] { return completed_.all().size() >= many; });
  }

  Bus bus_;
  Heard<Issued> issued_{bus_};
  Heard<Completed> completed_{bus_};
  Heard<Failed> failed_{bus_};
  nccl::Calls calls_;
  nccl::ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(EndsTest, AnOperationCompletesWhenItsStreamHasComeToIt) {
  const std::uint64_t held = fake_cuda_hold(stream_);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  EXPECT_EQ(calls_.figures().armed, 1u);
  EXPECT_TRUE(completed_.all().empty());
  EXPECT_EQ(open(), 1u);
  fake_cuda_finish(held);
  ASSERT_TRUE(completed(1));
  const auto issued = issued_.all();
  const auto completed = completed_.all();
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].op_id, issued.at(0).op_id);
  EXPECT_EQ(completed[0].op.view(), "all_reduce");
  EXPECT_EQ(completed[0].stream, reinterpret_cast<std::uintptr_t>(stream_));
  EXPECT_TRUE(failed_.all().empty());
}

TEST_F(EndsTest, AGroupIsArmedWhenItEndsAndEachCompletesOnce) {
  EXPECT_EQ(nccl::GroupStart(), nccl::ncclSuccess);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  EXPECT_EQ(calls_.figures().armed, 0u);
  EXPECT_EQ(nccl::GroupEnd(), nccl::ncclSuccess);
  EXPECT_EQ(calls_.figures().armed, 100u);
  ASSERT_TRUE(completed(100));
  const auto issued = issued_.all();
  const auto completed = completed_.all();
  ASSERT_EQ(completed.size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(completed[i].op_id, issued[i].op_id);
}

/// As a process group of PyTorch's above NCCL, which is never told of an end.
class OuterEndsTest : public EndsTest {
 protected:
  void call_from_outside() {
    Issued said;
    said.op = Name("all_reduce");
    auto issuing = outer_.issue(collective::AllReduce{}, said, {.ends = false});
    EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
    issuing.returned();
  }
  collective::Communicator outer_ =
      collective::Communicator::make(bus_, {.name = "outer", .counts = false}).value();
};

TEST_F(OuterEndsTest, ItsOperationHasTheEndThatItsStreamShows) {
  const std::uint64_t held = fake_cuda_hold(stream_);
  call_from_outside();
  ASSERT_EQ(open(), 1u);
  EXPECT_TRUE(completed_.all().empty());
  fake_cuda_finish(held);
  ASSERT_TRUE(completed(1));
  ASSERT_EQ(issued_.all().size(), 1u);
  EXPECT_EQ(issued_.all()[0].group.view(), "outer");
  EXPECT_EQ(completed_.all()[0].op_id, issued_.all()[0].op_id);
}

TEST_F(OuterEndsTest, SoHasOneInAGroupThatEndsAfterTheCall) {
  EXPECT_EQ(nccl::GroupStart(), nccl::ncclSuccess);
  for (int i = 0; i < 3; ++i) call_from_outside();
  ASSERT_EQ(open(), 3u);
  EXPECT_EQ(nccl::GroupEnd(), nccl::ncclSuccess);
  ASSERT_TRUE(completed(3));
  EXPECT_EQ(issued_.all().size(), 3u);
  EXPECT_EQ(open(), 0u);
}

TEST_F(OuterEndsTest, AndNothingIsLeftOpenWhereTheGroupNeverRuns) {
  EXPECT_EQ(nccl::GroupStart(), nccl::ncclSuccess);
  call_from_outside();
  EXPECT_EQ(nccl::GroupSimulateEnd(nullptr), nccl::ncclSuccess);
  ASSERT_EQ(failed_.all().size(), 1u);
  EXPECT_EQ(failed_.all()[0].how, How::cancelled);
  EXPECT_EQ(open(), 0u);
}

TEST_F(EndsTest, WhatAHungStreamHoldsFailsWithAnAbort) {
  const std::uint64_t held = fake_cuda_hold(stream_);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  EXPECT_EQ(nccl::CommAbort(comm_), nccl::ncclSuccess);
  comm_ = nullptr;
  const auto failed = failed_.all();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].how, How::aborted);
  fake_cuda_finish(held);
  fake_cuda_settle();
  calls_.detach();
  EXPECT_TRUE(completed_.all().empty());
}

TEST_F(EndsTest, ACommunicatorMayGoBeforeItsStreamIsDone) {
  const std::uint64_t held = fake_cuda_hold(stream_);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  EXPECT_EQ(nccl::CommDestroy(comm_), nccl::ncclSuccess);
  comm_ = nullptr;
  EXPECT_EQ(open(), 1u);
  fake_cuda_finish(held);
  ASSERT_TRUE(completed(1));
  EXPECT_EQ(completed_.all().size(), 1u);
}

TEST_F(EndsTest, WhatAGraphRecordsHasNoEndAndIsNotOpen) {
  ASSERT_EQ(static_cast<int>(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal)), 0);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(static_cast<int>(cudaStreamEndCapture(stream_, &graph)), 0);
  EXPECT_NE(graph, nullptr);
  EXPECT_EQ(calls_.figures().unarmed, 1u);
  EXPECT_EQ(open(), 0u);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  ASSERT_TRUE(completed(1));
  EXPECT_EQ(completed_.all()[0].op_id, issued_.all().at(1).op_id);
  EXPECT_TRUE(failed_.all().empty());
  EXPECT_EQ(static_cast<int>(cudaGraphDestroy(graph)), 0);
}

TEST_F(EndsTest, CompletionsOfTheProgramsOwnAreNotTakenForOperations) {
  const std::uint64_t held = fake_cuda_hold(stream_);
  EXPECT_EQ(all_reduce(), nccl::ncclSuccess);
  const std::uint64_t op_id = issued_.all().at(0).op_id;
  cudaStream_t other = nullptr;
  EXPECT_EQ(static_cast<int>(cudaStreamCreate(&other)), 0);
  auto own = cuda::Completions::make(bus_);
  ASSERT_TRUE(own);
  EXPECT_TRUE(own.value().arm(other, op_id));
  EXPECT_TRUE(eventually([&] { return own.value().figures().completed == 1; }));
  EXPECT_TRUE(completed_.all().empty());
  EXPECT_EQ(open(), 1u);
  fake_cuda_finish(held);
  ASSERT_TRUE(completed(1));
  EXPECT_EQ(completed_.all().size(), 1u);
  (void)cudaStreamDestroy(other);
}

}  // namespace
}  // namespace ringmain::tests
