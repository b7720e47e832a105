// How do torchcomms' arguments of an operation become ours, and ours torchcomms'?
//
// By name: its AllReducePreHookArgs is our AllReduce, and a field is taken where both have it. So
// these are templates over torchcomms' types that need none of its headers, and revisions of it
// that have fewer operations, or one more, fit too.
#pragma once
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "collective_arguments.hpp"
#include "torchcomms_calls.hpp"

namespace ringmain::collective::torchcomms {

/// A tensor of torchcomms', at::Tensor, as ours. It points to that one, and has what can be found
/// out: one without memory has no `data`.
template <class T>
Tensor tensor_of(const T& theirs) noexcept {
  Tensor shown;
  shown.object = &theirs;
  try {
    const auto sizes = theirs.sizes();  // a view
    shown.sizes = {sizes.data(), sizes.size()};
    if constexpr (requires { toString(theirs.scalar_type()); })
      shown.dtype = dtype_of(toString(theirs.scalar_type()));
    shown.bytes = static_cast<std::uint64_t>(theirs.nbytes());
    shown.device = static_cast<std::int32_t>(theirs.get_device());
    shown.data = theirs.const_data_ptr();  // last: it throws where there is no memory
  } catch (...) {
    // What is not there is not said.
  }
  return shown;
}

/// A reduction of torchcomms', ReduceOp, as ours.
template <class T>
ReduceOp reduce_op_of(const T& theirs) noexcept {
  using Type = std::remove_cvref_t<decltype(theirs.type())>;
  switch (theirs.type()) {
    case Type::SUM:
      return ReduceOp::sum;
    case Type::AVG:
      return ReduceOp::avg;
    case Type::PRODUCT:
      return ReduceOp::product;
    case Type::MIN:
      return ReduceOp::min;
    case Type::MAX:
      return ReduceOp::max;
    case Type::BAND:
      return ReduceOp::bit_and;
    case Type::BOR:
      return ReduceOp::bit_or;
    case Type::BXOR:
      return ReduceOp::bit_xor;
    case Type::PREMUL_SUM:
      return ReduceOp::premul_sum;
  }
  return ReduceOp::other;
}

namespace detail {

/// The name of a type, without its namespace: "AllReducePreHookArgs".
template <class T>
constexpr std::string_view name_of() {
  const std::string_view all = __PRETTY_FUNCTION__;  // … [with T = torch::comms::X; …]
  const std::size_t begin = all.find("T = ") + 4;
  const std::string_view name = all.substr(begin, all.find_first_of(";]", begin) - begin);
  return name.substr(name.rfind(':') + 1);
}

// Variables, so that a compiler that runs these functions step by step runs each once.
template <class T>
inline constexpr std::string_view kNameOf = name_of<T>();

inline constexpr std::string_view kPre = "PreHookArgs", kPost = "PostHookArgs";
constexpr std::size_t kNone = std::variant_npos;

template <std::size_t I>
using OursAt = std::variant_alternative_t<I, Arguments>;

/// Where Arguments has the operation of that struct; kNone: nowhere.
template <class Theirs, const std::string_view& kSuffix>
inline constexpr std::size_t kOursFor = [] {
  std::string_view name = kNameOf<Theirs>;
  if (!name.ends_with(kSuffix)) return kNone;
  name.remove_suffix(kSuffix.size());
  std::size_t found = kNone;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((name == kNameOf<OursAt<I>> ? void(found = I) : void()), ...);
  }
  (std::make_index_sequence<kOpNames>());
  return found;
}();
/// Where a variant of torchcomms' has the operation at `kOurs` of ours; kNone: nowhere.
template <class Variant, std::size_t kOurs, const std::string_view& kSuffix>
inline constexpr std::size_t kTheirsFor = []<std::size_t... I>(std::index_sequence<I...>) {
  std::size_t found = kNone;
  ((kOursFor<std::variant_alternative_t<I, Variant>, kSuffix> == kOurs ? void(found = I) : void()),
   ...);
  return found;
}
(std::make_index_sequence<std::variant_size_v<Variant>>());

/// "WindowPut" as "window_put".
inline std::string in_words(std::string_view name) {
  std::string words;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !words.empty()) words += '_';
    words += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return words;
}

}  // namespace detail

