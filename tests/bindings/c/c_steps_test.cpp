// Do steps that C says nest as C++ hears them, is the step of an event known, and is every wrong
// end refused?
#include <string>
#include <thread>
#include <vector>

#include "bus/bus.hpp"

#include "events/step.hpp"

#include "tests/bindings/c/c_support.hpp"

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

/// Keeps where each tick was said.
struct Places {
  const ringmain_step_follow* follow;
  std::vector<std::string> said{};
  static void hear(void* user, const ringmain_event* event) {
    auto& self = *static_cast<Places*>(user);
    ringmain_step_place place{};
    place.bytes = sizeof place;
    const ringmain_code code = ringmain_step_of(self.follow, event, &place);
    std::size_t bytes = 0;
    const char* phase = ringmain_name_text(place.phase, &bytes);
    self.said.push_back(code == RINGMAIN_OK
                            ? std::to_string(place.step) + "/" + std::string(phase, bytes) + "/" +
                                  std::to_string(place.micro_batch)
                            : ringmain_code_name(code));
  }
};

class CPlacesTest : public CBusTest {
 protected:
  CPlacesTest() {
    expect_ok(ringmain_step_follow_open(bus_, &follow_));
    expect_ok(ringmain_steps_open(bus_, &steps_));
  }
  ~CPlacesTest() override {
    ringmain_steps_close(steps_);
    ringmain_step_follow_close(follow_);
  }
  void hear(bool stamped) {
    places_.follow = follow_;
    ringmain_subscribe_options options{};
    options.bytes = sizeof options;
    options.stamped = stamped ? 1 : 0;
    expect_ok(ringmain_subscribe(ticks_, &Places::hear, &places_, nullptr, &options, &seen_));
  }
  /// Heard before the next one is said: lanes of two threads are heard in any order.
  void say() {
    expect_ok(publish(1));
    expect_ok(ringmain_flush(bus_, -1));
  }
  std::vector<std::string> said() {
    expect_ok(ringmain_flush(bus_, -1));
    expect_ok(ringmain_unsubscribe(seen_, -1));
    ringmain_subscription_free(seen_);
    return places_.said;
  }

  ringmain_steps* steps_ = nullptr;
  ringmain_step_follow* follow_ = nullptr;
  ringmain_subscription* seen_ = nullptr;
  Places places_{nullptr};
};

TEST_F(CPlacesTest, AnEventKnowsItsStepOnWhicheverThreadItWasSaid) {
  hear(true);
  say();
  expect_ok(ringmain_step_begin(steps_, 7));
  say();
  expect_ok(ringmain_phase_begin(steps_, ringmain_name("forward", 7)));
  std::thread([this] { say(); }).join();
  expect_ok(ringmain_micro_batch_begin(steps_, 2));
  say();
  for (int i = 0; i < 3; ++i) expect_ok(ringmain_step_end(steps_));
  say();
  EXPECT_EQ(said(), (std::vector<std::string>{"not_found", "7//0", "7/forward/0", "7/forward/2",
                                              "not_found"}));
}

TEST_F(CPlacesTest, WithoutItsPublishersTimeItIsNotGuessedAt) {
  hear(false);
  expect_ok(ringmain_step_begin(steps_, 7));
  say();
  EXPECT_EQ(said(), std::vector<std::string>{"not_found"});
}

TEST_F(CPlacesTest, NullIsRefused) {
  ringmain_step_follow* none = nullptr;
  const ringmain_event event{};
  ringmain_step_place place{};
  expect_error(ringmain_step_follow_open(nullptr, &none), RINGMAIN_REFUSED, "bus is NULL");
  expect_error(ringmain_step_follow_open(bus_, nullptr), RINGMAIN_REFUSED, "follow is NULL");
  expect_error(ringmain_step_of(nullptr, &event, &place), RINGMAIN_REFUSED, "follow is NULL");
  expect_error(ringmain_step_of(follow_, nullptr, &place), RINGMAIN_REFUSED, "event is NULL");
  expect_error(ringmain_step_of(follow_, &event, nullptr), RINGMAIN_REFUSED, "place is NULL");
  ringmain_step_follow_close(nullptr);
}

TEST(CPlacesOfAClosedBusTest, AFollowMayBeClosedBehindItsBus) {
  ringmain_bus* bus = nullptr;
  ringmain_step_follow* follow = nullptr;
  expect_ok(ringmain_open(nullptr, &bus));
  expect_ok(ringmain_step_follow_open(bus, &follow));
  expect_ok(ringmain_close(bus, -1));
  ringmain_step_follow_close(follow);
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
