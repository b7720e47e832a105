// What do the words of a recorded collective mean? Annotations, dtypes and shapes, as PyTorch's
// profiler writes them. What operations are called is in events/terms/collective_names.hpp.
#pragma once
#include <cstdint>
#include <string_view>

#include "bus/text.hpp"

namespace ringmain::replay {

/// An annotation "nccl:send 0->1" taken apart.
struct AnnotationTerms {
  std::string_view backend;  // "" if it is no annotation of a collective
  Name operation;
  std::int32_t rank = -1;  // of point-to-point operations
  std::int32_t peer = -1;
};
[[nodiscard]] AnnotationTerms annotation_terms(std::string_view annotation);

/// Bytes of one element: Float, "c10::Half", "long int" … 0 for unknown types.
[[nodiscard]] std::uint64_t dtype_bytes(std::string_view dtype) noexcept;

/// The sum over the tensors of the products of their dimensions: "[[19618307], [2, 3]]".
[[nodiscard]] std::uint64_t elements_of_dims(std::string_view json) noexcept;

/// The first non-empty string of a JSON array of strings, or "".
[[nodiscard]] std::string_view first_string(std::string_view json) noexcept;

}  // namespace ringmain::replay
