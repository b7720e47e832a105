#include "events/terms/collective_names.hpp"

#include <array>
#include <atomic>
#include <new>

namespace ringmain::collective {
namespace {

std::atomic<std::uint64_t> unknown{0};

struct Spelled {
  std::string_view text;
  const OperationWord* word = nullptr;
};
constexpr bool before(std::string_view a, std::string_view b) noexcept {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return detail::lower(x) < detail::lower(y);
  });
}

/// MPI's are apart: its Reduce_scatter is not what others call so.
constexpr Dialect kTogether[] = {Dialect::c10d, Dialect::torchcomms, Dialect::nccl,
                                 Dialect::kineto};

template <class Do>
constexpr void for_each_spelling(Do&& told) {
  for (const OperationWord& word : kOperations) {
    told(Spelled{word.name, &word});
    for (const Dialect dialect : kTogether) {
      std::string_view all = spellings(word, dialect);
      while (!all.empty()) told(Spelled{detail::next_spelling(all), &word});
    }
  }
}
consteval std::size_t count_spellings() {
  std::size_t n = 0;
  for_each_spelling([&](const Spelled&) { ++n; });
  return n;
}
consteval auto sorted_spellings() {
  std::array<Spelled, count_spellings()> all{};
  std::size_t n = 0;
  for_each_spelling([&](const Spelled& one) { all[n++] = one; });
  std::sort(all.begin(), all.end(),
            [](const Spelled& a, const Spelled& b) { return before(a.text, b.text); });
  return all;
}
constexpr auto kSpelled = sorted_spellings();
static_assert(std::adjacent_find(kSpelled.begin(), kSpelled.end(),
                                 [](const Spelled& a, const Spelled& b) {
                                   return detail::same_in_any_case(a.text, b.text) &&
                                          a.word != b.word;
                                 }) == kSpelled.end(),
              "one spelling, one word");

const OperationWord* find_together(std::string_view text) noexcept {
  const auto* const found = std::lower_bound(
      kSpelled.begin(), kSpelled.end(), text,
      [](const Spelled& one, std::string_view wanted) { return before(one.text, wanted); });
  return found != kSpelled.end() && detail::same_in_any_case(found->text, text) ? found->word
                                                                                : nullptr;
}

/// True if `text` began with it, which is taken off.
bool take_off(std::string_view& text, std::string_view prefix) noexcept {
  if (!detail::same_in_any_case(text.substr(0, prefix.size()), prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "gloo:send 0->1", "c10d::send" → "send"
std::string_view without_surroundings(std::string_view spelling) noexcept {
  spelling = spelling.substr(0, spelling.find(' '));
  const std::size_t colon = spelling.rfind(':');
  return colon == std::string_view::npos ? spelling : spelling.substr(colon + 1);
}

constexpr bool is_upper(char c) noexcept {
  return detail::lower(c) != c;
}
/// MyAllReduce_ → my_all_reduce
std::string snake(std::string_view name) {
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (is_upper(name[i]) && i > 0 && !is_upper(name[i - 1]) && out.back() != '_') out += '_';
    out += detail::lower(name[i]);
  }
  return out;
}

}  // namespace

const OperationWord* find_spelling(std::string_view spelling) noexcept {
  std::string_view text = without_surroundings(spelling);
  if (take_off(text, "PMPI_") || take_off(text, "MPI_")) return find_spelling(Dialect::mpi, text);
  if (take_off(text, "pnccl") || take_off(text, "nccl")) return find_spelling(Dialect::nccl, text);
  if (const OperationWord* const found = find_together(text)) return found;
  if (!text.ends_with('_')) return nullptr;  // PyTorch's sign of what changes its arguments
  text.remove_suffix(1);
  return find_together(text);
}

Name operation_name(std::string_view spelling) noexcept try {
  if (const OperationWord* const found = find_spelling(spelling)) return Name(found->name);
  const std::string name = snake(without_surroundings(spelling));
  if (!name.empty()) ++unknown;
  return Name(name);
} catch (const std::bad_alloc&) {
  return {};
}

std::uint64_t unknown_operations() noexcept {
  return unknown;
}

Name operation_of_nccl_kernel(std::string_view kernel) noexcept {
  const auto start = kernel.find('_');
  if (start == std::string_view::npos) return {};
  const std::string_view rest = kernel.substr(start + 1);
  const std::string_view word = rest.substr(0, rest.find_first_of("_(<"));
  return word == "Generic" ? Name{} : operation_name(word);
}

}  // namespace ringmain::collective
