// Is each operation that a program calls for told once, as it was called, and NCCL called as
// before?
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "adapters/sources/collective/collective_current.hpp"

#include "tests/adapters/nccl/wrapper_fixture.hpp"

namespace ringmain::tests {
namespace {

using collective::Completed;
using collective::Failed;
using collective::How;
using collective::Issued;
using collective::Ledger;
using collective::Outcome;
using fake_nccl::fake_nccl_fail;
using fake_nccl::fake_nccl_launched;
using fake_nccl::fake_nccl_seen;
using nccl::ncclInvalidArgument;
using nccl::ncclInvalidUsage;
using nccl::ncclSuccess;

TEST_F(OperationsTest, OneIsIssuedAsItWasCalledAndLeavesNothingOpen) {
  attach();
  auto* const comm = made("dp:0");
  EXPECT_EQ(all_reduce(comm, 256, 5), ncclSuccess);
  EXPECT_EQ(open(), 0u);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 1u);
  const Issued& one = issued_[0];
  EXPECT_NE(one.op_id, 0u);
  EXPECT_EQ(one.sequence, 1u);
  EXPECT_EQ(one.op.view(), "all_reduce");
  EXPECT_EQ(one.group.view(), "dp:0");
  EXPECT_EQ(one.backend.view(), "nccl");
  EXPECT_EQ(one.source.view(), "nccl");
  EXPECT_EQ(one.dtype.view(), "float32");
  EXPECT_EQ(one.bytes, 1024u);
  EXPECT_EQ(one.in_elements, 256u);
  EXPECT_EQ(one.out_elements, 256u);
  EXPECT_EQ(one.stream, 5u);
  EXPECT_EQ(one.rank, 1);
  EXPECT_EQ(one.group_size, 4);
  EXPECT_EQ(one.device, 1);
  EXPECT_EQ(one.peer, collective::kNoRank);
  EXPECT_TRUE(one.asynchronous);
  EXPECT_TRUE(failed_.empty());
  EXPECT_TRUE(completed_.empty());
  const auto seen = last_seen("ncclAllReduce");
  EXPECT_EQ(seen.comm, comm);
  EXPECT_EQ(seen.count, 256u);
  EXPECT_FALSE(seen.configured);
  destroy(comm);
}

TEST_F(OperationsTest, EachMovesWhatItMoves) {
  attach();
  auto* const comm = made("dp:0", 1, 4);  // rank 1 of 4
  struct Row {
    const char* op;
    std::uint64_t in, out;
    std::int32_t peer;
  };
  std::vector<Row> rows;
  float a = 0, b = 0;
  const auto type = nccl::ncclFloat16;
  const auto on = stream_of(0);
  const auto call = [&](const char* op, std::uint64_t in, std::uint64_t out, int peer,
                        nccl::ncclResult_t result) {
    EXPECT_EQ(result, ncclSuccess) << op;
    rows.push_back({op, in, out, peer});
  };
  using namespace nccl;  // NOLINT: only here, to keep the table readable
  call("broadcast", 0, 8, 2, Broadcast(&a, &b, 8, type, 2, comm, on));
  call("broadcast", 8, 8, 1, Broadcast(&a, &b, 8, type, 1, comm, on));
  call("broadcast", 8, 8, 1, Bcast(&a, 8, type, 1, comm, on));
  call("reduce", 8, 0, 0, Reduce(&a, &b, 8, type, ncclSum, 0, comm, on));
  call("reduce", 8, 8, 1, Reduce(&a, &b, 8, type, ncclSum, 1, comm, on));
  call("all_gather", 8, 32, -1, AllGather(&a, &b, 8, type, comm, on));
  call("reduce_scatter", 32, 8, -1, ReduceScatter(&a, &b, 8, type, ncclSum, comm, on));
  call("all_to_all", 32, 32, -1, AlltoAll(&a, &b, 8, type, comm, on));
  call("gather", 8, 32, 1, Gather(&a, &b, 8, type, 1, comm, on));
  call("gather", 8, 0, 3, Gather(&a, &b, 8, type, 3, comm, on));
  call("scatter", 32, 8, 1, Scatter(&a, &b, 8, type, 1, comm, on));
  call("scatter", 0, 8, 3, Scatter(&a, &b, 8, type, 3, comm, on));
  call("send", 8, 0, 2, Send(&a, 8, type, 2, comm, on));
  call("recv", 0, 8, 3, Recv(&b, 8, type, 3, comm, on));
  call("put_signal", 8, 0, 3, PutSignal(&a, 8, type, 3, nullptr, 0, 0, 0, 0, comm, on));
  call("signal", 0, 0, 3, Signal(3, 0, 0, 0, comm, on));
  ncclWaitSignalDesc_t wait{1, 2, 0, 0};
  call("wait_signal", 0, 0, 2, WaitSignal(1, &wait, comm, on));
  call("all_reduce", 0, 0, -1, AllReduce(&a, &b, 0, type, ncclSum, comm, on));
  ncclCollConfig_t config{};
  call("all_gather", 8, 32, -1, AllGatherConfig(&a, &b, 8, type, comm, on, &config));
  bus_.deliver();
  ASSERT_EQ(issued_.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].op);
    EXPECT_EQ(issued_[i].op.view(), rows[i].op);
    EXPECT_EQ(issued_[i].in_elements, rows[i].in);
    EXPECT_EQ(issued_[i].out_elements, rows[i].out);
    EXPECT_EQ(issued_[i].bytes, 2 * std::max(rows[i].in, rows[i].out));
    EXPECT_EQ(issued_[i].peer, rows[i].peer);
  }
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(OperationsTest, WhatNobodyHearsIsCountedAllTheSame) {
  TestBus bus;  // nobody listens on it
  auto made_calls = nccl::Calls::attach(bus);
  ASSERT_TRUE(made_calls);
  auto* const comm = made("dp:0");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(all_reduce(comm), ncclSuccess);
  float a = 0;
  EXPECT_EQ(nccl::Send(&a, 1, nccl::ncclFloat32, 0, comm, nullptr), ncclSuccess);
  EXPECT_EQ(nccl::Bcast(&a, 1, nccl::ncclFloat32, 0, comm, nullptr), ncclSuccess);
  const auto heard = bus.heard<Issued>();
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  bus.deliver();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].sequence, 7u);
  EXPECT_EQ(fake_nccl_seen("ncclAllReduce"), 6u);
  destroy(comm);
}

