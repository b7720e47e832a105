// Do two sides of an operation fit together? By the number of elements, not by shape: NCCL does not
// know shapes, and [4,2] against [8] is no fault.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "adapters/flight/dump.hpp"

namespace ringmain::flight {

/// Which sizes of an operation must be the same on all ranks?
struct SizeLaw {
  bool inputs = false;
  bool outputs = false;
  bool empty_is_fine = false;  // on ranks that are not the root
  int outputs_times = 0;       // outputs = inputs times the members (1), or the reverse (-1)
  bool sums = false;           // all that is sent is received: all_to_all
  bool synchronizes = false;   // no rank can finish it before all have joined
  bool known = false;
};
/// By its name, as PyTorch and torchcomms write it.
[[nodiscard]] SizeLaw law_of(std::string_view name) noexcept;

/// Elements of all tensors of a text such as "[[3,4],[5]]"; nullopt where they exceed 64 bits.
[[nodiscard]] std::optional<std::uint64_t> elements_of(std::string_view sizes) noexcept;

/// elements_of(), remembered.
class Elements {
 public:
  explicit Elements(const Texts& texts) : texts_(texts) {}
  [[nodiscard]] std::optional<std::uint64_t> of(const Tensors& tensors);

 private:
  const Texts& texts_;
  std::unordered_map<std::uint32_t, std::optional<std::uint64_t>> known_;
};

}  // namespace ringmain::flight
