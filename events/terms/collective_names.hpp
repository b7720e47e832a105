// What is an operation called that ranks do together? One word for each, from every source.
//
// MPI, NCCL and PyTorch have words of their own for the same: MPI_Allgather, AllGather,
// _allgather_base. A source writes the words of the table, or has what it read of others turned
// into them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace ringmain::collective {

/// What does the work: words for the field `backend`.
inline constexpr std::string_view kGloo = "gloo";
inline constexpr std::string_view kMpi = "mpi";
inline constexpr std::string_view kNccl = "nccl";

/// A word for the field `op`.
struct OperationWord {
  std::string_view name;
  bool rooted = false;  // the field `peer` is the root
};

/// Sorted by name. Those with _v move counts of their own for each rank, those with _w types too.
inline constexpr OperationWord kOperations[] = {
    {"all_gather"},
    {"all_gather_v"},
    {"all_reduce"},
    {"all_to_all"},
    {"all_to_all_v"},
    {"all_to_all_w"},
    {"barrier"},
    {"broadcast", true},
    {"exclusive_scan"},
    {"gather", true},
    {"gather_v", true},
    {"neighbor_all_gather"},
    {"neighbor_all_gather_v"},
    {"neighbor_all_to_all"},
    {"neighbor_all_to_all_v"},
    {"neighbor_all_to_all_w"},
    {"recv"},
    {"reduce", true},
    {"reduce_scatter"},
    {"reduce_scatter_v"},
    {"scan"},
    {"scatter", true},
    {"scatter_v", true},
    {"send"},
    {"send_recv"},
};

/// The table's row; nullptr: it has none of that name.
constexpr const OperationWord* find_operation(std::string_view name) noexcept {
  const auto* const found = std::lower_bound(
      std::begin(kOperations), std::end(kOperations), name,
      [](const OperationWord& one, std::string_view wanted) { return one.name < wanted; });
  return found != std::end(kOperations) && found->name == name ? found : nullptr;
}

namespace detail {

static_assert(std::adjacent_find(std::begin(kOperations), std::end(kOperations),
                                 [](const OperationWord& a, const OperationWord& b) {
                                   return !(a.name < b.name);
                                 }) == std::end(kOperations));

void the_table_of_operations_has_no_such_word();  // never called: it ends a constant expression

constexpr bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}
constexpr char lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

/// AllReduce → all_reduce, _allgather_base → _allgather_base.
inline std::string snake(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_upper(name[i]) && i > 0 && !is_upper(name[i - 1]) && out.back() != '_') out += '_';
    out += lower(name[i]);
  }
  return out;
}

}  // namespace detail

/// A word that a source writes down in its code. One that the table does not have is not compiled.
consteval std::string_view operation(std::string_view name) {
  const OperationWord* const found = find_operation(name);
  if (found == nullptr) detail::the_table_of_operations_has_no_such_word();
  return found->name;
}

constexpr bool is_rooted(std::string_view op) noexcept {
  const OperationWord* const found = find_operation(op);
  return found != nullptr && found->rooted;
}

/// The word for what another one calls "allreduce", "_allgather_base" or "AllReduce": all_reduce,
/// all_gather. What is not known stays as it is, in lower case.
[[nodiscard]] inline std::string operation_name(std::string_view spelling) {
  std::string name = detail::snake(spelling);
  while (name.starts_with('_')) name.erase(0, 1);
  for (const std::string_view tail : {"_base", "_"}) {
    if (name.size() > tail.size() && name.ends_with(tail)) name.resize(name.size() - tail.size());
  }
  struct Spelling {
    std::string_view from, to;
  };
  static constexpr Spelling kSpellings[] = {
      {"allreduce", operation("all_reduce")}, {"allgather", operation("all_gather")},
      {"alltoall", operation("all_to_all")},  {"reducescatter", operation("reduce_scatter")},
      {"sendrecv", operation("send_recv")},
  };
  for (const auto& [from, to] : kSpellings) {
    if (name.starts_with(from)) name.replace(0, from.size(), to);
  }
  return name;
}

/// True for NCCL's kernels, in any case.
[[nodiscard]] constexpr bool is_nccl_kernel(std::string_view kernel) noexcept {
  return std::equal(kNccl.begin(), kNccl.end(), kernel.begin(),
                    kernel.begin() + std::min(kernel.size(), kNccl.size()),
                    [](char word, char written) { return word == detail::lower(written); });
}

/// The operation in an NCCL kernel's name: ncclDevKernel_AllReduce_Sum_f32_RING_LL → all_reduce; ""
/// when the name does not say.
[[nodiscard]] inline std::string operation_of_nccl_kernel(std::string_view kernel) {
  const auto start = kernel.find('_');
  if (start == std::string_view::npos) return {};
  const std::string_view rest = kernel.substr(start + 1);
  const std::string_view word = rest.substr(0, rest.find_first_of("_(<"));
  return word == "Generic" ? std::string() : operation_name(word);
}

}  // namespace ringmain::collective
