#include "adapters/sources/collective/loopback_plan.hpp"

#include <limits>
#include <numeric>
#include <utility>

namespace ringmain::collective::loopback::detail {
namespace {

std::string quoted(Name name) {
  return "'" + std::string(name.view()) + "'";
}

class Planner {
 public:
  Planner(OpName op, std::int32_t rank, std::int32_t size) : rank_(rank), size_(size) {
    made.plan.op = op;
  }

  void operator()(const Send& a) {
    if (!is_rank("peer", a.peer)) return;
    made.plan.gives = {Piece{}, piece(a.tensor)};
    made.plan.takes.resize(2);
  }
  void operator()(const Recv& a) {
    if (!is_rank("peer", a.peer)) return;
    made.plan.gives.resize(2);
    made.plan.takes = {piece(a.tensor), Piece{}};
  }
  void operator()(const Broadcast& a) {
    if (!rooted(a.root)) return;
    const Piece all = piece(a.tensor);
    if (rank_ == a.root) made.plan.gives.assign(places(), all);
    made.plan.takes[place(a.root)] = all;
  }
  void operator()(const AllReduce& a) {
    const Piece all = piece(a.tensor);
    made.plan.gives.assign(places(), all);
    reduces(a.op, all);
  }
  void operator()(const Reduce& a) {
    if (!rooted(a.root)) return;
    const Piece all = piece(a.tensor);
    made.plan.gives[place(a.root)] = all;
    reduces(a.op, all);
    if (rank_ != a.root) made.plan.takes.clear();
  }
  void operator()(const AllGather& a) { gathers(a, true); }
  void operator()(const AllGatherV& a) { gathers(a, false); }
  void operator()(const AllGatherSingle& a) {
    made.plan.uniform = true;
    made.plan.gives.assign(places(), piece(a.input));
    made.plan.takes = shared(a.output, "output");
  }
  void operator()(const ReduceScatter& a) { scatters_reduced(a, true); }
  void operator()(const ReduceScatterV& a) { scatters_reduced(a, false); }
  void operator()(const ReduceScatterSingle& a) {
    made.plan.gives = shared(a.input, "input");
    reduces(a.op, piece(a.output));
  }
  void operator()(const AllToAll& a) {
    made.plan.gives = each(a.input, "input");
    made.plan.takes = each(a.output, "output");
  }
  void operator()(const AllToAllSingle& a) {
    made.plan.uniform = true;
    made.plan.gives = shared(a.input, "input");
    made.plan.takes = shared(a.output, "output");
  }
  void operator()(const AllToAllVSingle& a) {
    made.plan.gives = rows(a.input, a.input_split_sizes, "input");
    made.plan.takes = rows(a.output, a.output_split_sizes, "output");
  }
  void operator()(const Barrier&) { nothing(); }
  void operator()(const Scatter& a) {
    if (!rooted(a.root)) return;
    made.plan.uniform = true;
    if (rank_ == a.root) made.plan.gives = each(a.input, "input");
    made.plan.takes[place(a.root)] = piece(a.output);
  }
  void operator()(const Gather& a) {
    if (!rooted(a.root)) return;
    made.plan.uniform = true;
    made.plan.gives[place(a.root)] = piece(a.input);
    if (rank_ == a.root) made.plan.takes = each(a.output, "output");
  }
  void operator()(const GatherSingle& a) {
    if (!rooted(a.root)) return;
    made.plan.uniform = true;
    made.plan.gives[place(a.root)] = piece(a.input);
    if (rank_ == a.root) made.plan.takes = shared(a.output, "output");
  }
  void operator()(const Split& a) {
    nothing();
    made.plan.members.assign(a.ranks.begin(), a.ranks.end());
    made.plan.part_name = a.name;
    if (a.ranks.empty()) return;
    bool here = false;
    for (const int member : a.ranks) {
      if (!is_rank("a member", member)) return;
      here = here || member == rank_;
    }
    if (!here) fault("the ranks do not hold this one; name its own part, or none");
    if (a.name.empty()) fault("the part has no name; give one");
  }
  template <class Another>
  void operator()(const Another&) {
    nothing();  // new_window, whose memory its arguments do not carry; others have no meeting
  }
  void window(const Tensor& memory) {
    nothing();
    made.plan.window = piece(memory);
  }

  Planned made;

 private:
  [[nodiscard]] std::size_t places() const { return static_cast<std::size_t>(size_); }
  static std::size_t place(std::int32_t rank) { return static_cast<std::size_t>(rank); }
  /// The first that is wrong is said.
  void fault(std::string what) {
    if (made.fault.empty()) made.fault = std::move(what);
  }
  void nothing() {
    made.plan.gives.resize(places());
    made.plan.takes.resize(places());
  }
  bool is_rank(const char* what, std::int32_t rank) {
    if (0 <= rank && rank < size_) return true;
    fault(std::string(what) + " is " + std::to_string(rank) + ", and the group has ranks 0 to " +
          std::to_string(size_ - 1));
    return false;
  }
  bool rooted(std::int32_t root) {
    nothing();
    made.plan.root = root;
    return is_rank("root", root);
  }
  void reduces(ReduceOp by, Piece to) {
    made.plan.reduces = true;
    made.plan.reduce = by;
    made.plan.takes = {to};
    auto wrong = fault_of(made.plan.type, made.plan.dtype.view(), by);
    if (!wrong.empty()) fault(std::move(wrong));
  }
  template <class Gather>
  void gathers(const Gather& a, bool uniform) {
    made.plan.uniform = uniform;
    made.plan.gives.assign(places(), piece(a.input));
    made.plan.takes = each(a.output, "output");
  }
  template <class Scattered>
  void scatters_reduced(const Scattered& a, bool uniform) {
    made.plan.uniform = uniform;
    made.plan.gives = each(a.input, "input");
    reduces(a.op, piece(a.output));
  }

