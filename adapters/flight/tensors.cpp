#include "adapters/flight/tensors.hpp"

namespace ringmain::flight {
namespace {

struct NamedLaw {
  std::string_view name;
  SizeLaw law;
};

constexpr SizeLaw kSame{.inputs = true, .outputs = true, .synchronizes = true, .known = true};
constexpr SizeLaw kFromRoot{.inputs = true, .outputs = true, .empty_is_fine = true, .known = true};
constexpr SizeLaw kGathered{
    .inputs = true, .outputs = true, .outputs_times = 1, .synchronizes = true, .known = true};
constexpr SizeLaw kScattered{
    .inputs = true, .outputs = true, .outputs_times = -1, .synchronizes = true, .known = true};
constexpr SizeLaw kSent{.sums = true, .synchronizes = true, .known = true};
constexpr SizeLaw kNone{.synchronizes = true,
                        .known = true};  // sizes may differ, or there are none

constexpr NamedLaw kLaws[] = {
    {"all_reduce", kSame},
    {"allreduce_coalesced", kSame},
    {"all_reduce_coalesced", kSame},
    {"broadcast", kFromRoot},
    {"_broadcast_oop", {.known = true}},  // of a list with sizes of its own
    {"reduce", kFromRoot},
    {"_reduce_oop", {.known = true}},
    {"all_gather", kGathered},
    {"_all_gather_base", kGathered},
    {"all_gather_single", kGathered},
    {"all_gather_into_tensor_coalesced", kGathered},
    {"all_gather_coalesced", kGathered},
    {"reduce_scatter", kScattered},
    {"_reduce_scatter_base", kScattered},
    {"reduce_scatter_single", kScattered},
    {"reduce_scatter_tensor_coalesced", kScattered},
    {"reduce_scatter_coalesced", kScattered},
    {"gather", kFromRoot},
    {"gather_single", kFromRoot},
    {"scatter", kFromRoot},
    {"all_to_all", kSent},
    {"all_to_all_single", kSent},
    {"all_to_all_v_single", kSent},
    {"all_gather_v", kNone},
    {"reduce_scatter_v", kNone},
    {"barrier", kNone},
    {"all_reduce_barrier", kNone},
    {"split", kNone},
    {"new_window", kNone}};

}  // namespace

SizeLaw law_of(std::string_view name) noexcept {
  for (const NamedLaw& named : kLaws) {
    if (named.name == name) return named.law;
  }
  return {};
}

std::optional<std::uint64_t> elements_of(std::string_view sizes) noexcept {
  std::uint64_t sum = 0;
  std::uint64_t product = 1;
  std::uint64_t number = 0;
  bool digits = false;
  int depth = 0;  // 2 within a tensor's sizes; those of a scalar are [], which is one element
  for (const char c : sizes) {
    if (c >= '0' && c <= '9') {
      if (__builtin_mul_overflow(number, 10, &number)) return std::nullopt;
      if (__builtin_add_overflow(number, static_cast<unsigned>(c - '0'), &number))
        return std::nullopt;
      digits = true;
      continue;
    }
    if (digits && __builtin_mul_overflow(product, number, &product)) return std::nullopt;
    if (c == ']' && depth == 2 && __builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    if (c == '[' || c == ']') product = 1;
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    number = 0;
    digits = false;
  }
  return sum;
}

std::optional<std::uint64_t> Elements::of(const Tensors& tensors) {
  const auto found = known_.find(tensors.sizes);
  if (found != known_.end()) return found->second;
  const auto made = elements_of(texts_.of(tensors.sizes));
  known_.emplace(tensors.sizes, made);
  return made;
}

}  // namespace ringmain::flight
