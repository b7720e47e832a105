// Has an operation one id, whoever is above or below the wrapper, and what becomes of the wrapper
// itself?
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

using OperationIdsTest = OperationsTest;

TEST_F(OperationIdsTest, AnOuterSourcesOperationStaysTheOnlyOne) {
  attach();
  auto* const comm = made("dp:0");
  const auto ledger = Ledger::of(bus_).value();
  Issued outer;
  outer.op = Name("all_reduce");
  outer.source = Name("torch");
  const std::uint64_t op_id = ledger->issue(outer);
  {
    const Ledger::Inside inside(*ledger, op_id);
    EXPECT_EQ(all_reduce(comm), ncclSuccess);
    EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
    EXPECT_EQ(all_reduce(comm), ncclSuccess);
    EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  }
  EXPECT_EQ(open(), 1u);  // its end is the outer source's to say, and was not forgotten
  EXPECT_TRUE(ledger->completed(op_id));
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  EXPECT_EQ(completed_.size(), 1u);
  destroy(comm);
}

TEST_F(OperationIdsTest, TwoWrappersAboveEachOtherTellOfOne) {
  attach();
  auto* const comm = made("dp:0");
  // As a header's call that passes a preload: NCCL's own call is not one of the program's.
  static nccl::ncclComm_t again;
  again = comm;
  fake_nccl::fake_nccl_inside([](const char* name, const void*) {
    if (std::string(name) == "ncclAllGather") (void)all_reduce(again);
  });
  float a = 0;
  EXPECT_EQ(nccl::AllGather(&a, &a, 1, nccl::ncclFloat32, comm, nullptr), ncclSuccess);
  fake_nccl::fake_nccl_inside(nullptr);
  EXPECT_EQ(fake_nccl_seen("ncclAllReduce"), 1u);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 2u);
  EXPECT_EQ(issued_[0].op.view(), "all_gather");
  EXPECT_EQ(issued_[1].sequence, 2u);  // nor was it counted
  destroy(comm);
}

std::uint64_t read_id = 0;
bool promises = false;
void plugin(const char*, const void*) {
  read_id = collective::current_operation();
  if (promises) (void)collective::promise_end();
}

TEST_F(OperationIdsTest, APluginReadsTheIdAndMayPromiseTheEnd) {
  attach();
  auto* const comm = made("dp:0");
  fake_nccl::fake_nccl_inside(plugin);
  promises = true;
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  const auto ledger = Ledger::of(bus_).value();
  EXPECT_EQ(open(), 1u);
  EXPECT_TRUE(ledger->completed(read_id));
  EXPECT_FALSE(ledger->completed(read_id));
  promises = false;
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_FALSE(ledger->completed(read_id));  // nobody had promised it
  EXPECT_EQ(collective::current_operation(), 0u);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 2u);
  EXPECT_EQ(issued_[1].op_id, read_id);
  ASSERT_EQ(completed_.size(), 1u);
  EXPECT_EQ(completed_[0].op_id, issued_[0].op_id);
  EXPECT_EQ(completed_[0].group.view(), "dp:0");
  destroy(comm);
}

TEST_F(OperationIdsTest, ByChoiceTheIdIsTheProfilersTag) {
  attach({.tags = true});
  auto* const comm = made("dp:0");
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  const auto tagged = last_seen("ncclAllReduce");
  EXPECT_TRUE(tagged.configured);
  nccl::ncclCollConfig_t config{};
  config.maxCTAs = 3;
  float a = 0;
  const auto gather = [&](const nccl::ncclCollConfig_t* with) {
    EXPECT_EQ(nccl::AllGatherConfig(&a, &a, 1, nccl::ncclFloat32, comm, nullptr, with),
              ncclSuccess);
    return last_seen("ncclAllGather");
  };
  const auto filled = gather(&config);
  EXPECT_EQ(config.userProfilerTag, 0u);
  config.userProfilerTag = 77;
  const auto own = gather(&config);
  config.userProfilerTag = 0;
  config.magic = 1;
  const auto broken = gather(&config);
  EXPECT_EQ(nccl::Send(&a, 1, nccl::ncclFloat32, 0, comm, nullptr), ncclSuccess);
  bus_.deliver();
  ASSERT_EQ(issued_.size(), 5u);
  EXPECT_EQ(tagged.tag, issued_[0].op_id);
  EXPECT_EQ(filled.tag, issued_[1].op_id);
  EXPECT_EQ(own.tag, 77u);
  EXPECT_EQ(broken.tag, 0u);
  EXPECT_FALSE(last_seen("ncclSend").configured);
  destroy(comm);
}

TEST_F(OperationIdsTest, OneIsAttachedAtATimeAndAfterItNothingIsHeard) {
  attach();
  TestBus other;
  const auto second = nccl::Calls::attach(other);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Error::Code::conflict);
  auto* const comm = made("dp:0");
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  calls_.detach();
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 1u);
  destroy(comm);
  attach();
  auto* const next = made("dp:1");
  EXPECT_EQ(all_reduce(next), ncclSuccess);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 2u);
  destroy(next);
}

TEST_F(OperationIdsTest, AGroupThatIsLargerThanTheTableLosesItsEndsAndSaysSo) {
  attach();
  auto* const comm = made("dp:0");
  fake_nccl::fake_nccl_quiet(true);
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  for (int i = 0; i < 4100; ++i) EXPECT_EQ(all_reduce(comm), ncclSuccess);
  EXPECT_EQ(nccl::GroupEnd(), ncclSuccess);
  fake_nccl::fake_nccl_quiet(false);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 4100u);
  EXPECT_EQ(failed_.size(), 4u);
  for (const Failed& one : failed_) EXPECT_EQ(one.how, How::unknown);
  EXPECT_EQ(open(), 0u);
  destroy(comm);
}

TEST_F(OperationIdsTest, AForkedChildCallsNcclAndTellsNobody) {
  attach();
  auto* const comm = made("dp:0");
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool went = all_reduce(comm) == ncclSuccess && nccl::GroupStart() == ncclSuccess &&
                      all_reduce(comm) == ncclSuccess && nccl::GroupEnd() == ncclSuccess &&
                      nccl::CommDestroy(comm) == ncclSuccess;
    TestBus own;
    const auto refused = nccl::Calls::attach(own);
    calls_.detach();
    std::_Exit(went && !refused && fake_nccl_seen("ncclAllReduce") == 3 ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(all_reduce(comm), ncclSuccess);
  bus_.deliver();
  EXPECT_EQ(issued_.size(), 2u);
  destroy(comm);
}

}  // namespace
}  // namespace ringmain::tests
