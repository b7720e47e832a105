// Does each operation have one word, whoever speaks of it?
#include "events/terms/collective_names.hpp"

#include <initializer_list>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ringmain::collective {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

std::string_view word(std::string_view spelling) {
  const OperationWord* const found = find_spelling(spelling);
  return found == nullptr ? "" : found->name;
}
void expect_words(std::initializer_list<Pair> all, std::string_view before = "") {
  for (const auto& [spelling, op] : all) EXPECT_EQ(word(std::string(before) += spelling), op);
}
std::vector<std::string> spelled(const OperationWord& one, Dialect dialect) {
  std::istringstream all{std::string(spellings(one, dialect))};
  return {std::istream_iterator<std::string>(all), {}};
}

constexpr Dialect kDialects[] = {Dialect::c10d, Dialect::torchcomms, Dialect::nccl, Dialect::mpi,
                                 Dialect::kineto};

TEST(CollectiveNamesTest, EverySpellingOfTheTableLeadsToItsWord) {
  for (const OperationWord& one : kOperations) {
    for (const Dialect dialect : kDialects) {
      for (const std::string& text : spelled(one, dialect)) {
        EXPECT_EQ(find_spelling(dialect, text), &one) << text;
        EXPECT_EQ(operation_name(dialect == Dialect::mpi ? "MPI_" + text : text).view(), one.name);
      }
    }
  }
}

TEST(CollectiveNamesTest, ADialectHasNoSpellingTwice) {
  for (const Dialect dialect : kDialects) {
    std::set<std::string> seen;
    for (const OperationWord& one : kOperations) {
      for (std::string text : spelled(one, dialect)) {
        for (char& c : text) c = detail::lower(c);
        EXPECT_TRUE(seen.insert(text).second) << text;
      }
    }
  }
}

TEST(CollectiveNamesTest, Torchcomms22OperationsHaveWords) {
  expect_words({{"send", "send"},
                {"recv", "recv"},
                {"broadcast", "broadcast"},
                {"all_reduce", "all_reduce"},
                {"reduce", "reduce"},
                {"all_gather", "all_gather"},
                {"all_gather_v", "all_gather_v"},
                {"all_gather_single", "all_gather"},
                {"reduce_scatter", "reduce_scatter"},
                {"reduce_scatter_v", "reduce_scatter_v"},
                {"reduce_scatter_single", "reduce_scatter"},
                {"all_to_all_single", "all_to_all"},
                {"all_to_all_v_single", "all_to_all_v"},
                {"all_to_all", "all_to_all"},
                {"barrier", "barrier"},
                {"scatter", "scatter"},
                {"gather", "gather"},
                {"gather_single", "gather"},
                {"split", "split"},
                {"new_window", "new_window"},
                {"batch_op_issue", "coalesced"},
                {"finalize", "finalize"}});
}

// HookOpName of 2.15, but for UNKNOWN.
TEST(CollectiveNamesTest, PyTorchsHooksNamesHaveWords) {
  expect_words({{"SEND", "send"},
                {"RECV", "recv"},
                {"BROADCAST", "broadcast"},
                {"ALLREDUCE", "all_reduce"},
                {"REDUCE", "reduce"},
                {"ALLGATHER", "all_gather"},
                {"REDUCE_SCATTER", "reduce_scatter"},
                {"ALLTOALL", "all_to_all"},
                {"BARRIER", "barrier"},
                {"SCATTER", "scatter"},
                {"GATHER", "gather"},
                {"SPLIT", "split"},
                {"NEW_WINDOW", "new_window"},
                {"ALLREDUCE_COALESCED", "all_reduce_coalesced"},
                {"ALLGATHER_BASE", "all_gather"},
                {"ALLGATHER_COALESCED", "all_gather_coalesced"},
                {"ALLGATHER_INTO_TENSOR_COALESCED", "all_gather_coalesced"},
                {"REDUCE_SCATTER_BASE", "reduce_scatter"},
                {"REDUCE_SCATTER_TENSOR_COALESCED", "reduce_scatter_coalesced"},
                {"ALLTOALL_BASE", "all_to_all"}});
  EXPECT_EQ(word("UNKNOWN"), "");
}

// All of 2.13's c10d:: that are operations of ranks, and what functional collectives add.
TEST(CollectiveNamesTest, PyTorchsDispatchersNamesHaveWords) {
  expect_words({{"allreduce_", "all_reduce"},
                {"allreduce_coalesced_", "all_reduce_coalesced"},
                {"allgather_", "all_gather"},
                {"_allgather_base_", "all_gather"},
                {"allgather_coalesced_", "all_gather_coalesced"},
                {"allgather_into_tensor_coalesced_", "all_gather_coalesced"},
                {"reduce_scatter_", "reduce_scatter"},
                {"_reduce_scatter_base_", "reduce_scatter"},
                {"reduce_scatter_tensor_coalesced_", "reduce_scatter_coalesced"},
                {"alltoall_", "all_to_all"},
                {"alltoall_base_", "all_to_all"},
                {"barrier", "barrier"},
                {"monitored_barrier_", "barrier"},
                {"broadcast_", "broadcast"},
                {"reduce_", "reduce"},
                {"gather_", "gather"},
                {"scatter_", "scatter"},
                {"send", "send"},
                {"recv_", "recv"},
                {"recv_any_source_", "recv"}},
               "c10d::");
  expect_words({{"all_gather_into_tensor", "all_gather"},
                {"all_gather_into_tensor_out", "all_gather"},
                {"all_gather_into_tensor_coalesced", "all_gather_coalesced"},
                {"reduce_scatter_tensor", "reduce_scatter"},
                {"reduce_scatter_tensor_out", "reduce_scatter"},
                {"all_reduce_", "all_reduce"},
                {"all_reduce_coalesced_", "all_reduce_coalesced"},
                {"all_to_all_single", "all_to_all"},
                {"batch_p2p_ops", "coalesced"},
                {"isend", "send"},
                {"irecv", "recv"}},
               "_c10d_functional::");
}