/// torchcomms' arguments, a variant, as ours. They point to torchcomms', which must live as long.
class ArgumentsOf {
 public:
  /// Throws std::bad_alloc.
  template <class Variant>
  explicit ArgumentsOf(const Variant& theirs) {
    std::visit([this](const auto& one) { this->read(one); }, theirs);
  }
  ArgumentsOf(const ArgumentsOf&) = delete;
  ArgumentsOf& operator=(const ArgumentsOf&) = delete;
  ~ArgumentsOf() = default;
  Arguments arguments = Barrier{};

 private:
  template <class Theirs>
  void read([[maybe_unused]] const Theirs& theirs) {
    constexpr std::size_t kAt = detail::kOursFor<Theirs, detail::kPre>;
    if constexpr (kAt == detail::kNone) {
      constexpr std::string_view kName = detail::kNameOf<Theirs>;
      word_ = detail::in_words(kName.substr(0, kName.rfind(detail::kPre)));
      Other other{.op = word_};
      if constexpr (requires { theirs.async_op; }) other.async_op = theirs.async_op;
      arguments = other;
    } else {
      detail::OursAt<kAt> ours;
      read_tensors(ours, theirs);
      if constexpr (requires { ours.peer; }) ours.peer = theirs.peer;
      if constexpr (requires { ours.root; }) ours.root = theirs.root;
      if constexpr (requires { ours.op; }) ours.op = reduce_op_of(theirs.op);
      if constexpr (requires { ours.input_split_sizes; }) {
        ours.input_split_sizes = theirs.input_split_sizes;
        ours.output_split_sizes = theirs.output_split_sizes;
      }
      if constexpr (requires { ours.num_ops; }) ours.num_ops = theirs.num_ops;
      if constexpr (requires { ours.ranks; }) ours.ranks = theirs.ranks;
      if constexpr (requires { ours.name; }) ours.name = theirs.name;
      if constexpr (requires { ours.async_op; }) ours.async_op = theirs.async_op;
      arguments = ours;
    }
  }
  template <class Ours, class Theirs>
  void read_tensors(Ours& ours, const Theirs& theirs) {
    if constexpr (requires { ours.tensor; }) ours.tensor = tensor_of(theirs.tensor);
    if constexpr (requires { ours.input; }) read_one(ours.input, theirs.input, in_);
    if constexpr (requires { ours.output; }) read_one(ours.output, theirs.output, out_);
  }
  template <class T>
  static void read_one(Tensor& ours, const T& theirs, std::vector<Tensor>&) {
    ours = tensor_of(theirs);
  }
  template <class List>
  static void read_one(Tensors& ours, const List& theirs, std::vector<Tensor>& held) {
    for (const auto& one : theirs) held.push_back(tensor_of(one));
    ours = held;
  }

  std::vector<Tensor> in_, out_;
  std::string word_;  // of an operation that we have no struct for
};

/// Our arguments as torchcomms', a `Variant`. `make(tensor)` makes a tensor of torchcomms' from one
/// of ours. What `shown` refers to is here.
template <class Variant, class Make>
class ShownAs {
 public:
  /// Throws what `make` throws, std::bad_alloc, and std::invalid_argument for a reduction that
  /// torchcomms cannot be told.
  ShownAs(const Arguments& arguments, const Make& make) : make_(make) {
    std::visit([this](const auto& one) { this->show(one); }, arguments);
  }
  ShownAs(const ShownAs&) = delete;
  ShownAs& operator=(const ShownAs&) = delete;
  ~ShownAs() = default;
  std::optional<Variant> shown;  // none: torchcomms has no such operation

 private:
  using Made = std::remove_cvref_t<std::invoke_result_t<const Make&, const Tensor&>>;
  using Reducing = std::variant_alternative_t<
      detail::kTheirsFor<Variant, static_cast<std::size_t>(OpName::all_reduce), detail::kPre>,
      Variant>;
  using Reduction = std::remove_cvref_t<decltype(std::declval<Reducing&>().op)>;

