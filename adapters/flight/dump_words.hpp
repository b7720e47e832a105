// With which words does a dump say what ours say otherwise?
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "adapters/flight/snapshot.hpp"

namespace ringmain::flight {

/// PyTorch's words for element types.
inline std::string_view scalar_type(std::string_view dtype) noexcept {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"float32", "Float"},
      {"float64", "Double"},
      {"float16", "Half"},
      {"bfloat16", "BFloat16"},
      {"int64", "Long"},
      {"int32", "Int"},
      {"int16", "Short"},
      {"int8", "Char"},
      {"uint8", "Byte"},
      {"uint16", "UInt16"},
      {"uint32", "UInt32"},
      {"uint64", "UInt64"},
      {"bool", "Bool"},
      {"complex64", "ComplexFloat"},
      {"complex128", "ComplexDouble"},
      {"float8_e4m3fn", "Float8_e4m3fn"},
      {"float8_e5m2", "Float8_e5m2"},
      {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
      {"float8_e5m2fnuz", "Float8_e5m2fnuz"}};
  const auto* const found = std::find_if(std::begin(kWords), std::end(kWords),
                                         [dtype](const auto& one) { return one.first == dtype; });
  return found == std::end(kWords) ? dtype : found->second;
}

inline std::string_view word_of(FlightState state) noexcept {
  constexpr std::string_view kWords[] = {"scheduled", "started", "completed"};
  return kWords[static_cast<std::size_t>(state)];
}

/// Before the colon of names: what every release of the analyzer since 2.13 takes.
inline std::string_view prefix_of(std::string_view backend) noexcept {
  constexpr std::string_view kKnown[] = {"nccl", "xccl", "ncclx", "gloo",
                                         "hccl", "rccl", "mccl",  "rcclx"};
  const bool known = std::find(std::begin(kKnown), std::end(kKnown), backend) != std::end(kKnown);
  return known ? backend : "nccl";
}

}  // namespace ringmain::flight
