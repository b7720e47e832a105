// What do the words of a recorded collective mean? Operations, dtypes and shapes, as PyTorch and
// NCCL write them, in one spelling.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ringmain::replay {

/// One word for one operation: "allreduce", "_allgather_base", "AllReduce" → all_reduce,
/// all_gather. What is not known stays as it is, in lower case.
[[nodiscard]] std::string operation_name(std::string_view recorded);

/// The operation in an NCCL kernel's name: ncclDevKernel_AllReduce_Sum_f32_RING_LL → all_reduce; ""
/// when the name does not say.
[[nodiscard]] std::string operation_of_kernel(std::string_view kernel);

/// An annotation "nccl:send 0->1" taken apart.
struct AnnotationTerms {
  std::string_view backend;  // "" if it is no annotation of a collective
  std::string operation;
  std::int32_t rank = -1;  // of point-to-point operations
  std::int32_t peer = -1;
};
[[nodiscard]] AnnotationTerms annotation_terms(std::string_view annotation);

/// True for NCCL's kernels, in any case.
[[nodiscard]] bool is_nccl_kernel(std::string_view kernel) noexcept;

/// Bytes of one element: Float, "c10::Half", "long int" … 0 for unknown types.
[[nodiscard]] std::uint64_t dtype_bytes(std::string_view dtype) noexcept;

/// The sum over the tensors of the products of their dimensions: "[[19618307], [2, 3]]".
[[nodiscard]] std::uint64_t elements_of_dims(std::string_view json) noexcept;

/// The first non-empty string of a JSON array of strings, or "".
[[nodiscard]] std::string_view first_string(std::string_view json) noexcept;

}  // namespace ringmain::replay
