#include "adapters/sources/nccl/nccl_shapes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "events/terms/collective_names.hpp"

namespace ringmain::nccl::detail {
namespace {

struct TypeRow {
  std::string_view name;  // as PyTorch's
  std::uint64_t bytes;
};
constexpr TypeRow kTypes[] = {{"int8", 1},     {"uint8", 1},         {"int32", 4},
                              {"uint32", 4},   {"int64", 8},         {"uint64", 8},
                              {"float16", 2},  {"float32", 4},       {"float64", 8},
                              {"bfloat16", 2}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1}};
constexpr std::size_t kTypeCount = std::size(kTypes);

/// A twin is called as the operation itself is.
constexpr Function plain_of(Function which) noexcept {
  const auto at = static_cast<unsigned>(which);
  return which < Function::Bcast ? static_cast<Function>(at & ~1U) : which;
}
static_assert(plain_of(Function::AllReduceConfig) == Function::AllReduce);
static_assert(plain_of(Function::ScatterConfig) == Function::Scatter);

// Made when the library is loaded: see communicator_issue.cpp.
const auto type_names = [] {
  std::array<Name, kTypeCount> all;
  for (std::size_t i = 0; i < kTypeCount; ++i) all[i] = Name(kTypes[i].name);
  return all;
}();
const auto op_names = [] {
  std::array<Name, static_cast<std::size_t>(Function::GroupStart)> all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto plain = static_cast<std::size_t>(plain_of(static_cast<Function>(i)));
    const std::string_view symbol = kFunctionRows[plain].symbol;
    const auto* const word = collective::find_spelling(collective::Dialect::nccl, symbol.substr(4));
    all[i] = word == nullptr ? Name(symbol) : Name(word->name);
  }
  return all;
}();

collective::ReduceOp reduction(int op) noexcept {
  using collective::ReduceOp;
  constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min,
                               ReduceOp::avg};
  return op >= 0 && op < 5 ? kOps[op] : ReduceOp::other;
}

}  // namespace

Shape::Shape(Function which, const StreamCall& asked, const collective::Communicator& comm,
             std::int32_t device) noexcept
    : which_(plain_of(which)), asked_(asked), device_(device) {
  const auto n = static_cast<std::int64_t>(asked.count);
  // What overflows NCCL refuses, but it is asked after the hooks.
  const auto all = [&] {
    return static_cast<std::int64_t>(asked.count * static_cast<std::uint64_t>(comm.size()));
  };
  const auto is_root = [&] { return asked.peer == comm.rank(); };
  switch (which_) {
    case Function::AllReduce:
      gives_ = gets_ = n;
      break;
    case Function::AlltoAll:
      gives_ = gets_ = all();
      break;
    case Function::AllGather:
      gives_ = n, gets_ = all();
      break;
    case Function::ReduceScatter:
      gives_ = all(), gets_ = n;
      break;
    case Function::Broadcast:
    case Function::Bcast:
      gives_ = is_root() ? n : 0, gets_ = n;
      break;
    case Function::Reduce:
      gives_ = n, gets_ = is_root() ? n : 0;
      break;
    case Function::Gather:
      gives_ = n, gets_ = is_root() ? all() : 0;
      break;
    case Function::Scatter:
      gives_ = is_root() ? all() : 0, gets_ = n;
      break;
    case Function::Recv:
      gets_ = n;
      break;
    default:  // Send, PutSignal; signals move nothing
      gives_ = n;
      break;
  }
  if (asked.datatype < 0 || asked.datatype >= static_cast<int>(kTypeCount)) return;
  dtype_ = type_names[static_cast<std::size_t>(asked.datatype)];
  element_bytes_ = kTypes[static_cast<std::size_t>(asked.datatype)].bytes;
}

void Shape::describe_tensors() noexcept {
  const auto describe = [this](collective::Tensor& tensor, const void* data,
                               const std::int64_t& elements) {
    tensor.data = data;
    tensor.sizes = {&elements, 1};
    tensor.device = device_;
    tensor.dtype = dtype_;
    tensor.bytes = static_cast<std::uint64_t>(elements) * element_bytes_;
  };
  describe(in_, asked_.sent, gives_);
  describe(out_, asked_.received, gets_);
}

collective::Arguments Shape::arguments() const noexcept {
  using namespace collective;
  const auto reduces = reduction(asked_.reduction);
  switch (which_) {
    case Function::AllReduce:
      return AllReduce{in_, reduces, true};
    case Function::Broadcast:
    case Function::Bcast:
      return Broadcast{gives_ != 0 ? in_ : out_, asked_.peer, true};
    case Function::Reduce:
      return Reduce{in_, asked_.peer, reduces, true};
    case Function::AllGather:
      return AllGatherSingle{in_, out_, true};
    case Function::ReduceScatter:
      return ReduceScatterSingle{in_, out_, reduces, true};
    case Function::AlltoAll:
      return AllToAllSingle{in_, out_, true};
    case Function::Gather:
      return GatherSingle{in_, out_, asked_.peer, true};
    case Function::Scatter:
      return Scatter{out_, ins(), asked_.peer, true};
    case Function::Send:
      return Send{in_, asked_.peer, true};
    case Function::Recv:
      return Recv{{out_, asked_.peer, true}};
    default:
      return Other{op_names[static_cast<std::size_t>(which_)].view(),
                   ins(),
                   outs(),
                   asked_.peer,
                   ReduceOp::other,
                   true,
                   true};
  }
}

collective::Issued Shape::issued(const void* stream) const noexcept {
  collective::Issued said;
  said.in_elements = static_cast<std::uint64_t>(gives_);
  said.out_elements = static_cast<std::uint64_t>(gets_);
  said.bytes = std::max(said.in_elements, said.out_elements) * element_bytes_;
  said.stream = reinterpret_cast<std::uintptr_t>(stream);
  said.op = op_names[static_cast<std::size_t>(which_)];
  said.dtype = dtype_;
  said.peer = asked_.peer;
  said.device = device_;
  said.asynchronous = true;
  return said;
}

}  // namespace ringmain::nccl::detail
