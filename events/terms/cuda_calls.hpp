// Which kind is a call of CUDA's? By its name, or by CUPTI's number of it.
//
// One name serves a call in the runtime, the driver and HIP, in each of its versions and in both
// kinds of default stream. The names are those of the table in cuda_call_table.hpp, and HIP's own.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "cuda_call_kinds.hpp"
#include "cuda_call_table.hpp"

namespace ringmain::cuda {

namespace detail {

/// A call's name without its interface (cuda, cu, hip) and version.
struct Stem {
  std::string_view name;
  Call call;
};

/// "EventRecord" of cuEventRecord_ptsz, cudaEventRecord_v3020, hipEventRecord; "" of other names.
constexpr std::string_view stem_of(std::string_view api) noexcept {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {  // the longer one first
    if (!api.starts_with(prefix)) continue;
    api.remove_prefix(prefix.size());
    return without_version(api);
  }
  return {};
}

/// Calls that HIP alone has.
inline constexpr Stem kHipStems[] = {
    {"ExtMallocWithFlags", {CallKind::memory_allocation, MemoryClass::device}},
    {"ExtStreamCreateWithCUMask", {CallKind::stream_creation}},
    {"HostFree", {CallKind::memory_deallocation, MemoryClass::host_pinned}},
    {"HostMalloc", {CallKind::memory_allocation, MemoryClass::host_pinned}},
};

/// All stems, sorted, several times those that several rows have.
constexpr auto stems() noexcept {
  std::array<Stem, std::size(rows::kRows) + std::size(kHipStems)> stems{};
  std::size_t count = 0;
  for (const CallRow& row : rows::kRows) stems[count++] = {stem_of(row.name), row.call};
  for (const Stem& stem : kHipStems) stems[count++] = stem;
  std::sort(stems.begin(), stems.end(),
            [](const Stem& a, const Stem& b) { return a.name < b.name; });
  return stems;
}
// Sorted by name: call_of_stem() searches it.
inline constexpr auto kStems = stems();
static_assert(std::adjacent_find(kStems.begin(), kStems.end(),
                                 [](const Stem& a, const Stem& b) {
                                   return a.name == b.name && a.call != b.call;
                                 }) == kStems.end(),
              "a name has one meaning in all interfaces and versions");

constexpr Call call_of_stem(std::string_view name) noexcept {
  const auto* const found = std::lower_bound(
      kStems.begin(), kStems.end(), name,
      [](const Stem& stem, std::string_view wanted) { return stem.name < wanted; });
  return found != kStems.end() && found->name == name ? found->call : Call{};
}

constexpr Call call_of_number(CallDomain domain, std::int64_t cbid,
                              std::uint32_t version) noexcept {
  if (cbid < 0 || cbid > std::numeric_limits<std::uint32_t>::max()) return {};
  const CallRow* const row = call_of(domain, static_cast<std::uint32_t>(cbid), version);
  return row == nullptr ? Call{} : row->call;
}

}  // namespace detail

/// The call with that name, as its interface or CUPTI writes it: cudaMalloc, cuMemAlloc_v2,
/// hipMalloc. Nothing where the name is of no such interface; other calls of these have no kind.
constexpr std::optional<Call> call_named(std::string_view api) noexcept {
  const std::string_view stem = detail::stem_of(api);
  if (stem.empty()) return std::nullopt;
  return detail::call_of_stem(stem);
}

/// CUPTI of CUDA 13.0: whose numbers are meant where nobody says the version. Few ever changed.
constexpr std::uint32_t kAssumedCupti = 130001;

/// CUPTI's CUPTI_RUNTIME_TRACE_CBID_…: the runtime's call of that number, or one without a kind.
/// `version`: CUPTI_API_VERSION.
constexpr Call runtime_call(std::int64_t cbid, std::uint32_t version = kAssumedCupti) noexcept {
  return detail::call_of_number(CallDomain::runtime, cbid, version);
}
/// CUPTI's CUPTI_DRIVER_TRACE_CBID_…: the driver's call of that number, or one without a kind.
/// `version`: CUPTI_API_VERSION.
constexpr Call driver_call(std::int64_t cbid, std::uint32_t version = kAssumedCupti) noexcept {
  return detail::call_of_number(CallDomain::driver, cbid, version);
}

}  // namespace ringmain::cuda
