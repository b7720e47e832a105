// How do a C caller's arguments become the struct of their operation, and that an argument of C's
// hooks again?
#include <algorithm>
#include <cstring>
#include <string_view>

#include "events/terms/collective_names.hpp"

#include "adapters/sources/collective/collective_c.hpp"

namespace ringmain::collective::c {
namespace {

using ringmain::c::same;

static_assert(number_of(OpName::send) == RINGMAIN_OP_SEND &&
              number_of(OpName::recv) == RINGMAIN_OP_RECV &&
              number_of(OpName::broadcast) == RINGMAIN_OP_BROADCAST &&
              number_of(OpName::all_reduce) == RINGMAIN_OP_ALL_REDUCE &&
              number_of(OpName::reduce) == RINGMAIN_OP_REDUCE &&
              number_of(OpName::all_gather) == RINGMAIN_OP_ALL_GATHER &&
              number_of(OpName::all_gather_v) == RINGMAIN_OP_ALL_GATHER_V &&
              number_of(OpName::all_gather_single) == RINGMAIN_OP_ALL_GATHER_SINGLE &&
              number_of(OpName::reduce_scatter) == RINGMAIN_OP_REDUCE_SCATTER &&
              number_of(OpName::reduce_scatter_v) == RINGMAIN_OP_REDUCE_SCATTER_V &&
              number_of(OpName::reduce_scatter_single) == RINGMAIN_OP_REDUCE_SCATTER_SINGLE &&
              number_of(OpName::all_to_all_single) == RINGMAIN_OP_ALL_TO_ALL_SINGLE &&
              number_of(OpName::all_to_all_v_single) == RINGMAIN_OP_ALL_TO_ALL_V_SINGLE &&
              number_of(OpName::all_to_all) == RINGMAIN_OP_ALL_TO_ALL &&
              number_of(OpName::barrier) == RINGMAIN_OP_BARRIER &&
              number_of(OpName::scatter) == RINGMAIN_OP_SCATTER &&
              number_of(OpName::gather) == RINGMAIN_OP_GATHER &&
              number_of(OpName::gather_single) == RINGMAIN_OP_GATHER_SINGLE &&
              number_of(OpName::split) == RINGMAIN_OP_SPLIT &&
              number_of(OpName::new_window) == RINGMAIN_OP_NEW_WINDOW &&
              number_of(OpName::batch_op_issue) == RINGMAIN_OP_BATCH_OP_ISSUE &&
              number_of(OpName::finalize) == RINGMAIN_OP_FINALIZE);
static_assert(same(RINGMAIN_REDUCE_SUM, ReduceOp::sum) &&
              same(RINGMAIN_REDUCE_AVG, ReduceOp::avg) &&
              same(RINGMAIN_REDUCE_PRODUCT, ReduceOp::product) &&
              same(RINGMAIN_REDUCE_MIN, ReduceOp::min) &&
              same(RINGMAIN_REDUCE_MAX, ReduceOp::max) &&
              same(RINGMAIN_REDUCE_BIT_AND, ReduceOp::bit_and) &&
              same(RINGMAIN_REDUCE_BIT_OR, ReduceOp::bit_or) &&
              same(RINGMAIN_REDUCE_BIT_XOR, ReduceOp::bit_xor) &&
              same(RINGMAIN_REDUCE_PREMUL_SUM, ReduceOp::premul_sum) &&
              same(RINGMAIN_REDUCE_OTHER, ReduceOp::other));
static_assert(sizeof(int) == sizeof(std::int32_t));

ringmain_code wrong(const std::string& what, std::uint64_t value, const char* mend) {
  return fail(RINGMAIN_REFUSED,
              "ringmain_arguments." + what + " is " + std::to_string(value) + "; " + mend);
}
ringmain_code missing(const std::string& what, std::uint64_t count) {
  return fail(RINGMAIN_REFUSED, "ringmain_arguments." + what + " is NULL and should lead to " +
                                    std::to_string(count) + "; give them, or no number of them");
}

/// One of the caller's, whose struct may have another length than this library's.
ringmain_code read_tensor(const char* which, std::uint32_t number, const void* at,
                          std::uint32_t tensor_bytes, Tensor& to) {
  ringmain_tensor given;
  const auto* const from = static_cast<const unsigned char*>(at);
  const std::string who = which + ("[" + std::to_string(number)) + "]";
  for (std::size_t i = sizeof given; i < tensor_bytes; ++i) {
    if (from[i] != 0) {
      return fail(RINGMAIN_REFUSED, "ringmain_arguments." + who +
                                        " has a member that this ringmain does not know; leave it "
                                        "0, or use a newer ringmain");
    }
  }
  std::memcpy(&given, at, sizeof given);
  if (given.dimensions != 0 && given.sizes == nullptr)
    return missing(who + ".sizes", given.dimensions);
  to = {given.data,           {given.sizes, given.dimensions},
        name_of(given.dtype), given.data_bytes,
        given.device,         given.object};
  if (std::any_of(to.sizes.begin(), to.sizes.end(), [](std::int64_t size) { return size < 0; })) {
    return fail(RINGMAIN_REFUSED,
                "ringmain_arguments." + who +
                    ".sizes has one below 0; give the elements of each dimension");
  }
  return RINGMAIN_OK;
}

ringmain_code read_tensors(const char* which, const ringmain_tensor* given, std::uint32_t count,
                           std::uint32_t tensor_bytes, ShortList<Tensor>& room, Tensors& to) {
  if (count == 0) return RINGMAIN_OK;
  if (given == nullptr) return missing(which, count);
  if (tensor_bytes < sizeof(ringmain_tensor) || tensor_bytes > ringmain::c::kStructBytesMax)
    return wrong("tensor_bytes", tensor_bytes, "set it to sizeof(ringmain_tensor)");
  Tensor* const all = room.make(count);
  const auto* at = reinterpret_cast<const unsigned char*>(given);
  for (std::uint32_t i = 0; i < count; ++i, at += tensor_bytes) {
    if (const auto code = read_tensor(which, i, at, tensor_bytes, all[i])) return code;
  }
  to = {all, count};
  return RINGMAIN_OK;
}

/// The number of torchcomms' operation that the word means; OpName::other: none.
OpName op_of_word(std::string_view word) noexcept {
  const auto is_it = [](std::string_view text) {
    std::size_t i = 0;
    while (i < kOpNames && to_string(static_cast<OpName>(i)) != text) ++i;
    return static_cast<OpName>(i);
  };
  if (const OpName op = is_it(word); op != OpName::other) return op;
  const OperationWord* const known = find_spelling(word);
  return known == nullptr ? OpName::other : is_it(known->name);
}

/// What all operations are made from.
struct Given {
  const ringmain_arguments& a;
  Tensors in, out;
  [[nodiscard]] bool async() const noexcept { return a.async_op != 0; }
  [[nodiscard]] ReduceOp reduce() const noexcept { return static_cast<ReduceOp>(a.reduce); }
  [[nodiscard]] bool none() const noexcept { return in.empty() && out.empty(); }
  [[nodiscard]] bool one_each() const noexcept { return in.size() == 1 && out.size() == 1; }
  /// The tensor of an operation that has its result where its input was; nullptr: it is not so.
  [[nodiscard]] const Tensor* in_place() const noexcept {
    if (in.size() + out.size() == 1) return in.empty() ? &out.front() : &in.front();
    const bool same_memory = one_each() && in.front().data != nullptr &&
                             in.front().data == out.front().data &&
                             in.front().bytes == out.front().bytes;
    return same_memory ? &in.front() : nullptr;
  }
};

Tensor no_elements() noexcept {
  static constexpr std::int64_t kNone[] = {0};
  Tensor tensor;
  tensor.sizes = kNone;
  return tensor;
}

template <class List>  // a list on one side
std::optional<Arguments> gathered(const Given& g) {
  if (g.in.size() != 1) return {};
  List list{};
  list.input = g.in.front();
  list.output = g.out;
  list.async_op = g.async();
  return list;
}
template <class List>
std::optional<Arguments> scattered(const Given& g) {
  if (g.out.size() != 1) return {};
  List list{};
  list.input = g.in;
  list.output = g.out.front();
  list.op = g.reduce();
  list.async_op = g.async();
  return list;
}

/// Nothing: the tensors do not fit.
std::optional<Arguments> data_moved(OpName op, const Given& g) {
  const Tensor* const alone = g.in_place();
  switch (op) {
    case OpName::broadcast:
      if (alone == nullptr) return {};
      return Broadcast{*alone, g.a.peer, g.async()};
    case OpName::all_reduce:
      if (alone == nullptr) return {};
      return AllReduce{*alone, g.reduce(), g.async()};
    case OpName::reduce:
      if (alone == nullptr) return {};
      return Reduce{*alone, g.a.peer, g.reduce(), g.async()};
    case OpName::all_gather:
      return gathered<AllGather>(g);
    case OpName::all_gather_v:
      return gathered<AllGatherV>(g);
    case OpName::reduce_scatter:
      return scattered<ReduceScatter>(g);
    case OpName::reduce_scatter_v:
      return scattered<ReduceScatterV>(g);
    case OpName::all_to_all:
      return AllToAll{g.in, g.out, g.async()};
    case OpName::scatter:
      if (g.out.size() != 1) return {};
      return Scatter{g.out.front(), g.in, g.a.peer, g.async()};
    case OpName::gather:
      if (g.in.size() != 1) return {};
      return Gather{g.in.front(), g.out, g.a.peer, g.async()};
    case OpName::gather_single:  // elsewhere than at the root nothing comes out
      if (g.in.size() != 1 || g.out.size() > 1) return {};
      return GatherSingle{g.in.front(), g.out.empty() ? no_elements() : g.out.front(), g.a.peer,
                          g.async()};
    default:
      break;
  }
  if (!g.one_each()) return {};
  const Tensor &in = g.in.front(), &out = g.out.front();
  switch (op) {
    case OpName::all_gather_single:
      return AllGatherSingle{in, out, g.async()};
    case OpName::reduce_scatter_single:
      return ReduceScatterSingle{in, out, g.reduce(), g.async()};
    case OpName::all_to_all_single:
      return AllToAllSingle{in, out, g.async()};
    case OpName::all_to_all_v_single: {
      const auto sizes = [&g](const std::uint64_t* of) {
        return std::span(of, of == nullptr ? 0 : g.a.splits);
      };
      return AllToAllVSingle{in, out, sizes(g.a.in_split), sizes(g.a.out_split), g.async()};
    }
    default:
      return {};
  }
}

std::optional<Arguments> typed(OpName op, const Given& g) {
  switch (op) {
    case OpName::send:
      if (g.in.size() != 1 || !g.out.empty()) return {};
      return Send{g.in.front(), g.a.peer, g.async()};
    case OpName::recv:
      if (!g.in.empty() || g.out.size() != 1) return {};
      return Recv{{g.out.front(), g.a.peer, g.async()}};
    case OpName::barrier:
      if (!g.none()) return {};
      return Barrier{g.async()};
    case OpName::split:
      if (!g.none()) return {};
      return Split{{g.a.ranks, g.a.ranks_count}, g.a.new_group == nullptr ? "" : g.a.new_group};
    case OpName::new_window:
      if (!g.none()) return {};
      return NewWindow{};
    case OpName::batch_op_issue:
      if (!g.none()) return {};
      return BatchOpIssue{g.a.operations, g.async()};
    case OpName::finalize:
      if (!g.none()) return {};
      return Finalize{};
    default:
      return data_moved(op, g);
  }
}

ringmain_code check(const ringmain_arguments& a) {
  const bool has_word = a.word != nullptr && *a.word != '\0';
  if (a.op > RINGMAIN_OP_FINALIZE)
    return wrong("op", a.op, "use RINGMAIN_OP_SEND … RINGMAIN_OP_FINALIZE, or RINGMAIN_OP_OTHER");
  if (a.op == RINGMAIN_OP_OTHER && !has_word)
    return fail(RINGMAIN_REFUSED,
                "ringmain_arguments has neither op nor word; say which operation it is");
  if (a.op != RINGMAIN_OP_OTHER && has_word)
    return fail(RINGMAIN_REFUSED, "ringmain_arguments has op and word; set one of them");
  if (a.reduce > RINGMAIN_REDUCE_OTHER)
    return wrong("reduce", a.reduce, "use RINGMAIN_REDUCE_SUM … RINGMAIN_REDUCE_OTHER");
  if (a.peer < RINGMAIN_NO_RANK)
    return fail(RINGMAIN_REFUSED, "ringmain_arguments.peer is " + std::to_string(a.peer) +
                                      "; give a rank, or RINGMAIN_NO_RANK");
  if (a.ranks_count != 0 && a.ranks == nullptr) return missing("ranks", a.ranks_count);
  return RINGMAIN_OK;
}

}  // namespace

ringmain_code ArgumentsOf::read(const ringmain_arguments* given) {
  if (given == nullptr)
    return fail(RINGMAIN_REFUSED, "arguments is NULL; say which operation is called for");
  ringmain_arguments a;
  if (const auto code = read_struct(given, "ringmain_arguments", a)) return code;
  if (const auto code = check(a)) return code;
  Tensors in, out;
  if (const auto code = read_tensors("input", a.input, a.inputs, a.tensor_bytes, in_, in))
    return code;
  if (const auto code = read_tensors("output", a.output, a.outputs, a.tensor_bytes, out_, out))
    return code;
  const OpName op = a.op == RINGMAIN_OP_OTHER ? op_of_word(a.word) : static_cast<OpName>(a.op - 1);
  const Given all{a, in, out};
  if (op != OpName::other) {
    if (auto fits = typed(op, all)) {
      arguments = *fits;
      return RINGMAIN_OK;
    }
  }
  const std::string_view word = a.word != nullptr && *a.word != '\0' ? a.word : to_string(op);
  const bool between_two = op == OpName::send || op == OpName::recv || op == OpName::batch_op_issue;
  arguments =
      Other{word, in, out, a.peer, all.reduce(), a.point_to_point != 0 || between_two, all.async()};
  return RINGMAIN_OK;
}

namespace {

/// What only some operations have, beside ArgumentsView.
struct Rest {
  ringmain_arguments& to;
  std::string& new_group;
  void operator()(const AllToAllVSingle& a) const noexcept {
    // Both have one size for each rank; where only one is said, that many.
    to.splits = static_cast<std::uint32_t>(
        std::max(a.input_split_sizes.size(), a.output_split_sizes.size()));
    if (a.input_split_sizes.size() == to.splits) to.in_split = a.input_split_sizes.data();
    if (a.output_split_sizes.size() == to.splits) to.out_split = a.output_split_sizes.data();
  }
  void operator()(const Split& a) const {
    to.ranks = a.ranks.data();
    to.ranks_count = static_cast<std::uint32_t>(a.ranks.size());
    new_group = a.name;
    to.new_group = new_group.c_str();
  }
  void operator()(const BatchOpIssue& a) const noexcept {
    to.operations = static_cast<std::uint32_t>(a.num_ops);
  }
  template <class Any>
  void operator()(const Any&) const noexcept {}
};

const ringmain_tensor* show(Tensors of, ShortList<ringmain_tensor>& room) {
  if (of.empty()) return nullptr;
  ringmain_tensor* const all = room.make(of.size());
  std::transform(of.begin(), of.end(), all, [](const Tensor& t) {
    return ringmain_tensor{
        t.data,       t.sizes.data(), t.bytes, t.object, static_cast<std::uint32_t>(t.sizes.size()),
        t.dtype.id(), t.device,       0};
  });
  return all;
}

}  // namespace

ArgumentsShown::ArgumentsShown(const Arguments& of) {
  const ArgumentsView view = view_of(of);
  shown.bytes = sizeof shown;
  shown.op = number_of(op_name(of));
  shown.input = show(view.input, in_);
  shown.output = show(view.output, out_);
  shown.inputs = static_cast<std::uint32_t>(view.input.size());
  shown.outputs = static_cast<std::uint32_t>(view.output.size());
  shown.tensor_bytes = sizeof(ringmain_tensor);
  shown.peer = view.peer;
  shown.reduce = static_cast<std::uint32_t>(view.reduce);
  shown.async_op = view.async_op ? 1 : 0;
  shown.point_to_point = view.point_to_point ? 1 : 0;
  std::visit(Rest{shown, new_group_}, of);
}

}  // namespace ringmain::collective::c
