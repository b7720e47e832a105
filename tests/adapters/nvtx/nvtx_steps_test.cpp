// Do the ranges that a user names become the steps and phases of train.step?
#include "adapters/sources/nvtx/nvtx_steps.hpp"

#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/nvtx/nvtx_source.hpp"

#include "tests/adapters/nvtx/fake_copy.hpp"

namespace ringmain::nvtx {
namespace {

using abi::EventAttributes;
using abi::Handle;
using abi::RangeId;
using step::Step;
using Copy = FakeCopy<1>;

/// The process has one source, so all tests share one bus. Inline subscribers hear in the call.
Bus& bus() {
  static Bus& only = *new Bus(BusOptions{});
  return only;
}

class NvtxStepsTest : public testing::Test {
 protected:
  NvtxStepsTest() {
    Copy::fill();
    EXPECT_TRUE(attach(bus(), Copy::get, nullptr));
    Copy::settle();
  }
  void rule(std::string_view written) {
    ASSERT_TRUE(publish_steps(bus(), written));
    seen_ = bus().channel<Step>().subscribe_inline([this](const Step& s) {
      said_.push_back((s.edge == step::Edge::begin ? "+" : "-") + std::to_string(s.step) +
                      std::string(s.phase.view()));
      EXPECT_EQ(s.took_ns > 0, s.edge == step::Edge::end);
    });
  }
  static void push(const char* text) { Copy::call<int(const char*)>(abi::kRangePushA, text); }
  static void pop() { Copy::call<int()>(abi::kRangePop); }
  static Handle domain(const char* name) {
    return Copy::call<Handle(const char*)>(abi::kDomainCreateA, name);
  }
  static void push_in(Handle domain, const char* text, std::int64_t payload = -1) {
    EventAttributes a{};
    a.version = 3;
    a.bytes = sizeof a;
    a.message_type = abi::kAscii;
    a.message.ascii = text;
    a.payload_type = payload < 0 ? 0 : static_cast<std::int32_t>(Payload::i64);
    a.payload.i64 = payload;
    Copy::call<int(Handle, const EventAttributes*)>(abi::kDomainRangePushEx, domain, &a);
  }
  static void pop_in(Handle domain) { Copy::call<int(Handle)>(abi::kDomainRangePop, domain); }
  std::vector<std::string> said() { return std::exchange(said_, {}); }

  std::vector<std::string> said_;
  Subscription seen_;
};
using Said = std::vector<std::string>;

TEST_F(NvtxStepsTest, ARangeThatFitsIsAStepWithTheNumberInItsMessage) {
  rule("step=ProfilerStep#*");
  push("ProfilerStep#12");
  push("something else 3");
  pop();
  pop();
  push("ProfilerStep#13/100");
  pop();
  push("Step#14");
  pop();
  EXPECT_EQ(said(), (Said{"+12", "-12", "+13", "-13"}));
}

TEST_F(NvtxStepsTest, WithoutANumberInTheMessageThePayloadCountsAndThenTheOrder) {
  rule("step=iteration@training");
  const Handle training = domain("training");
  for (const std::int64_t payload : {7, -1, -1, 8}) {
    push_in(training, "iteration", payload);
    pop_in(training);
  }
  push("iteration");  // of another domain
  pop();
  EXPECT_EQ(said(), (Said{"+7", "-7", "+1", "-1", "+2", "-2", "+8", "-8"}));
}

TEST_F(NvtxStepsTest, PhasesAreThoseOfAStepAndCalledAlikeInEachOfThem) {
  rule("step=step *,phase=*@*");
  push("outside");
  pop();
  const Handle other = domain("model");
  for (const char* const step : {"step 1", "step 2"}) {
    push(step);
    push(step[5] == '1' ? "layer #1" : "layer #2");
    pop();
    push_in(other, "7");
    pop_in(other);
    pop();
  }
  EXPECT_EQ(said(), (Said{"+1", "+1layer", "-1layer", "+17", "-17", "-1",  //
                          "+2", "+2layer", "-2layer", "+27", "-27", "-2"}));
}

TEST_F(NvtxStepsTest, AStartedRangeMayBeAStepThatAnotherThreadEnds) {
  rule("step=epoch*");
  const RangeId id = Copy::call<RangeId(const char*)>(abi::kRangeStartA, "epoch 3");
  std::thread([id] { Copy::call<void(RangeId)>(abi::kRangeEnd, id); }).join();
  EXPECT_EQ(said(), (Said{"+3", "-3"}));
}

TEST_F(NvtxStepsTest, AStepThatBeganUnheardDoesNotEnd) {
  rule("step=step*");
  seen_.reset();
  push("step 1");
  rule("step=step*");
  pop();
  EXPECT_EQ(said(), Said{});
}

TEST_F(NvtxStepsTest, WhatIsNotWrittenAsItShouldIsRefusedInASentence) {
  for (const char* const wrong :
       {"step", "step=", "steps=a", "phase=a", "step=a,", "step=@b", "x"}) {
    const auto read = StepRules::read(wrong);
    if (std::string_view(wrong) == "step=a,") {
      EXPECT_TRUE(read);
      continue;
    }
    ASSERT_FALSE(read) << wrong;
    EXPECT_NE(read.error().message.find("nvtx takes step=MESSAGE[@DOMAIN]"), std::string::npos);
  }
}

TEST(NvtxPatternTest, AStarIsAnyText) {
  EXPECT_TRUE(fits("", "*"));
  EXPECT_TRUE(fits("", ""));
  EXPECT_TRUE(fits("step 12 of 100", "step * of *"));
  EXPECT_TRUE(fits("aXbXc", "a*c"));
  EXPECT_TRUE(fits("aaab", "*ab"));
  EXPECT_FALSE(fits("step", "step *"));
  EXPECT_FALSE(fits("abc", "ab"));
  EXPECT_FALSE(fits("ab", "abc"));
  EXPECT_FALSE(fits(std::string(158, 'a'), "*a*a*a*a*a*a*b"));
}

}  // namespace
}  // namespace ringmain::nvtx
