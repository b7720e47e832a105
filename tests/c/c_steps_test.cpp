// Do steps that C says nest as C++ hears them, and is every wrong end refused?
#include <string>
#include <vector>

#include "ringmain/bus/bus.hpp"

#include "ringmain/adapters/sources/step/events.hpp"

#include "ringmain/tests/c/c_support.hpp"

namespace ringmain::tests {
namespace {

class CStepsTest : public testing::Test {
 protected:
  CStepsTest() {
    expect_ok(ringmain_open_process(&bus_));
    hearing_ = Bus::process().channel<step::Step>().subscribe([this](const step::Step& s) {
      said_.push_back(std::to_string(s.step) + "/" + std::string(s.phase.view()) + "/" +
                      std::to_string(s.micro_batch) +
                      (s.edge == step::Edge::begin ? " begin" : " end"));
    });
    expect_ok(ringmain_steps_open(bus_, &steps_));
  }
  ~CStepsTest() override {
    ringmain_steps_close(steps_);
    hearing_.reset();
    expect_ok(ringmain_close(bus_, -1));
  }
  const std::vector<std::string>& said() {
    expect_ok(ringmain_flush(bus_, -1));
    return said_;
  }

  ringmain_bus* bus_ = nullptr;
  ringmain_steps* steps_ = nullptr;
  std::vector<std::string> said_;
  Subscription hearing_;
};

TEST_F(CStepsTest, ScopesNestAndEndFromTheInsideOut) {
  expect_ok(ringmain_step_begin(steps_, 7));
  expect_ok(ringmain_phase_begin(steps_, ringmain_name("forward", 7)));
  expect_ok(ringmain_micro_batch_begin(steps_, 2));
  expect_ok(ringmain_step_end(steps_));
  ringmain_steps_close(std::exchange(steps_, nullptr));  // ends the other two
  EXPECT_EQ(said(),
            (std::vector<std::string>{"7//0 begin", "7/forward/0 begin", "7/forward/2 begin",
                                      "7/forward/2 end", "7/forward/0 end", "7//0 end"}));
}

TEST_F(CStepsTest, AnEndWithoutABeginAndTooManyScopesAreRefused) {
  expect_error(ringmain_step_end(steps_), RINGMAIN_REFUSED, "no scope is open");
  for (std::uint64_t n = 0; n < 32; ++n) expect_ok(ringmain_step_begin(steps_, n));
  expect_error(ringmain_step_begin(steps_, 32), RINGMAIN_TOO_DEEP, "32 scopes are open");
  for (int n = 0; n < 32; ++n) expect_ok(ringmain_step_end(steps_));
  EXPECT_EQ(said().size(), 64u);
}

TEST_F(CStepsTest, NullIsRefused) {
  expect_error(ringmain_steps_open(nullptr, &steps_), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_steps_open(bus_, nullptr), RINGMAIN_REFUSED, "steps is NULL");
  expect_error(ringmain_step_begin(nullptr, 1), RINGMAIN_REFUSED, "steps is NULL");
  expect_error(ringmain_phase_begin(nullptr, 1), RINGMAIN_REFUSED, "steps is NULL");
  expect_error(ringmain_micro_batch_begin(nullptr, 1), RINGMAIN_REFUSED, "steps is NULL");
  expect_error(ringmain_step_end(nullptr), RINGMAIN_REFUSED, "steps is NULL");
  ringmain_steps_close(nullptr);
}

TEST(CStepsConflictTest, AnotherTrainStepThatCDescribedIsAConflictAndNotTheEnd) {
  ringmain_bus* bus = nullptr;
  expect_ok(ringmain_open(nullptr, &bus));
  ringmain_channel* other = nullptr;
  const auto type = tick_type("train.step");
  expect_ok(ringmain_define(bus, &type, &other));
  ringmain_steps* steps = nullptr;
  expect_error(ringmain_steps_open(bus, &steps), RINGMAIN_CONFLICT, "'train.step'");
  expect_ok(ringmain_close(bus, -1));
}

}  // namespace
}  // namespace ringmain::tests
