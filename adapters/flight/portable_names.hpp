// By which names does every release of PyTorch's analyzer know an operation?
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace ringmain::flight {

/// From here on numbers of sends and receives lie apart from those of collectives.
inline constexpr std::int64_t kTransfersFrom = std::int64_t{1} << 32;

/// A member of a batch of collectives that is not its first has its place in the batch so many
/// times on top of the batch's number, where a dump is written for the analyzer.
inline constexpr std::int64_t kMembersFrom = std::int64_t{1} << 32;

/// "" for what the analyzer does not know.
[[nodiscard]] inline std::string_view portable_name(std::string_view name) noexcept {
  struct Renamed {
    std::string_view name;
    std::string_view portable;
  };
  // In here, so that no library has a symbol of it that all copies share.
  constexpr Renamed kRenamed[] = {{"barrier", "all_reduce_barrier"},
                                  {"all_gather_single", "_all_gather_base"},
                                  {"reduce_scatter_single", "_reduce_scatter_base"},
                                  {"all_to_all_single", "all_to_all"},
                                  {"all_to_all_v_single", "all_to_all"},
                                  {"gather_single", "gather"},
                                  {"all_reduce_coalesced", "allreduce_coalesced"},
                                  {"all_gather_coalesced", "all_gather_into_tensor_coalesced"},
                                  {"reduce_scatter_coalesced", "reduce_scatter_tensor_coalesced"}};
  constexpr std::string_view kPortable[] = {"broadcast",
                                            "reduce",
                                            "all_gather",
                                            "all_reduce",
                                            "reduce_scatter",
                                            "gather",
                                            "scatter",
                                            "all_to_all",
                                            "all_reduce_barrier",
                                            "_all_gather_base",
                                            "_reduce_scatter_base",
                                            "allreduce_coalesced",
                                            "all_gather_into_tensor_coalesced",
                                            "reduce_scatter_tensor_coalesced",
                                            "ALLGATHER_coalesced",
                                            "REDUCE_SCATTER_coalesced",
                                            "coalesced",
                                            "send",
                                            "recv"};
  for (const Renamed& renamed : kRenamed) {
    if (renamed.name == name) return renamed.portable;
  }
  const auto found = std::find(std::begin(kPortable), std::end(kPortable), name);
  return found == std::end(kPortable) ? "" : *found;
}

}  // namespace ringmain::flight
