// What tests of hook rows stand on: a bus with a row, whose accounts balance at the end.
#pragma once
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/hooks.hpp"

#include "tests/bus/events.hpp"

namespace ringmain::tests {

class HooksTest : public ::testing::Test {
 protected:
  void TearDown() override {
    const auto verified = bus_.verify_accounting();
    EXPECT_TRUE(verified) << verified.error().message;
  }
  template <class E>
  Hooks<E> made(std::string name = "test.row") {
    auto hooks = Hooks<E>::make(bus_, std::move(name));
    EXPECT_TRUE(hooks) << hooks.error().message;
    return std::move(hooks).value();
  }
  Bus bus_{with_workers(1)};
  Hooks<Tick> row_ = made<Tick>();
};

}  // namespace ringmain::tests
