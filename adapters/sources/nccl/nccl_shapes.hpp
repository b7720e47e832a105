// How much does an operation move, and with whom? What this rank gives and gets, from the arguments
// that NCCL reads on this rank.
#pragma once
#include <cstdint>

#include "events/collective.hpp"

#include "adapters/sources/collective/collective_arguments.hpp"
#include "adapters/sources/collective/communicator.hpp"
#include "adapters/sources/nccl/nccl_call.hpp"

namespace ringmain::nccl::detail {

/// Lives as long as the call: hooks see its tensors.
class Shape {
 public:
  Shape(Function which, const StreamCall& asked, const collective::Communicator& comm,
        std::int32_t device) noexcept;
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;

  /// For hooks, and whoever hears of shapes: without it arguments() has empty tensors.
  void describe_tensors() noexcept;
  [[nodiscard]] collective::Arguments arguments() const noexcept;
  [[nodiscard]] collective::Issued issued(const void* stream) const noexcept;

 private:
  [[nodiscard]] collective::Tensors ins() const noexcept {
    return gives_ == 0 ? collective::Tensors{} : collective::Tensors{&in_, 1};
  }
  [[nodiscard]] collective::Tensors outs() const noexcept {
    return gets_ == 0 ? collective::Tensors{} : collective::Tensors{&out_, 1};
  }

  const Function which_;
  const StreamCall& asked_;
  const std::int32_t device_;
  std::int64_t gives_ = 0, gets_ = 0;  // elements
  Name dtype_{};                       // its words and bytes are those of no type that is not known
  std::uint64_t element_bytes_ = 0;
  collective::Tensor in_{}, out_{};
};

}  // namespace ringmain::nccl::detail