  void show(const Other&) noexcept {}
  template <class Ours>
  void show(const Ours& a) {
    constexpr std::size_t kOurs = Arguments(Ours()).index();
    constexpr std::size_t kAt = detail::kTheirsFor<Variant, kOurs, detail::kPre>;
    if constexpr (kAt != detail::kNone) {
      using Theirs = std::variant_alternative_t<kAt, Variant>;
      if constexpr (std::is_same_v<Ours, Scatter>) {
        shown.emplace(Theirs{one(a.output, out_), list(a.input, in_), a.root, a.async_op});
      } else if constexpr (requires {
                             a.tensor;
                             a.peer;
                           }) {
        shown.emplace(Theirs{one(a.tensor, in_), a.peer, a.async_op});
      } else if constexpr (requires {
                             a.tensor;
                             a.root;
                             a.op;
                           }) {
        shown.emplace(Theirs{one(a.tensor, in_), a.root, reduction(a.op), a.async_op});
      } else if constexpr (requires {
                             a.tensor;
                             a.root;
                           }) {
        shown.emplace(Theirs{one(a.tensor, in_), a.root, a.async_op});
      } else if constexpr (requires {
                             a.tensor;
                             a.op;
                           }) {
        shown.emplace(Theirs{one(a.tensor, in_), reduction(a.op), a.async_op});
      } else if constexpr (requires {
                             a.input;
                             a.op;
                           }) {
        shown.emplace(Theirs{any(a.input, in_), any(a.output, out_), reduction(a.op), a.async_op});
      } else if constexpr (requires {
                             a.input;
                             a.root;
                           }) {
        shown.emplace(Theirs{any(a.input, in_), any(a.output, out_), a.root, a.async_op});
      } else if constexpr (requires { a.input_split_sizes; }) {
        give_.assign(a.input_split_sizes.begin(), a.input_split_sizes.end());
        get_.assign(a.output_split_sizes.begin(), a.output_split_sizes.end());
        shown.emplace(Theirs{any(a.input, in_), any(a.output, out_), give_, get_, a.async_op});
      } else if constexpr (requires { a.input; }) {
        shown.emplace(Theirs{any(a.input, in_), any(a.output, out_), a.async_op});
      } else if constexpr (requires { a.num_ops; }) {
        shown.emplace(Theirs{a.num_ops, a.async_op});
      } else if constexpr (requires { a.async_op; }) {
        shown.emplace(Theirs{a.async_op});
      } else if constexpr (requires { a.ranks; }) {
        ranks_.assign(a.ranks.begin(), a.ranks.end());
        name_ = a.name;
        shown.emplace(Theirs{ranks_, name_});
      } else {
        shown.emplace(Theirs{});
      }
    }
  }

  Made& one(const Tensor& tensor, std::vector<Made>& in) const {
    return in.assign(1, make_(tensor)), in.front();
  }
  std::vector<Made>& list(Tensors tensors, std::vector<Made>& in) const {
    for (const Tensor& tensor : tensors) in.push_back(make_(tensor));
    return in;
  }
  Made& any(const Tensor& tensor, std::vector<Made>& in) const { return one(tensor, in); }
  std::vector<Made>& any(Tensors tensors, std::vector<Made>& in) const { return list(tensors, in); }

  const Reduction& reduction(ReduceOp op) {
    using Type = std::remove_cvref_t<decltype(std::declval<Reduction&>().type())>;
    for (const Type type : {Type::SUM, Type::AVG, Type::PRODUCT, Type::MIN, Type::MAX, Type::BAND,
                            Type::BOR, Type::BXOR}) {
      reduction_.emplace(type);
      if (reduce_op_of(*reduction_) == op) return *reduction_;
    }
    throw std::invalid_argument("torchcomms cannot be told of the reduction " +
                                std::string(to_string(op)));
  }

  const Make& make_;
  std::vector<Made> in_, out_;
  std::vector<std::uint64_t> give_, get_;
  std::vector<int> ranks_;
  std::string name_;
  std::optional<Reduction> reduction_;
};

}  // namespace ringmain::collective::torchcomms