  std::vector<Piece> each(Tensors tensors, const char* which) {
    if (tensors.size() != places()) {
      fault(std::to_string(tensors.size()) + " tensors of " + which + " for " +
            std::to_string(size_) + " ranks; give one for each");
      return std::vector<Piece>(places());
    }
    std::vector<Piece> all;
    for (const Tensor& one : tensors) all.push_back(piece(one));
    return all;
  }
  /// The tensor in equal parts, in the order of ranks.
  std::vector<Piece> shared(const Tensor& tensor, const char* which) {
    const Piece whole = piece(tensor);
    if (whole.elements % places() != 0) {
      fault(std::string(which) + " has " + std::to_string(whole.elements) + " elements, which " +
            std::to_string(size_) + " ranks cannot share; give a multiple");
    }
    return cut(whole, std::vector<std::uint64_t>(places(), whole.elements / places()));
  }
  /// As many rows for each rank as `splits` says.
  std::vector<Piece> rows(const Tensor& tensor, std::span<const std::uint64_t> splits,
                          const char* which) {
    const Piece whole = piece(tensor);
    const std::uint64_t all = tensor.sizes.empty() ? 1 : rows_of(tensor);
    std::uint64_t wanted = 0;
    bool fits = splits.size() == places();
    for (const std::uint64_t split : splits) {
      fits = fits && split <= all - wanted;
      wanted += split;
    }
    if (!fits || wanted != all) {
      fault(std::string(which) + " has " + std::to_string(all) +
            " rows, and its split sizes do not share them among " + std::to_string(size_) +
            " ranks; give one for each rank, which add up to the rows");
      return std::vector<Piece>(places());
    }
    const std::uint64_t width = all == 0 ? 0 : whole.elements / all;
    std::vector<std::uint64_t> elements;
    for (const std::uint64_t split : splits) elements.push_back(split * width);
    return cut(whole, elements);
  }
  static std::uint64_t rows_of(const Tensor& tensor) {
    return static_cast<std::uint64_t>(tensor.sizes.front());
  }
  [[nodiscard]] std::vector<Piece> cut(Piece whole, const std::vector<std::uint64_t>& elements) {
    std::vector<Piece> all;
    std::byte* at = whole.data;
    for (const std::uint64_t one : elements) {
      all.push_back({at, one});
      if (at != nullptr) at += one * made.plan.element_bytes;
    }
    return all;
  }

  /// Its elements, where its sizes are sizes.
  std::optional<std::uint64_t> elements_of(const Tensor& tensor) {
    std::uint64_t all = 1;
    for (const std::int64_t size : tensor.sizes) {
      if (size < 0) return std::nullopt;
      if (size == 0) return 0;
    }
    for (const std::int64_t size : tensor.sizes) {
      const auto many = static_cast<std::uint64_t>(size);
      if (all > std::numeric_limits<std::uint64_t>::max() / 16 / many) return std::nullopt;
      all *= many;
    }
    return all;
  }
  Piece piece(const Tensor& tensor) {
    const auto elements = elements_of(tensor);
    if (!elements) return fault("a tensor's sizes are none; give sizes from 0"), Piece{};
    const ElementType* const type = find_type(tensor.dtype.view());
    const std::uint64_t bytes = type != nullptr  ? type->bytes
                                : *elements == 0 ? 1
                                                 : tensor.bytes / *elements;
    if (*elements * bytes != tensor.bytes) {
      fault(std::to_string(*elements) + " elements of " + quoted(tensor.dtype) + " are not " +
            std::to_string(tensor.bytes) + " bytes; give Tensor::bytes as they are");
    }
    if (tensor.data == nullptr && *elements != 0)
      fault("a tensor of " + std::to_string(*elements) + " elements has no data; give its memory");
    Plan& plan = made.plan;
    if (!seen_) {
      seen_ = true;
      plan.dtype = tensor.dtype;
      plan.type = type;
    } else if (plan.dtype != tensor.dtype) {
      fault("its tensors are of " + quoted(plan.dtype) + " and of " + quoted(tensor.dtype) +
            "; give one type");
    }
    if (*elements != 0 && type == nullptr && plan.element_bytes != 0 && plan.element_bytes != bytes)
      fault("its tensors of " + quoted(tensor.dtype) + " have elements of two sizes; give one");
    if (*elements != 0 || type != nullptr) plan.element_bytes = bytes;
    // What is an output is the caller's to be written; Tensor is const as hooks must not write.
    return {const_cast<std::byte*>(static_cast<const std::byte*>(tensor.data)), *elements};
  }

  const std::int32_t rank_, size_;
  bool seen_ = false;
};

}  // namespace

Planned plan_of(const Arguments& arguments, std::int32_t rank, std::int32_t size) {
  Planner planner(op_name(arguments), rank, size);
  std::visit([&planner](const auto& a) { planner(a); }, arguments);
  return std::move(planner.made);
}

Planned plan_of_window(const Tensor& memory, std::int32_t size) {
  Planner planner(OpName::new_window, 0, size);
  planner.window(memory);
  return std::move(planner.made);
}

}  // namespace ringmain::collective::loopback::detail
