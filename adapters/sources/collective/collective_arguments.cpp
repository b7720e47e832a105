#include "adapters/sources/collective/collective_arguments.hpp"

#include <iterator>

namespace ringmain::collective {
namespace {

constexpr std::string_view kReduceOps[] = {"sum",     "avg",    "product", "min",        "max",
                                           "bit_and", "bit_or", "bit_xor", "premul_sum", "other"};
constexpr std::string_view kOps[] = {"send",
                                     "recv",
                                     "broadcast",
                                     "all_reduce",
                                     "reduce",
                                     "all_gather",
                                     "all_gather_v",
                                     "all_gather_single",
                                     "reduce_scatter",
                                     "reduce_scatter_v",
                                     "reduce_scatter_single",
                                     "all_to_all_single",
                                     "all_to_all_v_single",
                                     "all_to_all",
                                     "barrier",
                                     "scatter",
                                     "gather",
                                     "gather_single",
                                     "split",
                                     "new_window",
                                     "batch_op_issue",
                                     "finalize",
                                     "other"};
static_assert(std::size(kOps) == kOpNames + 1);

Tensors one(const Tensor& tensor) noexcept {
  return {&tensor, 1};
}

struct View {
  ArgumentsView& v;

  void operator()(const Send& a) noexcept {
    v.input = one(a.tensor);
    to(a);
  }
  void operator()(const Recv& a) noexcept {
    v.output = one(a.tensor);
    to(a);
  }
  void operator()(const Broadcast& a) noexcept {
    both(a.tensor);
    v.peer = a.root;
  }
  void operator()(const AllReduce& a) noexcept {
    both(a.tensor);
    reduced(a.op);
  }
  void operator()(const Reduce& a) noexcept {
    both(a.tensor);
    v.peer = a.root;
    reduced(a.op);
  }
  void operator()(const AllGather& a) noexcept {
    v.input = one(a.input);
    v.output = a.output;
  }
  template <class Single>  // one tensor in and one out
  requires requires(const Single& a) {
    { a.input } -> std::same_as<const Tensor&>;
    { a.output } -> std::same_as<const Tensor&>;
  }
  void operator()(const Single& a) noexcept {
    v.input = one(a.input);
    v.output = one(a.output);
    if constexpr (requires { a.op; }) reduced(a.op);
    if constexpr (requires { a.root; }) v.peer = a.root;
  }
  void operator()(const ReduceScatter& a) noexcept {
    v.input = a.input;
    v.output = one(a.output);
    reduced(a.op);
  }
  void operator()(const AllToAll& a) noexcept {
    v.input = a.input;
    v.output = a.output;
  }
  void operator()(const Barrier&) noexcept {}
  void operator()(const Scatter& a) noexcept {
    v.input = a.input;
    v.output = one(a.output);
    v.peer = a.root;
  }
  void operator()(const Gather& a) noexcept {
    v.input = one(a.input);
    v.output = a.output;
    v.peer = a.root;
  }
  void operator()(const Split&) noexcept { v.lifecycle = true; }
  void operator()(const NewWindow&) noexcept { v.lifecycle = true; }
  void operator()(const Finalize&) noexcept { v.lifecycle = true; }
  void operator()(const BatchOpIssue&) noexcept { v.point_to_point = true; }
  void operator()(const Other& a) noexcept {
    v.input = a.input;
    v.output = a.output;
    v.peer = a.peer;
    v.point_to_point = a.point_to_point;
    reduced(a.reduce);
  }

 private:
  // Each from its value: a copy of the one would wait until both halves of it are stored.
  void both(const Tensor& tensor) noexcept {
    v.input = one(tensor);
    v.output = one(tensor);
  }
  void to(const Send& a) noexcept {
    v.peer = a.peer;
    v.point_to_point = true;
  }
  void reduced(ReduceOp op) noexcept {
    v.reduce = op;
    v.reduces = true;
  }
};

}  // namespace

std::string_view to_string(ReduceOp op) noexcept {
  const auto at = static_cast<std::size_t>(op);
  return at < std::size(kReduceOps) ? kReduceOps[at] : "other";
}

std::string_view to_string(OpName op) noexcept {
  const auto at = static_cast<std::size_t>(op);
  return at < std::size(kOps) ? kOps[at] : "other";
}

bool is_other_collective(const Arguments& arguments) noexcept {
  const auto* const other = std::get_if<Other>(&arguments);
  return other != nullptr && !other->point_to_point;
}

bool is_point_to_point(const Arguments& arguments) noexcept {
  const OpName op = op_name(arguments);
  if (op == OpName::send || op == OpName::recv || op == OpName::batch_op_issue) return true;
  const auto* const other = std::get_if<Other>(&arguments);
  return other != nullptr && other->point_to_point;
}

ArgumentsView view_of(const Arguments& arguments) noexcept {
  ArgumentsView view;
  std::visit(
      [&view](const auto& a) {
        View{view}(a);
        if constexpr (requires { a.async_op; }) view.async_op = a.async_op;
      },
      arguments);
  return view;
}

}  // namespace ringmain::collective
