// What the tests of communicators share.
#pragma once
#include <array>
#include <cstdint>

#include <gtest/gtest.h>

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

/// A bus, and one rank's end of "world".
class OnCommunicator : public testing::Test {
 protected:
  /// Issued, and under way.
  collective::Operation issue(const collective::Arguments& arguments) {
    collective::Operation operation;
    EXPECT_TRUE(comm_.run(arguments, [&](const collective::Operation& one) { operation = one; }));
    return operation;
  }
  /// False: a hook refused.
  bool barrier() {
    return comm_.run(collective::Barrier{}, [](const collective::Operation&) {});
  }
  /// A pre hook that counts.
  static auto counts(int& calls) {
    return [&calls](const collective::PreHookArgs&) {
      ++calls;
      return Verdict::allow();
    };
  }
  Bus bus_;
  collective::Communicator comm_ = collective::Communicator::make(bus_, world()).value();
};

}  // namespace ringmain::tests
