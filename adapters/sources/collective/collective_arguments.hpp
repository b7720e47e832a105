// With what is an operation called for? A struct for each of the 22 operations of torchcomms, and
// one for every other.
//
// They hold views: tensors, lists and names of the caller's, which are good until issue() has
// returned. Hooks read them there; what is published is copied.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "../../../bus/text.hpp"

#include "../../../events/collective.hpp"

namespace ringmain::collective {

/// A tensor of the caller's.
struct Tensor {
  const void* data = nullptr;             // its first element; nullptr: not said
  std::span<const std::int64_t> sizes{};  // empty: one element
  Name dtype{};                           // "float32"
  std::uint64_t bytes = 0;
  std::int32_t device = kNoDevice;
  const void* object = nullptr;  // what it is in the caller's own language; hooks of it know

  /// Elements: the product of its sizes.
  [[nodiscard]] constexpr std::uint64_t elements() const noexcept {
    std::uint64_t all = 1;
    for (const std::int64_t size : sizes) all *= static_cast<std::uint64_t>(size);
    return all;
  }
};
using Tensors = std::span<const Tensor>;

enum class ReduceOp : std::uint8_t {
  sum,
  avg,
  product,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor,
  premul_sum,  // of what each rank has multiplied before
  other
};
[[nodiscard]] std::string_view to_string(ReduceOp op) noexcept;

struct Send {
  Tensor tensor{};
  std::int32_t peer = kNoRank;
  bool async_op = false;
};
struct Recv : Send {};
struct Broadcast {
  Tensor tensor{};
  std::int32_t root = kNoRank;
  bool async_op = false;
};
struct AllReduce {
  Tensor tensor{};
  ReduceOp op = ReduceOp::sum;
  bool async_op = false;
};
struct Reduce {
  Tensor tensor{};
  std::int32_t root = kNoRank;
  ReduceOp op = ReduceOp::sum;
  bool async_op = false;
};
struct AllGather {
  Tensor input{};
  Tensors output{};
  bool async_op = false;
};
struct AllGatherV : AllGather {};
struct AllGatherSingle {
  Tensor input{}, output{};
  bool async_op = false;
};
struct ReduceScatter {
  Tensors input{};
  Tensor output{};
  ReduceOp op = ReduceOp::sum;
  bool async_op = false;
};
struct ReduceScatterV : ReduceScatter {};
struct ReduceScatterSingle {
  Tensor input{}, output{};
  ReduceOp op = ReduceOp::sum;
  bool async_op = false;
};
struct AllToAllSingle {
  Tensor input{}, output{};
  bool async_op = false;
};
struct AllToAllVSingle {
  Tensor input{}, output{};
  std::span<const std::uint64_t> input_split_sizes{}, output_split_sizes{};
  bool async_op = false;
};
struct AllToAll {
  Tensors input{}, output{};
  bool async_op = false;
};
struct Barrier {
  bool async_op = false;
};
struct Scatter {
  Tensor output{};
  Tensors input{};  // at the root; elsewhere empty
  std::int32_t root = kNoRank;
  bool async_op = false;
};
struct Gather {
  Tensor input{};
  Tensors output{};  // at the root; elsewhere empty
  std::int32_t root = kNoRank;
  bool async_op = false;
};
struct GatherSingle {
  Tensor input{}, output{};
  std::int32_t root = kNoRank;
  bool async_op = false;
};
struct Split {
  std::span<const int> ranks{};  // of the new group, in this one
  std::string_view name{};
};
struct NewWindow {};
/// A send or a receive within a batch.
struct BatchPart {
  Tensor tensor{};
  std::int32_t peer = kNoRank;
  bool sends = false;
};
struct BatchOpIssue {
  std::uint64_t num_ops = 0;
  bool async_op = false;
  std::span<const BatchPart> parts{};  // in the caller's order; empty: not known
};
struct Finalize {};
/// An operation that has no struct above.
struct Other {
  std::string_view op{};  // its name, in whose words it may be: "exclusive_scan"
  Tensors input{}, output{};
  std::int32_t peer = kNoRank;  // the other rank, or the root
  ReduceOp reduce = ReduceOp::other;
  bool point_to_point = false;
  bool async_op = false;
};

using Arguments = std::variant<Send, Recv, Broadcast, AllReduce, Reduce, AllGather, AllGatherV,
                               AllGatherSingle, ReduceScatter, ReduceScatterV, ReduceScatterSingle,
                               AllToAllSingle, AllToAllVSingle, AllToAll, Barrier, Scatter, Gather,
                               GatherSingle, Split, NewWindow, BatchOpIssue, Finalize, Other>;

/// torchcomms' names of its operations, in the order of Arguments.
enum class OpName : std::uint8_t {
  send,
  recv,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  all_gather_v,
  all_gather_single,
  reduce_scatter,
  reduce_scatter_v,
  reduce_scatter_single,
  all_to_all_single,
  all_to_all_v_single,
  all_to_all,
  barrier,
  scatter,
  gather,
  gather_single,
  split,
  new_window,
  batch_op_issue,
  finalize,
  other
};
constexpr std::size_t kOpNames = 22;  // without `other`
static_assert(std::variant_size_v<Arguments> == kOpNames + 1);

[[nodiscard]] constexpr OpName op_name(const Arguments& arguments) noexcept {
  return static_cast<OpName>(arguments.index());
}
/// As is_collective(), of the seldom ones.
[[nodiscard]] bool is_other_collective(const Arguments& arguments) noexcept;
/// Is it one that all ranks call, in the same order? Not what is from one rank to another, and not
/// what moves no data.
[[nodiscard]] constexpr bool is_collective(const Arguments& arguments) noexcept {
  constexpr auto bit = [](OpName op) { return 1u << static_cast<unsigned>(op); };
  constexpr unsigned kOthers = bit(OpName::send) | bit(OpName::recv) | bit(OpName::split) |
                               bit(OpName::new_window) | bit(OpName::batch_op_issue) |
                               bit(OpName::finalize) | bit(OpName::other);
  if ((kOthers >> arguments.index() & 1u) == 0) [[likely]]
    return true;
  return is_other_collective(arguments);
}
/// Is it from one rank to another, or a batch of such?
[[nodiscard]] bool is_point_to_point(const Arguments& arguments) noexcept;
/// torchcomms' word: "all_gather_single".
[[nodiscard]] std::string_view to_string(OpName op) noexcept;

/// What all of Arguments have in common: for who does not care which it is.
struct ArgumentsView {
  Tensors input{}, output{};
  std::int32_t peer = kNoRank;  // the other rank, or the root
  ReduceOp reduce = ReduceOp::other;
  bool reduces = false;
  bool point_to_point = false;
  bool lifecycle = false;  // split, new_window, finalize: no data moves
  bool async_op = false;
};
/// It points into `arguments`.
[[nodiscard]] ArgumentsView view_of(const Arguments& arguments) noexcept;

}  // namespace ringmain::collective
