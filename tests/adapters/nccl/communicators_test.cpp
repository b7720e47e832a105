// Does each communicator come and go as NCCL says, under its own name, with what is open on it?
#include <algorithm>
#include <string>
#include <vector>

#include "adapters/sources/collective/collective_current.hpp"

#include "tests/adapters/nccl/wrapper_fixture.hpp"

namespace ringmain::tests {
namespace {

using collective::Abort;
using collective::Completed;
using collective::Edge;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::How;
using collective::Issued;
using fake_nccl::fake_nccl_communicators;
using fake_nccl::fake_nccl_fail;
using fake_nccl::fake_nccl_seen;
using nccl::ncclInProgress;
using nccl::ncclInvalidUsage;
using nccl::ncclSuccess;

void promise(const char*, const void*) {
  (void)collective::promise_end();
}

class CommunicatorsTest : public WrapperTest {
 protected:
  CommunicatorsTest() { attach(); }
  ~CommunicatorsTest() override { fake_nccl::fake_nccl_inside(nullptr); }
  [[nodiscard]] std::vector<Group> said(GroupChange change) {
    bus_.deliver();
    std::vector<Group> some;
    std::copy_if(groups_.begin(), groups_.end(), std::back_inserter(some),
                 [change](const Group& one) { return one.change == change; });
    return some;
  }
  Heard<Group> groups_ = bus_.heard<Group>();
  Heard<Issued> issued_ = bus_.heard<Issued>();
  Heard<Failed> failed_ = bus_.heard<Failed>();
  Heard<Completed> completed_ = bus_.heard<Completed>();
  Heard<Abort> aborts_ = bus_.heard<Abort>();
};

TEST_F(CommunicatorsTest, OneIsMadeUnderItsNameAndEnds) {
  auto* const comm = made("default_pg:0", 2, 3);
  const auto came = said(GroupChange::made);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].group.view(), "default_pg:0");
  EXPECT_EQ(came[0].backend.view(), "nccl");
  EXPECT_EQ(came[0].rank, 2);
  EXPECT_EQ(came[0].group_size, 3);
  (void)all_reduce(comm);
  destroy(comm);
  const auto went = said(GroupChange::ended);
  ASSERT_EQ(went.size(), 1u);
  EXPECT_EQ(went[0].operations, 1u);
  EXPECT_EQ(calls_.figures().communicators, 0u);
}

TEST_F(CommunicatorsTest, WithoutANameItIsCalledByTheIdThatItsRanksShare) {
  nccl::ncclUniqueId id{};
  EXPECT_EQ(nccl::GetUniqueId(&id), ncclSuccess);
  nccl::ncclComm_t first = nullptr, second = nullptr, third = nullptr;
  EXPECT_EQ(nccl::CommInitRank(&first, 2, id, 0), ncclSuccess);
  EXPECT_EQ(nccl::CommInitRankScalable(&second, 2, 1, 1, &id, nullptr), ncclSuccess);
  id.internal[0] = 1;
  EXPECT_EQ(nccl::CommInitRankConfig(&third, 2, id, 1, nullptr), ncclSuccess);
  const auto came = said(GroupChange::made);
  ASSERT_EQ(came.size(), 3u);
  EXPECT_EQ(came[0].group, came[1].group);
  EXPECT_NE(came[0].group, came[2].group);
  EXPECT_EQ(came[0].group.view().substr(0, 5), "nccl-");
  for (auto* const one : {first, second, third}) destroy(one);
}

TEST_F(CommunicatorsTest, AConfigurationThatIsOlderThanNamesIsNotReadBeyondItsEnd) {
  struct Old {  // of 2.26
    std::size_t size = sizeof(Old);
    unsigned magic = 0xcafebeef, version = 22605;
    int settings[4] = {1, -1, -1, -1};
    const char* net = nullptr;
    int share = 0;
  } old;
  nccl::ncclComm_t comm = nullptr;
  EXPECT_EQ(nccl::CommInitRankConfig(&comm, 1, {}, 0, reinterpret_cast<nccl::ncclConfig_t*>(&old)),
            ncclSuccess);
  EXPECT_EQ(said(GroupChange::made).at(0).group.view().substr(0, 5), "nccl-");
  destroy(comm);
}

TEST_F(CommunicatorsTest, AllOfAProcessAreMadeAtOnce) {
  nccl::ncclComm_t comms[3] = {};
  EXPECT_EQ(nccl::CommInitAll(comms, 3, nullptr), ncclSuccess);
  const auto came = said(GroupChange::made);
  ASSERT_EQ(came.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(came[static_cast<std::size_t>(i)].rank, i);
    EXPECT_EQ(came[static_cast<std::size_t>(i)].group, came[0].group);
    EXPECT_EQ(all_reduce(comms[i]), ncclSuccess);
  }
  bus_.deliver();
  EXPECT_EQ(issued_[2].rank, 2);
  for (auto* const one : comms) destroy(one);
}

