// Does a process read what the run has said to it?
#include "adapters/launch/plan.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace ringmain::run {
namespace {

class PlanTest : public testing::Test {
 protected:
  void say(const Plan& plan) {
    for (const auto& [name, value] : plan.variables()) {
      variables_.push_back(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~PlanTest() override {
    for (const std::string& name : variables_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> variables_;
};

TEST_F(PlanTest, IsReadAsItWasSaid) {
  Plan plan;
  plan.sources = {"heartbeat:10", "nvtx:step=it *"};
  plan.sinks = {"json_lines:/tmp/a b.jsonl"};
  plan.except = {"bash", "make"};
  plan.at_use = true;
  plan.summary = true;
  plan.started_ns = 1'700'000'000'123'456'789;
  say(plan);
  const auto read = Plan::from_environment();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sources, plan.sources);
  EXPECT_EQ(read->sinks, plan.sinks);
  EXPECT_EQ(read->except, plan.except);
  EXPECT_FALSE(read->at_start);
  EXPECT_TRUE(read->at_use);
  EXPECT_TRUE(read->summary);
  EXPECT_EQ(read->started_ns, plan.started_ns);
}

TEST_F(PlanTest, AnEmptyOneIsEmptyAgain) {
  say(Plan{});
  const auto read = Plan::from_environment();
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->sources.empty() && read->sinks.empty() && read->except.empty());
  EXPECT_FALSE(read->at_start || read->at_use || read->summary);
}

TEST_F(PlanTest, OutsideOfARunThereIsNone) {
  EXPECT_FALSE(Plan::from_environment());
}

}  // namespace
}  // namespace ringmain::run