TEST_F(OperationsTest, OneThatNcclRefusesHasFailedWithItsCodeAndWords) {
  attach();
  auto* const comm = made("dp:0");
  fake_nccl_fail("ncclAllReduce", 4);
  EXPECT_EQ(all_reduce(comm), ncclInvalidArgument);
  fake_nccl_fail("ncclAllReduce", 8);
  EXPECT_EQ(static_cast<int>(all_reduce(comm)), 8);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 2u);
  EXPECT_EQ(failed_[0].op_id, issued_[0].op_id);
  EXPECT_EQ(failed_[0].result, 4);
  EXPECT_EQ(failed_[0].how, How::error);
  EXPECT_EQ(failed_[0].reason.view(), "invalid argument");
  EXPECT_EQ(failed_[1].how, How::timed_out);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(OperationsTest, AHookThatRefusesHasItAnsweredAndNcclNotCalled) {
  attach();
  auto* const comm = made("dp:0");
  std::vector<Outcome> outcomes;
  auto asks = communicator("dp:0").pre_hook([](const collective::PreHookArgs& args) {
    const auto view = collective::view_of(*args.arguments);
    static const Name kWhy("too much");
    return view.input[0].bytes > 100 ? Verdict::veto(kWhy) : Verdict::allow();
  });
  auto told = communicator("dp:0").post_hook(
      [&](const collective::PostHookArgs& args) { outcomes.push_back(args.outcome); });
  ASSERT_TRUE(asks);
  ASSERT_TRUE(told);
  EXPECT_STREQ(nccl::GetLastError(comm), "");
  EXPECT_EQ(all_reduce(comm, 26), ncclInvalidUsage);
  EXPECT_STREQ(nccl::GetLastError(comm),
               "ncclAllReduce on 'dp:0': NCCL was not called, as a hook of ringmain's refused it: "
               "too much");
  EXPECT_STREQ(nccl::GetLastError(nullptr), nccl::GetLastError(comm));
  EXPECT_STREQ(nccl::GetLastError(reinterpret_cast<nccl::ncclComm_t>(8)), "");  // NCCL's words
  EXPECT_EQ(all_reduce(comm, 25), ncclSuccess);
  EXPECT_STREQ(nccl::GetLastError(comm), "");
  EXPECT_EQ(fake_nccl_seen("ncclAllReduce"), 1u);
  EXPECT_EQ(calls_.figures().refused, 1u);
  EXPECT_EQ(outcomes, (std::vector{Outcome::refused, Outcome::issued}));
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].how, How::vetoed);
  EXPECT_EQ(failed_[0].reason.view(), "too much");
  EXPECT_EQ(issued_.size(), 2u);
  destroy(comm);
}