TEST_F(CommunicatorsTest, InAGroupTheyAreMadeAtItsEndOrNotAtAll) {
  nccl::ncclComm_t comms[2] = {};
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(nccl::CommInitRank(&comms[i], 2, {}, i), ncclSuccess);
  EXPECT_TRUE(said(GroupChange::made).empty());
  EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  EXPECT_EQ(said(GroupChange::made).size(), 2u);
  for (auto* const one : comms) destroy(one);

  nccl::ncclComm_t none = nullptr;
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(nccl::CommInitRank(&none, 2, {}, 0), ncclSuccess);
  fake_nccl_fail("ncclGroupEnd", 2);
  EXPECT_EQ(static_cast<int>(nccl::GroupEnd()), 2);
  EXPECT_EQ(said(GroupChange::made).size(), 2u);
  EXPECT_EQ(nccl::CommDestroy(none), ncclSuccess);
}

TEST_F(CommunicatorsTest, OneThatCannotBeMadeIsNot) {
  fake_nccl_fail("ncclCommInitRankConfig", 1);
  nccl::ncclComm_t comm = nullptr;
  nccl::ncclConfig_t config;
  EXPECT_EQ(nccl::CommInitRankConfig(&comm, 1, {}, 0, &config), nccl::ncclUnhandledCudaError);
  EXPECT_TRUE(said(GroupChange::made).empty());
  EXPECT_EQ(calls_.figures().communicators, 0u);
}

TEST_F(CommunicatorsTest, OneThatDoesNotBlockIsMadeWhenNcclSaysSo) {
  auto* const comm = made("pp", 0, 2, false);
  EXPECT_TRUE(said(GroupChange::made).empty());
  nccl::ncclResult_t now{};
  EXPECT_EQ(nccl::CommGetAsyncError(comm, &now), ncclSuccess);
  EXPECT_EQ(now, ncclInProgress);
  EXPECT_TRUE(said(GroupChange::made).empty());
  (void)settled(comm);
  EXPECT_EQ(said(GroupChange::made).size(), 1u);
  (void)settled(comm);
  EXPECT_EQ(said(GroupChange::made).size(), 1u);
  destroy(comm);
  auto* const broken = made("qq", 0, 2, false);
  (void)settled(broken, 6);
  EXPECT_EQ(said(GroupChange::made).size(), 1u);
  EXPECT_EQ(nccl::CommAbort(broken), ncclSuccess);
}

TEST_F(CommunicatorsTest, ItsOperationsAreOnTheirStreamWhenNcclIsNotInProgressAnyMore) {
  auto* const comm = settled(made("pp", 0, 2, false));
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(open(), 1u);
  (void)settled(comm);
  EXPECT_EQ(open(), 0u);

  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(nccl::GroupEnd(), ncclInProgress);
  EXPECT_EQ(open(), 2u);
  (void)settled(comm, 2);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 2u);
  EXPECT_EQ(failed_[0].op_id, issued_[1].op_id);
  EXPECT_EQ(failed_[0].result, 2);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(CommunicatorsTest, AnAsynchronousErrorFailsWhatIsOpenOnItOnce) {
  auto* const comm = made("dp");
  auto* const other = made("tp");
  fake_nccl::fake_nccl_inside(promise);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(all_reduce(other), ncclSuccess);
  EXPECT_EQ(open(), 2u);
  (void)settled(comm, 6);
  (void)settled(comm, 6);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].group.view(), "dp");
  EXPECT_EQ(failed_[0].how, How::error);
  EXPECT_EQ(failed_[0].reason.view(), "remote process exited or there was a network error");
  EXPECT_EQ(open(), 1u);
  EXPECT_EQ(nccl::CommAbort(comm), ncclSuccess);
  EXPECT_EQ(nccl::CommAbort(other), ncclSuccess);
}

