// What the tests of communicators share.
#pragma once
#include <array>
#include <cstdint>

#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::tests {

inline constexpr std::array<std::int64_t, 1> kFour{4};

inline collective::Tensor four_floats() {
  collective::Tensor tensor;
  tensor.sizes = kFour;
  tensor.dtype = Name("float32");
  tensor.bytes = 16;
  return tensor;
}
inline collective::AllReduce all_reduced() {
  return {four_floats(), collective::ReduceOp::sum, true};
}
inline collective::CommunicatorOptions world() {
  collective::CommunicatorOptions options;
  options.name = "world";
  options.backend = "loopback";
  options.source = "test";
  options.rank = 1;
  options.size = 4;
  return options;
}

}  // namespace ringmain::tests
