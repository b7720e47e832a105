// Which types of elements does the loopback know, and how does it reduce them?
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "adapters/sources/collective/collective_arguments.hpp"

namespace ringmain::collective::loopback::detail {

enum class Kind : std::uint8_t {
  float16,
  bfloat16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean
};
struct ElementType {
  std::string_view name;
  Kind kind = Kind::float32;
  std::uint32_t bytes = 0;
};
/// nullptr: it is none of them, and only its bytes can be moved.
[[nodiscard]] const ElementType* find_type(std::string_view name) noexcept;

/// Why elements of this type cannot be reduced so; empty: they can. `type`: nullptr is `name`.
[[nodiscard]] std::string fault_of(const ElementType* type, std::string_view name, ReduceOp by);

/// Reduces `values`, one of each rank, which need no alignment. `to` may be one of them.
void reduce(Kind kind, ReduceOp by, std::span<const std::byte* const> values,
            std::uint64_t elements, std::byte* to) noexcept;

/// IEEE 754 binary16, rounded to nearest, ties to even.
[[nodiscard]] float widened(std::uint16_t half) noexcept;
[[nodiscard]] std::uint16_t narrowed(float value) noexcept;

}  // namespace ringmain::collective::loopback::detail