TEST_F(CommunicatorsTest, ASplitIsAnOperationAndGivesAPart) {
  auto* const whole = made("world", 1, 4);
  std::vector<std::string> heard;
  auto hook = communicator("world").post_hook([&](const collective::PostHookArgs& args) {
    if (args.name == collective::OpName::split)
      heard.emplace_back(args.new_comm == nullptr ? "none" : args.new_comm->name().view());
  });
  ASSERT_TRUE(hook);
  nccl::ncclComm_t part = nullptr, named = nullptr, none = nullptr;
  EXPECT_EQ(nccl::CommSplit(whole, 3, 0, &part, nullptr), ncclSuccess);
  nccl::ncclConfig_t config;
  config.commName = "tp:1";
  EXPECT_EQ(nccl::CommSplit(whole, 3, 0, &named, &config), ncclSuccess);
  EXPECT_EQ(nccl::CommSplit(whole, -1, 0, &none, nullptr), ncclSuccess);
  EXPECT_EQ(heard, (std::vector<std::string>{"world/split1.3", "tp:1", "none"}));
  const auto splits = said(GroupChange::split);
  ASSERT_EQ(splits.size(), 3u);
  EXPECT_EQ(splits[0].parent.view(), "world");
  EXPECT_EQ(splits[0].hooks, 1u);
  EXPECT_EQ(splits[2].group, Name());
  ASSERT_EQ(issued_.size(), 3u);
  EXPECT_EQ(issued_[0].op.view(), "split");
  EXPECT_EQ(completed_.size(), 3u);
  for (auto* const one : {whole, part, named}) destroy(one);
}

TEST_F(CommunicatorsTest, ASplitThatAHookRefusesIsNotMade) {
  auto* const whole = made("world", 1, 4);
  auto hook = communicator("world").pre_hook(
      [](const collective::PreHookArgs&) { return Verdict::veto(Name("no")); });
  ASSERT_TRUE(hook);
  nccl::ncclComm_t part = nullptr;
  EXPECT_EQ(nccl::CommSplit(whole, 3, 0, &part, nullptr), ncclInvalidUsage);
  EXPECT_EQ(nccl::CommFinalize(whole), ncclInvalidUsage);
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(fake_nccl_seen("ncclCommSplit") + fake_nccl_seen("ncclCommFinalize"), 0u);
  EXPECT_EQ(calls_.figures().refused, 2u);
  destroy(whole);
}

TEST_F(CommunicatorsTest, ShrinkingAndGrowingMakeParts) {
  auto* const whole = made("world", 1, 4);
  nccl::ncclComm_t less = nullptr, more = nullptr, alone = nullptr;
  int excluded[] = {3};
  EXPECT_EQ(nccl::CommShrink(whole, excluded, 1, &less, nullptr, 0), ncclSuccess);
  EXPECT_TRUE(aborts_.empty());
  EXPECT_EQ(nccl::CommGrow(whole, 6, nullptr, -1, &more, nullptr), ncclSuccess);
  nccl::ncclUniqueId id{};
  EXPECT_EQ(nccl::CommGrow(nullptr, 6, &id, 5, &alone, nullptr), ncclSuccess);
  const auto parts = said(GroupChange::split);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].group.view(), "world/shrink1");
  EXPECT_EQ(parts[0].group_size, 3);
  EXPECT_EQ(parts[1].group.view(), "world/grow2");
  EXPECT_EQ(said(GroupChange::made).size(), 2u);
  for (auto* const one : {whole, less, more, alone}) destroy(one);
}

TEST_F(CommunicatorsTest, AShrinkThatAbortsIsPublishedBeforeItIsCalled) {
  auto* const whole = made("world", 1, 4);
  fake_nccl::fake_nccl_inside(promise);
  EXPECT_EQ(all_reduce(whole), ncclSuccess);
  std::vector<std::size_t> calls;
  auto hook = communicator("world").abort_hook(
      [&](const collective::AbortHookArgs&) { calls.push_back(fake_nccl_seen("ncclCommShrink")); });
  ASSERT_TRUE(hook);
  nccl::ncclComm_t less = nullptr;
  EXPECT_EQ(nccl::CommShrink(whole, nullptr, 0, &less, nullptr, 1), ncclSuccess);
  EXPECT_EQ(calls, std::vector<std::size_t>{0});
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].how, How::aborted);
  EXPECT_EQ(aborts_.size(), 2u);
  destroy(less);
  destroy(whole);
}

TEST_F(CommunicatorsTest, ARevokeFailsWhatIsOpenAndLeavesTheCommunicator) {
  auto* const comm = made("dp");
  fake_nccl::fake_nccl_inside(promise);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  std::vector<std::size_t> calls;
  auto hook = communicator("dp").abort_hook(
      [&](const collective::AbortHookArgs&) { calls.push_back(fake_nccl_seen("ncclCommRevoke")); });
  ASSERT_TRUE(hook);
  EXPECT_EQ(nccl::CommRevoke(comm, 0), ncclSuccess);
  EXPECT_EQ(calls, std::vector<std::size_t>{0});
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].how, How::aborted);
  EXPECT_EQ(failed_[0].reason.view(), "ncclCommRevoke");
  EXPECT_FALSE(communicator("dp").ended());
  destroy(comm);
}

