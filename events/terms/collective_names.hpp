// What is an operation called that ranks do together? One word for each, from every source.
//
// MPI, NCCL and PyTorch have words of their own for the same: MPI_Allgather, AllGather,
// _allgather_base. The table has them beside ours. A source writes ours, or has what it read of
// others turned into them. A name that the table does not have stays, and is counted.
//
// How the words were chosen:
// - One word for what ranks give and get, however their memory is laid out: _base, _single and
//   _into_tensor are the same operation. With counts of its own for each rank it is another one:
//   _v; with types of their own, _w. Where one spelling serves both it has the word without: of
//   alltoall_base only the sizes say. MPI_Reduce_scatter has counts, MPI_Reduce_scatter_block none.
// - _coalesced is several operations of one kind that are issued as one. It has a word of its own:
//   the end of one all-reduce among its parts is not its end. "coalesced" alone is of any kinds:
//   c10d's group, torchcomms' batch.
// - A barrier stays one where it is made of an all-reduce. What is sparse, or out of place, is too.
// - split, new_window and finalize move no data, but all ranks of a group do them together and wait
//   there for each other, so they are operations, by torchcomms' words.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "../../bus/text.hpp"

namespace ringmain::collective {

/// What does the work: words for the field `backend`.
inline constexpr std::string_view kGloo = "gloo";
inline constexpr std::string_view kMpi = "mpi";
inline constexpr std::string_view kNccl = "nccl";

/// A word for the field `op`, and how others spell it, with a space between; in any case.
struct OperationWord {
  std::string_view name;
  bool rooted = false;  // the field `peer` is the root
  // PyTorch 2.13 to 2.15: HookOpName, OpType, its dispatcher's c10d:: and _c10d_functional::, whose
  // last _ is not written here, torch.distributed.
  std::string_view c10d{};
  std::string_view torchcomms{};  // OpName
  std::string_view nccl{};        // after nccl: functions, kernels, the profiler plugin's `func`
  std::string_view mpi{};         // after MPI_
  std::string_view kineto{};      // PyTorch's profiler and flight recorder: after nccl: or gloo:
};

/// Sorted by name.
[[gnu::visibility("hidden")]] inline constexpr OperationWord kOperations[] = {
    {.name = "all_gather",
     .c10d = "allgather _allgather_base allgather_base all_gather_into_tensor "
             "all_gather_into_tensor_out",
     .torchcomms = "all_gather all_gather_single",
     .nccl = "AllGather",
     .mpi = "Allgather Iallgather",
     .kineto = "all_gather allgather _all_gather_base _allgather_base"},
    {.name = "all_gather_coalesced",
     .c10d = "allgather_coalesced allgather_into_tensor_coalesced all_gather_into_tensor_coalesced",
     .kineto =
         "ALLGATHER_coalesced allgather_into_tensor_coalesced all_gather_into_tensor_coalesced"},
    {.name = "all_gather_v",
     .torchcomms = "all_gather_v",
     .nccl = "AllGatherV",
     .mpi = "Allgatherv Iallgatherv",
     .kineto = "all_gather_v"},
    {.name = "all_reduce",
     .c10d = "allreduce _allreduce_sparse all_reduce",
     .torchcomms = "all_reduce",
     .nccl = "AllReduce",
     .mpi = "Allreduce Iallreduce",
     .kineto = "all_reduce allreduce sparse_all_reduce all_reduce_sparse allreduce_sparse"},
    {.name = "all_reduce_coalesced",
     .c10d = "allreduce_coalesced all_reduce_coalesced",
     .kineto = "allreduce_coalesced"},
    {.name = "all_to_all",
     .c10d = "alltoall alltoall_base all_to_all_single",
     .torchcomms = "all_to_all all_to_all_single",
     .nccl = "AlltoAll AllToAllPivot",
     .mpi = "Alltoall Ialltoall",
     .kineto = "all_to_all alltoall alltoall_base"},
    {.name = "all_to_all_v",
     .torchcomms = "all_to_all_v_single",
     .nccl = "AllToAllv",
     .mpi = "Alltoallv Ialltoallv",
     .kineto = "all_to_allv"},
    {.name = "all_to_all_w", .mpi = "Alltoallw Ialltoallw"},
    {.name = "barrier",
     .c10d = "barrier monitored_barrier",
     .torchcomms = "barrier",
     .mpi = "Barrier Ibarrier",
     .kineto = "barrier all_reduce_barrier monitored_barrier"},
    {.name = "broadcast",
     .rooted = true,
     .c10d = "broadcast",
     .torchcomms = "broadcast",
     .nccl = "Broadcast Bcast",
     .mpi = "Bcast Ibcast",
     .kineto = "broadcast _broadcast_oop"},
    {.name = "coalesced",
     .c10d = "coalesced batch_isend_irecv batch_p2p_ops",
     .torchcomms = "batch_op_issue",
     .kineto = "coalesced"},
    {.name = "exclusive_scan", .mpi = "Exscan Iexscan"},
    {.name = "finalize", .torchcomms = "finalize", .nccl = "CommFinalize"},
    {.name = "gather",
     .rooted = true,
     .c10d = "gather",
     .torchcomms = "gather gather_single",
     .nccl = "Gather",
     .mpi = "Gather Igather",
     .kineto = "gather"},
    {.name = "gather_v", .rooted = true, .mpi = "Gatherv Igatherv"},
    {.name = "neighbor_all_gather", .mpi = "Neighbor_allgather Ineighbor_allgather"},
    {.name = "neighbor_all_gather_v", .mpi = "Neighbor_allgatherv Ineighbor_allgatherv"},
    {.name = "neighbor_all_to_all", .mpi = "Neighbor_alltoall Ineighbor_alltoall"},
    {.name = "neighbor_all_to_all_v", .mpi = "Neighbor_alltoallv Ineighbor_alltoallv"},
    {.name = "neighbor_all_to_all_w", .mpi = "Neighbor_alltoallw Ineighbor_alltoallw"},
    {.name = "new_window",
     .c10d = "new_window",
     .torchcomms = "new_window",
     .nccl = "CommWindowRegister",
     .kineto = "new_window"},
    {.name = "put_signal", .nccl = "PutSignal"},
    {.name = "recv",
     .c10d = "recv recvanysource recv_any_source irecv",
     .torchcomms = "recv",
     .nccl = "Recv",
     .mpi = "Recv Irecv Mrecv Imrecv Recv_init",
     .kineto = "recv recvAnySource"},
    {.name = "reduce",
     .rooted = true,
     .c10d = "reduce",
     .torchcomms = "reduce",
     .nccl = "Reduce",
     .mpi = "Reduce Ireduce",
     .kineto = "reduce _reduce_oop"},
    {.name = "reduce_scatter",
     .c10d = "reduce_scatter _reduce_scatter_base reduce_scatter_base reduce_scatter_tensor "
             "reduce_scatter_tensor_out",
     .torchcomms = "reduce_scatter reduce_scatter_single",
     .nccl = "ReduceScatter",
     .mpi = "Reduce_scatter_block Ireduce_scatter_block",
     .kineto = "reduce_scatter _reduce_scatter_base"},
    {.name = "reduce_scatter_coalesced",
     .c10d = "reduce_scatter_tensor_coalesced",
     .kineto = "REDUCE_SCATTER_coalesced reduce_scatter_tensor_coalesced"},
    {.name = "reduce_scatter_v",
     .torchcomms = "reduce_scatter_v",
     .mpi = "Reduce_scatter Ireduce_scatter",
     .kineto = "reduce_scatter_v"},
    {.name = "scan", .mpi = "Scan Iscan"},
    {.name = "scatter",
     .rooted = true,
     .c10d = "scatter",
     .torchcomms = "scatter",
     .nccl = "Scatter",
     .mpi = "Scatter Iscatter",
     .kineto = "scatter"},
    {.name = "scatter_v", .rooted = true, .mpi = "Scatterv Iscatterv"},
    {.name = "send",
     .c10d = "send isend",
     .torchcomms = "send",
     .nccl = "Send",
     .mpi = "Send Bsend Ssend Rsend Isend Ibsend Issend Irsend Send_init Bsend_init Ssend_init "
            "Rsend_init",
     .kineto = "send"},
    {.name = "send_recv", .nccl = "SendRecv", .mpi = "Sendrecv Sendrecv_replace"},
    {.name = "signal", .nccl = "Signal"},
    {.name = "split",
     .c10d = "split",
     .torchcomms = "split",
     .nccl = "CommSplit",
     .kineto = "split"},
    {.name = "wait_signal", .nccl = "WaitSignal"},
};

/// The table's row; nullptr: it has none of that name.
constexpr const OperationWord* find_operation(std::string_view name) noexcept {
  const auto* const found = std::lower_bound(
      std::begin(kOperations), std::end(kOperations), name,
      [](const OperationWord& one, std::string_view wanted) { return one.name < wanted; });
  return found != std::end(kOperations) && found->name == name ? found : nullptr;
}

/// Whose words?
enum class Dialect : std::uint8_t { c10d, torchcomms, nccl, mpi, kineto };

/// A row's spellings in that dialect.
constexpr std::string_view spellings(const OperationWord& word, Dialect dialect) noexcept {
  switch (dialect) {
    case Dialect::c10d:
      return word.c10d;
    case Dialect::torchcomms:
      return word.torchcomms;
    case Dialect::nccl:
      return word.nccl;
    case Dialect::mpi:
      return word.mpi;
    case Dialect::kineto:
      return word.kineto;
  }
  return {};
}

namespace detail {

static_assert(std::adjacent_find(std::begin(kOperations), std::end(kOperations),
                                 [](const OperationWord& a, const OperationWord& b) {
                                   return !(a.name < b.name);
                                 }) == std::end(kOperations));

void the_table_of_operations_has_no_such_word();  // never called: it ends a constant expression

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool same_in_any_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// Takes the first one off the front of a row's spellings; "" at their end.
constexpr std::string_view next_spelling(std::string_view& spellings) noexcept {
  const std::string_view one = spellings.substr(0, spellings.find(' '));
  spellings.remove_prefix(std::min(one.size() + 1, spellings.size()));
  return one;
}

}  // namespace detail

/// The row for what a dialect calls so, without its prefix: "Iallreduce" of MPI; nullptr: none.
/// Goes through the whole table: operation_name() is quicker.
constexpr const OperationWord* find_spelling(Dialect dialect, std::string_view text) noexcept {
  for (const OperationWord& word : kOperations) {
    std::string_view all = spellings(word, dialect);
    while (!all.empty()) {
      if (detail::same_in_any_case(detail::next_spelling(all), text)) return &word;
    }
  }
  return nullptr;
}

/// A word that a source writes down in its code. One that the table does not have is not compiled.
consteval std::string_view operation(std::string_view name) {
  const OperationWord* const found = find_operation(name);
  if (found == nullptr) detail::the_table_of_operations_has_no_such_word();
  return found->name;
}
/// The same, by a dialect's spelling.
consteval std::string_view operation(Dialect dialect, std::string_view text) {
  const OperationWord* const found = find_spelling(dialect, text);
  if (found == nullptr) detail::the_table_of_operations_has_no_such_word();
  return found->name;
}

constexpr bool is_rooted(std::string_view op) noexcept {
  const OperationWord* const found = find_operation(op);
  return found != nullptr && found->rooted;
}

/// The word for what any of them calls "allreduce_", "nccl:_all_gather_base", "recv 0<-1",
/// "ncclAllReduce" or "MPI_Allreduce"; a prefix with colons and what follows a space do not count.
/// nullptr: nobody does. Threads: any. Progress: wait-free.
[[nodiscard]] const OperationWord* find_spelling(std::string_view spelling) noexcept;

/// Its name. What is not known stays as it is, in lower case, and is counted. Threads: any.
/// Progress: that of making a Name, for which nothing is allocated where the word was used before.
[[nodiscard]] Name operation_name(std::string_view spelling) noexcept;

/// How often operation_name() met a name that is not in the table, in this process.
[[nodiscard]] std::uint64_t unknown_operations() noexcept;

/// True for NCCL's kernels, in any case.
[[nodiscard]] constexpr bool is_nccl_kernel(std::string_view kernel) noexcept {
  return detail::same_in_any_case(kernel.substr(0, kNccl.size()), kNccl);
}

/// The operation in an NCCL kernel's name: ncclDevKernel_AllReduce_Sum_f32_RING_LL → all_reduce;
/// Name{} when the name does not say. Otherwise as operation_name().
[[nodiscard]] Name operation_of_nccl_kernel(std::string_view kernel) noexcept;

}  // namespace ringmain::collective
