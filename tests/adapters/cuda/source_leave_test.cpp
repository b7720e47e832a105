// What does the source say when its process ends, while threads may still call CUDA or ask for it?
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

class SourceLeaveTest : public SourceFixture {
 protected:
  static constexpr auto kPatience = std::chrono::minutes(10);
};

TEST_F(SourceLeaveTest, ItSaysItsCountsAndLeavesCuptiAlone) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  record();
  EXPECT_EQ(source.leave(kPatience), Detached::done);
  record();
  EXPECT_EQ(source.leave(kPatience), Detached::was_not_attached);
  EXPECT_EQ(source.state(), SourceState::detached);
  EXPECT_EQ(fake_cupti_subscribers(), 1);
  EXPECT_EQ(source.counts(), (Counts{.published = 1}));
  (void)source.detach();
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
  ASSERT_EQ(said.size(), 2) << "and not once more by detach()";
  EXPECT_EQ(said[1].state, SourceState::detached);
  EXPECT_EQ(said[1].published, 1);
  EXPECT_EQ(said[1].reason.view(), "");
  EXPECT_EQ(Source().leave(kPatience), Detached::was_not_attached);
}

TEST_F(SourceLeaveTest, ACallThatStandsStillIsNotWaitedForLongerThanTheLimit) {
  const auto said = bus.heard<SourceNotice>();
  Source source;
  Detached left = Detached::done;
  const auto inside = bus.channel<EventRecord>().subscribe_inline([&](const EventRecord&) {
    std::thread([&] { left = source.leave(nanoseconds(1)); }).join();
  });
  source = attached(bus);
  record();
  EXPECT_EQ(left, Detached::timeout);
  bus.deliver();
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(said[1].state, SourceState::detached);
  EXPECT_EQ(said[1].reason.view(), "calls whose events were still being published are not counted");
}

TEST_F(SourceLeaveTest, ItEndsAsWellWhileCuptiIsTakenBack) {
  for (const char* const function : {"cuptiSubscribe_v2", "cuptiEnableCallback"}) {
    SCOPED_TRACE(function);
    TestBus end;
    const auto said = end.heard<SourceNotice>();
    const auto heard = end.heard<EventRecord>();
    Source source = attached(end);
    ASSERT_TRUE(source.lend("a tool").value());
    fake_cupti_during(
        function,
        +[](void* with) {
          std::thread([&] {
            (void)static_cast<Source*>(with)->leave(std::chrono::minutes(10));
          }).join();
        },
        &source);
    EXPECT_FALSE(source.take_back().value());
    EXPECT_EQ(source.state(), SourceState::detached);
    record();
    end.deliver();
    EXPECT_EQ(heard.size(), 0) << "after the last counts";
    ASSERT_EQ(said.size(), 3) << "attached, lent, detached";
    EXPECT_EQ(said[2].state, SourceState::detached);
    EXPECT_FALSE(source.take_back().value());
  }
}

}  // namespace
}  // namespace ringmain::cuda