TEST_F(CommunicatorsTest, AnAbortIsPublishedAndWrittenBeforeItIsCalled) {
  calls_.detach();
  std::vector<std::string> order;
  nccl::CallsOptions options;
  options.before_abort = [&] { order.emplace_back("written"); };
  attach(options);
  auto* const comm = made("dp");
  fake_nccl::fake_nccl_inside(promise);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  const auto inline_abort = bus_.channel<Abort>().subscribe_inline([&](const Abort& said) {
    order.emplace_back(said.edge == Edge::begin ? "begin" : "end");
    EXPECT_EQ(fake_nccl_seen("ncclCommAbort"), said.edge == Edge::begin ? 0u : 1u);
  });
  auto hook = communicator("dp").abort_hook(
      [&](const collective::AbortHookArgs& args) { order.emplace_back(args.reason.view()); });
  ASSERT_TRUE(hook);
  EXPECT_EQ(nccl::CommAbort(comm), ncclSuccess);
  EXPECT_EQ(order, (std::vector<std::string>{"begin", "ncclCommAbort", "written", "end"}));
  EXPECT_EQ(fake_nccl_seen("ncclCommAbort"), 1u);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].how, How::aborted);
  EXPECT_EQ(said(GroupChange::ended).size(), 1u);
}

TEST_F(CommunicatorsTest, AnAbortThatNcclRefusesIsAnsweredSo) {
  auto* const comm = made("dp");
  fake_nccl_fail("ncclCommAbort", 3);
  EXPECT_EQ(static_cast<int>(nccl::CommAbort(comm)), 3);
  EXPECT_EQ(nccl::CommDestroy(comm), ncclSuccess);
}

TEST_F(CommunicatorsTest, ASubscriberMayAbortAndTheProgramsOwnEndIsNoError) {
  auto* const comm = made("dp");
  const auto aborted = communicator("dp").abort("it hangs", "watchdog");
  EXPECT_EQ(aborted.how, collective::Aborted::How::done);
  EXPECT_EQ(fake_nccl_seen("ncclCommAbort"), 1u);
  EXPECT_EQ(fake_nccl_communicators(), 0u);
  EXPECT_EQ(all_reduce(comm), ncclInvalidUsage);  // NCCL has freed it
  EXPECT_EQ(nccl::CommFinalize(comm), ncclSuccess);
  EXPECT_EQ(nccl::CommDestroy(comm), ncclSuccess);
  EXPECT_EQ(fake_nccl_seen("ncclAllReduce") + fake_nccl_seen("ncclCommDestroy") +
                fake_nccl_seen("ncclCommFinalize"),
            0u);
  auto* const next = made("dp");
  EXPECT_EQ(next, comm);  // the handle is given again
  EXPECT_EQ(all_reduce(next), ncclSuccess);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  destroy(next);
}

TEST_F(CommunicatorsTest, AHandleThatIsGivenAgainIsAnotherCommunicator) {
  auto* const first = made("dp", 0, 2);
  EXPECT_EQ(all_reduce(first), ncclSuccess);
  destroy(first);
  auto* const second = made("tp", 1, 2);
  ASSERT_EQ(first, second);
  EXPECT_EQ(all_reduce(second), ncclSuccess);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 2u);
  EXPECT_EQ(issued_[0].group.view(), "dp");
  EXPECT_EQ(issued_[1].group.view(), "tp");
  EXPECT_EQ(issued_[1].sequence, 1u);
  destroy(second);
}

TEST_F(CommunicatorsTest, WhatIsOnItsStreamOutlivesTheCommunicatorAndWhatIsNotDoesNot) {
  auto* const comm = settled(made("pp", 0, 2, false));
  fake_nccl::fake_nccl_inside(promise);
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  (void)settled(comm);
  EXPECT_EQ(all_reduce(comm), ncclInProgress);
  EXPECT_EQ(open(), 2u);
  EXPECT_EQ(nccl::CommDestroy(comm), ncclSuccess);
  bus_.deliver();
  ASSERT_EQ(failed_.size(), 1u);
  EXPECT_EQ(failed_[0].op_id, issued_[1].op_id);
  EXPECT_EQ(failed_[0].how, How::cancelled);
  EXPECT_EQ(open(), 1u);  // whoever promised says it
}

TEST_F(CommunicatorsTest, AnEndThatNcclRefusesEndsNothing) {
  auto* const comm = made("dp");
  fake_nccl_fail("ncclCommDestroy", 5);
  EXPECT_EQ(nccl::CommDestroy(comm), ncclInvalidUsage);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(calls_.figures().communicators, 1u);
  EXPECT_EQ(nccl::CommFinalize(comm), ncclSuccess);
  destroy(comm);
}

}  // namespace
}  // namespace ringmain::tests