TEST_F(OperationsTest, InAGroupTheEndDecidesForAll) {
  attach();
  auto* const comm = made("dp:0");
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(open(), 2u);
  EXPECT_EQ(fake_nccl_launched(), 0u);
  EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  EXPECT_EQ(fake_nccl_launched(), 2u);
  EXPECT_EQ(open(), 0u);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 2u);
  EXPECT_TRUE(failed_.empty());

  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  fake_nccl_fail("ncclGroupEnd", 3);
  EXPECT_EQ(static_cast<int>(nccl::GroupEnd()), 3);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 2u);
  EXPECT_EQ(failed_[0].op_id, issued_[2].op_id);
  EXPECT_EQ(failed_[1].op_id, issued_[3].op_id);
  EXPECT_EQ(failed_[1].result, 3);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(OperationsTest, OneOfAGroupMayBeRefusedAndTheOthersFailWithIt) {
  attach();
  auto* const comm = made("dp:0");
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  fake_nccl_fail("ncclAllReduce", 4);
  EXPECT_EQ(all_reduce(comm), ncclInvalidArgument);
  EXPECT_EQ(nccl::GroupEnd(), ncclInvalidArgument);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 2u);
  EXPECT_EQ(failed_[0].op_id, issued_[1].op_id);
  EXPECT_EQ(failed_[1].op_id, issued_[0].op_id);
  destroy(comm);
}

TEST_F(OperationsTest, AGroupThatWasSimulatedLeavesItsOperationsCancelled) {
  attach();
  auto* const comm = made("dp:0");
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  nccl::ncclSimInfo_t info{};
  EXPECT_EQ(nccl::GroupSimulateEnd(&info), ncclSuccess);
  EXPECT_EQ(fake_nccl_launched(), 0u);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].how, How::cancelled);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(OperationsTest, AnEndWithoutABeginIsNcclsToJudge) {
  attach();
  EXPECT_EQ(nccl::GroupEnd(), ncclInvalidUsage);
  fake_nccl::fake_nccl_leave_depth(true);
  fake_nccl_fail("ncclCommInitRankConfig", 1);
  nccl::ncclComm_t comm = nullptr;
  nccl::ncclConfig_t config;
  EXPECT_EQ(static_cast<int>(nccl::CommInitRankConfig(&comm, 1, {}, 0, &config)), 1);
  EXPECT_EQ(nccl::detail::thread_state.depth, 0u);
  fake_nccl::fake_nccl_leave_depth(false);
  auto* const other = made("dp:0");
  EXPECT_EQ(all_reduce(other), ncclSuccess);  // NCCL's group takes it
  (void)nccl::GroupEnd();                     // the stray one
  EXPECT_EQ(nccl::detail::thread_state.depth, 0u);
  EXPECT_EQ(nccl::GroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(all_reduce(other), ncclSuccess);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 3u);  // with the communicator that could not be made
  EXPECT_EQ(open(), 0u);
  destroy(other);
}

TEST_F(OperationsTest, ArgumentsAreJudgedByNcclAlone) {
  attach();
  EXPECT_EQ(all_reduce(nullptr), ncclInvalidArgument);
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(nullptr), ncclInvalidArgument);
  EXPECT_EQ(nccl::GroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(nccl::CommDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(nccl::CommAbort(nullptr), ncclSuccess);
  EXPECT_EQ(nccl::CommFinalize(nullptr), ncclSuccess);
  EXPECT_EQ(nccl::CommRevoke(nullptr, 0), ncclSuccess);
  EXPECT_EQ(nccl::CommSplit(nullptr, 0, 0, nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(nccl::CommShrink(nullptr, nullptr, 0, nullptr, nullptr, 1), ncclInvalidArgument);
  EXPECT_EQ(nccl::CommGetAsyncError(nullptr, nullptr), ncclInvalidArgument);
  EXPECT_EQ(nccl::CommInitRank(nullptr, 1, {}, 0), ncclInvalidArgument);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 2u);  // the two that were to make a communicator
  ASSERT_EQ(failed_.size(), 2u);
  for (const Failed& one : failed_) {
    EXPECT_EQ(one.op.view(), "init");
    EXPECT_EQ(one.result, 4);
  }
}

TEST_F(OperationsTest, AFunctionThatNcclDoesNotHaveIsASystemError) {
  EXPECT_EQ(nccl::CommSuspend(nullptr, 0), nccl::ncclSystemError);
  nccl::ParamDumpAll();
  nccl::ncclParamHandle_t handle = nullptr;
  EXPECT_EQ(nccl::ParamBind(&handle, "x"), nccl::ncclSystemError);
  EXPECT_STREQ(nccl::GetErrorString(ncclInvalidUsage), "invalid usage");
}

TEST_F(OperationsTest, ErrnoIsThePrograms) {
  attach();
  auto* const comm = made("dp:0");
  errno = EDOM;
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(errno, EDOM);
  destroy(comm);
}

TEST_F(OperationsTest, ACommunicatorFromBeforeIsAskedWhatItIs) {
  nccl::ncclComm_t comm = made("dp:0", 2, 3);
  attach();
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 2u);
  EXPECT_EQ(issued_[0].group.view(), "nccl-1");
  EXPECT_EQ(issued_[0].rank, 2);
  EXPECT_EQ(issued_[1].group_size, 3);
  EXPECT_EQ(calls_.figures().communicators, 1u);
  destroy(comm);
  EXPECT_EQ(calls_.figures().communicators, 0u);
}

}  // namespace
}  // namespace ringmain::tests
