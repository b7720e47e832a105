// Does each operation have one word, whoever speaks of it?
#include "events/terms/collective_names.hpp"

#include <gtest/gtest.h>

namespace ringmain::collective {
namespace {

TEST(CollectiveNamesTest, OneOperationHasOneName) {
  EXPECT_EQ(operation_name("allreduce"), "all_reduce");
  EXPECT_EQ(operation_name("AllReduce"), "all_reduce");
  EXPECT_EQ(operation_name("all_reduce"), "all_reduce");
  EXPECT_EQ(operation_name("_allgather_base"), "all_gather");
  EXPECT_EQ(operation_name("_all_gather_base"), "all_gather");
  EXPECT_EQ(operation_name("_reduce_scatter_base"), "reduce_scatter");
  EXPECT_EQ(operation_name("all_to_allv"), "all_to_allv");
  EXPECT_EQ(operation_name("SendRecv"), "send_recv");
  EXPECT_EQ(operation_name(""), "");
  EXPECT_EQ(operation_name("___"), "");
}

// Otherwise a source that reads another one's text and one that writes down the word would differ.
TEST(CollectiveNamesTest, AWordOfTheTableStaysAsItIs) {
  for (const OperationWord& one : kOperations) EXPECT_EQ(operation_name(one.name), one.name);
}

TEST(CollectiveNamesTest, RootedAreThoseWhereOneRankGivesOrGets) {
  EXPECT_TRUE(is_rooted("broadcast"));
  EXPECT_TRUE(is_rooted("gather"));
  EXPECT_TRUE(is_rooted("scatter_v"));
  EXPECT_FALSE(is_rooted("all_gather"));
  EXPECT_FALSE(is_rooted("send"));
  EXPECT_FALSE(is_rooted("broadcasts"));
  EXPECT_FALSE(is_rooted(""));
}

TEST(CollectiveNamesTest, ANcclKernelSaysItsOperation) {
  EXPECT_EQ(operation_of_nccl_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
            "all_reduce");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_SendRecv(ncclDevComm*)"), "send_recv");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_Generic_4"), "");
  EXPECT_EQ(operation_of_nccl_kernel("nccl"), "");
}

TEST(CollectiveNamesTest, NcclKernelsAreKnownByTheirFirstLettersInAnyCase) {
  EXPECT_TRUE(is_nccl_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL"));
  EXPECT_TRUE(is_nccl_kernel("NCCL"));
  EXPECT_FALSE(is_nccl_kernel("ncc"));
  EXPECT_FALSE(is_nccl_kernel(""));
  EXPECT_FALSE(is_nccl_kernel("my_nccl_kernel"));
}

}  // namespace
}  // namespace ringmain::collective
