// Does a training loop's place reach subscribers, nested as it was, however a scope is left?
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "events/steps/source.hpp"

namespace ringmain::step {
namespace {

class StepTest : public testing::Test {
 protected:
  StepTest()
      : hearing_(bus_.channel<Step>().subscribe([this](const Step& e) {
          said_.push_back(std::to_string(e.step) + "/" + std::string(e.phase.view()) + "/" +
                          std::to_string(e.micro_batch) +
                          (e.edge == Edge::begin ? " begin" : " end"));
          took_.push_back(e.took_ns);
        })),
        steps_(Source::attach(bus_).value()) {}
  const std::vector<std::string>& said() {
    EXPECT_TRUE(bus_.flush(std::chrono::seconds(30)));
    return said_;
  }

  Bus bus_;
  std::vector<std::string> said_;
  std::vector<std::int64_t> took_;
  Subscription hearing_;
  Source steps_;
};

TEST_F(StepTest, ScopesNestAndEachEventSaysWhereItBelongs) {
  const Name forward("forward");
  {
    const auto step = steps_.step(7);
    {
      const auto phase = steps_.phase(forward);
      const auto batch = steps_.micro_batch(2);
    }
    const auto batch = steps_.micro_batch(1);
  }
  EXPECT_EQ(said(), (std::vector<std::string>{
                        "7//0 begin", "7/forward/0 begin", "7/forward/2 begin", "7/forward/2 end",
                        "7/forward/0 end", "7//1 begin", "7//1 end", "7//0 end"}));
}

TEST_F(StepTest, AnEndKnowsHowLongItTookAndContainsWhatIsInside) {
  {
    const auto step = steps_.step(1);
    const auto phase = steps_.phase(Name("x"));
  }
  ASSERT_EQ(said().size(), 4u);
  EXPECT_EQ(took_[0], 0);
  EXPECT_GT(took_[2], 0);
  EXPECT_GE(took_[3], took_[2]);
}

TEST_F(StepTest, AScopeThatAnExceptionLeavesEnds) {
  EXPECT_EQ(steps_.current(), 0u);
  try {
    const auto step = steps_.step(3);
    EXPECT_EQ(steps_.current(), 3u);
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(steps_.current(), 0u);
  EXPECT_EQ(said().back(), "3//0 end");
}

TEST_F(StepTest, AMovedScopeEndsOnce) {
  {
    auto first = steps_.step(5);
    const auto second = std::move(first);
  }
  EXPECT_EQ(said(), (std::vector<std::string>{"5//0 begin", "5//0 end"}));
  const Ledger ledger = steps_.ledger();
  EXPECT_EQ(ledger.offered, 2u);
  EXPECT_EQ(ledger.dropped, 0u);
}

}  // namespace
}  // namespace ringmain::step
