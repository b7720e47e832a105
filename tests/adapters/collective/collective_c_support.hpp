// What do the tests of collective.h share? A bus and a communicator as C has them.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bindings/c/handles.hpp"

#include "adapters/collective.h"
#include "adapters/sources/collective/communicator.hpp"

namespace ringmain::tests {

/// A sentence says what is wrong.
inline void expect_error(std::int32_t code, std::int32_t expected, const std::string& part) {
  const std::string said = ringmain_last_error();
  EXPECT_EQ(code, expected) << ringmain_code_name(code) << ": " << said;
  EXPECT_NE(said.find(part), std::string::npos) << said;
}
inline void expect_ok(std::int32_t code) {
  EXPECT_EQ(code, RINGMAIN_OK) << ringmain_code_name(code) << ": " << ringmain_last_error();
}
inline std::uint32_t c_name(const std::string& text) {
  return ringmain_name(text.data(), text.size());
}
inline std::string c_text(std::uint32_t name) {
  std::size_t bytes = 0;
  const char* const text = ringmain_name_text(name, &bytes);
  return {text, bytes};
}

inline ringmain_communicator_options c_world() {
  ringmain_communicator_options options = RINGMAIN_COMMUNICATOR_OPTIONS;
  options.name = "world";
  options.backend = "mpi";
  options.source = "shim";
  options.rank = 1;
  options.size = 4;
  return options;
}
inline ringmain_arguments c_barrier() {
  ringmain_arguments arguments = RINGMAIN_ARGUMENTS;
  arguments.op = RINGMAIN_OP_BARRIER;
  return arguments;
}
inline ringmain_tensor c_floats(const std::int64_t& elements, const void* at = nullptr) {
  ringmain_tensor tensor = RINGMAIN_TENSOR;
  tensor.data = at;
  tensor.sizes = &elements;
  tensor.dimensions = 1;
  tensor.data_bytes = 4 * static_cast<std::uint64_t>(elements);
  tensor.dtype = c_name("float32");
  return tensor;
}

class CCollectiveTest : public testing::Test {
 protected:
  CCollectiveTest() {
    expect_ok(ringmain_open(nullptr, &bus_));
    const ringmain_communicator_options options = c_world();
    expect_ok(ringmain_communicator_make(bus_, &options, &world_));
  }
  ~CCollectiveTest() override {
    ringmain_communicator_free(world_);
    expect_ok(ringmain_close(bus_, -1));
  }
  [[nodiscard]] Bus& cpp() const { return *bus_->bus; }
  [[nodiscard]] collective::Communicator cpp_world() const {
    return collective::Communicator::find(cpp(), "world");
  }
  /// Issued, called for and over.
  std::int32_t run(const ringmain_arguments& arguments) {
    ringmain_operation* operation = nullptr;
    const std::int32_t code = ringmain_issue(world_, &arguments, &operation);
    if (code != RINGMAIN_OK) return code;
    expect_ok(ringmain_operation_returned(operation, nullptr));
    (void)ringmain_operation_completed(operation);
    ringmain_operation_free(operation);
    return code;
  }

  ringmain_bus* bus_ = nullptr;
  ringmain_communicator* world_ = nullptr;
};

}  // namespace ringmain::tests