TEST(CollectiveNamesTest, PyTorchsRecordersAndProfilersNamesHaveWords) {
  expect_words({{"gloo:all_gather", "all_gather"},
                {"gloo:all_to_all", "all_to_all"},
                {"gloo:recvAnySource", "recv"},
                {"gloo:sparse_all_reduce", "all_reduce"},
                {"nccl:_all_gather_base", "all_gather"},
                {"nccl:_reduce_oop", "reduce"},
                {"nccl:_broadcast_oop", "broadcast"},
                {"nccl:all_reduce_barrier", "barrier"},
                {"nccl:ALLGATHER_coalesced", "all_gather_coalesced"},
                {"nccl:REDUCE_SCATTER_coalesced", "reduce_scatter_coalesced"},
                {"nccl:coalesced", "coalesced"},
                {"nccl:send 0->1", "send"},
                {"nccl:recv 1<-0", "recv"},
                {"all_to_allv", "all_to_all_v"},
                {"_allgather_base", "all_gather"}});
}

TEST(CollectiveNamesTest, NcclsFunctionsAndItsPluginsWordsAreTheSame) {
  const std::initializer_list<Pair> all = {{"AllGather", "all_gather"},
                                           {"AllGatherV", "all_gather_v"},
                                           {"AllReduce", "all_reduce"},
                                           {"AlltoAll", "all_to_all"},
                                           {"Broadcast", "broadcast"},
                                           {"Bcast", "broadcast"},
                                           {"Gather", "gather"},
                                           {"Recv", "recv"},
                                           {"Reduce", "reduce"},
                                           {"ReduceScatter", "reduce_scatter"},
                                           {"Scatter", "scatter"},
                                           {"Send", "send"},
                                           {"PutSignal", "put_signal"},
                                           {"Signal", "signal"},
                                           {"WaitSignal", "wait_signal"},
                                           {"CommSplit", "split"},
                                           {"CommWindowRegister", "new_window"}};
  expect_words(all);
  expect_words(all, "nccl");
  expect_words(all, "pnccl");
}

// What others call reduce_scatter is MPI's Reduce_scatter_block.
TEST(CollectiveNamesTest, MpisReduceScatterHasCountsForEachRank) {
  EXPECT_EQ(word("MPI_Reduce_scatter"), "reduce_scatter_v");
  EXPECT_EQ(word("PMPI_Ireduce_scatter_block"), "reduce_scatter");
  EXPECT_EQ(word("mpi_reduce_scatter"), "reduce_scatter_v");
  EXPECT_EQ(word("Reduce_scatter"), "reduce_scatter");
  EXPECT_EQ(word("Iallreduce"), "") << "without MPI_ it is nobody's";
}

TEST(CollectiveNamesTest, ANameThatNobodyKnowsStaysAndIsCounted) {
  const std::uint64_t before = unknown_operations();
  EXPECT_EQ(operation_name("AllToAllDynamic").view(), "all_to_all_dynamic");
  EXPECT_EQ(operation_name("gloo:_my_op_").view(), "my_op");
  EXPECT_EQ(operation_name("all_reduces").view(), "all_reduces");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_Other_RING_LL").view(), "other");
  EXPECT_EQ(unknown_operations() - before, 4u);
}

TEST(CollectiveNamesTest, NeitherKnownNamesNorNoneAreCounted) {
  const std::uint64_t before = unknown_operations();
  EXPECT_EQ(operation_name("_all_gather_base").view(), "all_gather");
  EXPECT_EQ(operation_name("").view(), "");
  EXPECT_EQ(operation_name("___").view(), "");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_Generic_4").view(), "");
  EXPECT_EQ(find_spelling("nobody's"), nullptr);
  EXPECT_EQ(unknown_operations(), before);
}

// Otherwise a source that reads another one's text and one that writes down the word would differ.
TEST(CollectiveNamesTest, AWordOfTheTableStaysAsItIs) {
  for (const OperationWord& one : kOperations) EXPECT_EQ(word(one.name), one.name);
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
  EXPECT_EQ(operation_of_nccl_kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)").view(),
            "all_reduce");
  EXPECT_EQ(operation_of_nccl_kernel("ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32").view(),
            "all_reduce");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_SendRecv(ncclDevComm*)").view(), "send_recv");
  EXPECT_EQ(operation_of_nccl_kernel("ncclDevKernel_Generic_4").view(), "");
  EXPECT_EQ(operation_of_nccl_kernel("nccl").view(), "");
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
