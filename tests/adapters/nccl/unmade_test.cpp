// What does a communicator leave that NCCL could not make? And what leads from NCCL's handle to the
// communicator that hooks hang on?
#include "tests/adapters/nccl/wrapper_fixture.hpp"

namespace ringmain::tests {
namespace {

using fake_nccl::fake_nccl_fail;
using nccl::ncclSuccess;

class UnmadeTest : public OperationsTest {
 protected:
  UnmadeTest() { attach(); }
  /// The one that is said to have failed.
  collective::Failed failed(const char* group, int result) {
    bus_.deliver();
    EXPECT_EQ(issued_.size(), 1u);
    EXPECT_EQ(failed_.size(), 1u);
    if (issued_.size() != 1 || failed_.size() != 1) return {};
    EXPECT_EQ(issued_[0].op.view(), "init");
    EXPECT_NE(issued_[0].op_id, 0u);
    EXPECT_EQ(failed_[0].op_id, issued_[0].op_id);
    EXPECT_EQ(failed_[0].op.view(), "init");
    EXPECT_EQ(failed_[0].group.view(), group);
    EXPECT_EQ(failed_[0].backend.view(), "nccl");
    EXPECT_EQ(failed_[0].result, result);
    EXPECT_EQ(failed_[0].how, collective::How::error);
    EXPECT_EQ(calls_.figures().unmade, 1u);
    EXPECT_EQ(open(), 0u);
    return failed_[0];
  }
};

TEST_F(UnmadeTest, OneThatCannotBeMadeIsAFailedOperation) {
  fake_nccl_fail("ncclCommInitRankConfig", 1);
  nccl::ncclComm_t comm = nullptr;
  nccl::ncclConfig_t config;
  config.commName = "dp:0";
  EXPECT_EQ(nccl::CommInitRankConfig(&comm, 2, {}, 1, &config), nccl::ncclUnhandledCudaError);
  const auto said = failed("dp:0", 1);
  EXPECT_EQ(said.rank, 1);
  EXPECT_EQ(said.group_size, 2);
  EXPECT_EQ(said.reason.view(), "unhandled cuda error");
  EXPECT_FALSE(nccl::communicator_of(comm));
}

TEST_F(UnmadeTest, OneThatItsGroupCannotMakeHasFailed) {
  nccl::ncclComm_t comm = nullptr;
  nccl::ncclConfig_t config;
  config.commName = "dp:0";
  EXPECT_EQ(nccl::GroupStart(), ncclSuccess);
  EXPECT_EQ(nccl::CommInitRankConfig(&comm, 2, {}, 0, &config), ncclSuccess);
  fake_nccl_fail("ncclGroupEnd", 2);
  EXPECT_EQ(static_cast<int>(nccl::GroupEnd()), 2);
  (void)failed("dp:0", 2);
  EXPECT_EQ(nccl::CommDestroy(comm), ncclSuccess);
}

TEST_F(UnmadeTest, OneThatNcclGivesUpLaterHasFailedOnce) {
  auto* const comm = made("pp", 0, 2, false);
  (void)settled(comm, 6);
  (void)settled(comm, 6);
  (void)failed("pp", 6);
  destroy(comm);
}

TEST_F(UnmadeTest, AHandleLeadsToWhatHooksHangOn) {
  auto* const comm = made("dp:0");
  EXPECT_EQ(nccl::communicator_of(comm).name(), Name("dp:0"));
  EXPECT_FALSE(nccl::communicator_of(nullptr));
  destroy(comm);
  calls_.detach();
  auto* const before = made("pp");  // nobody was told of it
  EXPECT_FALSE(nccl::communicator_of(before));
  attach();
  EXPECT_EQ(nccl::communicator_of(before).size(), 4);  // NCCL was asked
  destroy(before);
}

}  // namespace
}  // namespace ringmain::tests
