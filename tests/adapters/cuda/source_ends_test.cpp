// How does the source come and go, and what does it say of itself?
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

constexpr auto kPatience = std::chrono::minutes(10);

class SourceEndsTest : public SourceFixture {};

TEST_F(SourceEndsTest, NothingIsEnabledWhileNobodyListens) {
  Source source = attached(bus);
  EXPECT_EQ(fake_cupti_enabled_count(), 1) << "CUPTI's own state";
  (void)source.detach();
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceEndsTest, OnlyWhatIsHeardIsEnabled) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  EXPECT_TRUE(fake_cupti_enabled(2, 135)) << "cudaEventRecord";
  EXPECT_TRUE(fake_cupti_enabled(1, 119)) << "cuEventRecord";
  EXPECT_TRUE(fake_cupti_enabled(2, 133)) << "cudaEventCreate, for the generation";
  EXPECT_FALSE(fake_cupti_enabled(2, 137)) << "cudaEventSynchronize";
  EXPECT_FALSE(fake_cupti_enabled(2, 20)) << "cudaMalloc";
}

TEST_F(SourceEndsTest, InterestIsFollowedWhileItIsAttached) {
  Bus live;
  Source source = attached(live);
  auto& channel = live.channel<StreamSynchronization>();
  auto one = channel.subscribe([](const StreamSynchronization&) {});
  ASSERT_TRUE(live.wait_told(kPatience));
  EXPECT_TRUE(fake_cupti_enabled(2, 131));
  auto other = channel.subscribe([](const StreamSynchronization&) {});
  one.reset();
  ASSERT_TRUE(live.wait_told(kPatience));
  EXPECT_TRUE(fake_cupti_enabled(2, 131));
  other.reset();
  ASSERT_TRUE(live.wait_told(kPatience));
  // CUPTI tells of it still, and nothing is made of that.
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(source.counts().published, 0u);
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(fake_cupti_enabled_count(), 0);
}

TEST_F(SourceEndsTest, ItSaysThatItCameAndLeftWithItsCounts) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  record();
  record();
  EXPECT_EQ(source.state(), SourceState::attached);
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(source.detach(), Detached::was_not_attached);
  EXPECT_EQ(source.state(), SourceState::detached);
  record();
  bus.deliver();
  EXPECT_EQ(heard.size(), 2);
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(said[0].state, SourceState::attached);
  EXPECT_EQ(said[0].cupti, 130001);
  EXPECT_EQ(said[1].state, SourceState::detached);
  EXPECT_EQ(said[1].published, 2);
  EXPECT_EQ(source.counts(), (Counts{.published = 2}));
}

TEST_F(SourceEndsTest, AnotherRoomForHandlesThanTheProcessHasIsSaid) {
  const auto said = bus.heard<SourceNotice>();
  (void)attached(bus).detach();  // makes the table, if it is the process's first
  bus.deliver();
  const std::size_t before = said.size();
  (void)attached(bus, {.handles = 4096}).detach();
  bus.deliver();
  ASSERT_EQ(said.size(), before + 2);
  EXPECT_EQ(said[before].reason.view(),
            "generations are kept of 65536 handles and not of 4096, as the first source of this "
            "process asked for that");
}

TEST_F(SourceEndsTest, ASecondBusIsToldTheNameOfTheFirst) {
  Bus first({.name = "training"});
  const auto said = bus.heard<SourceNotice>();
  Source source = attached(first);
  const auto second = Source::attach(bus);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Error::Code::conflict);
  EXPECT_NE(second.error().message.find("on another bus, 'training', already"), std::string::npos);
  const auto again = Source::attach(first);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("on this bus already"), std::string::npos);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].state, SourceState::unavailable);
  EXPECT_EQ(said[0].reason.view(), second.error().message);
  EXPECT_EQ(Source::state_in_process(), SourceState::attached);
  EXPECT_EQ(Source::state_in_process(&first), SourceState::attached);
  EXPECT_EQ(Source::state_in_process(&bus), std::nullopt);
  (void)source.detach();
  EXPECT_EQ(Source::state_in_process(), std::nullopt);
}

TEST_F(SourceEndsTest, WhoHasThePlaceIsNamed) {
  const auto said = bus.heard<SourceNotice>();
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"})
    fake_cupti_answer(function, 39, 1, "CUPTI for Kineto");
  const auto refused = Source::attach(bus);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::conflict);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].state, SourceState::unavailable);
  EXPECT_EQ(said[0].owner.view(), "Kineto");
  EXPECT_EQ(said[0].result, 39);
}

TEST_F(SourceEndsTest, MovedItStaysTheSameSource) {
  const auto heard = bus.heard<EventRecord>();
  Source first = attached(bus);
  Source second = std::move(first);
  EXPECT_EQ(first.detach(), Detached::was_not_attached);  // NOLINT: that is what is tested
  EXPECT_EQ(first.state(), SourceState::detached);
  record();
  second = Source();  // detaches
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  { const Source third = attached(bus); }
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceEndsTest, LentItHearsNothingUntilItIsBack) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  record();
  ASSERT_TRUE(source.lend("torch.profiler").value());
  EXPECT_FALSE(source.lend("another").value());
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  EXPECT_EQ(source.state(), SourceState::lent);
  record();
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"})
    fake_cupti_answer(function, 39, 1, "Kineto");
  EXPECT_FALSE(source.take_back().value()) << "still taken";
  ASSERT_TRUE(Source::take_back_in_process().value());
  EXPECT_FALSE(source.take_back().value()) << "it is back";
  record();
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 2);
  ASSERT_EQ(said.size(), 4);
  EXPECT_EQ(said[1].state, SourceState::lent);
  EXPECT_EQ(said[1].owner.view(), "torch.profiler");
  EXPECT_EQ(said[2].state, SourceState::attached);
  EXPECT_EQ(said[3].state, SourceState::detached);
}

TEST_F(SourceEndsTest, WhoHoldsDoesNotLend) {
  Source source = attached(bus, {.hold = true});
  EXPECT_FALSE(source.lend("torch.profiler"));
  EXPECT_EQ(source.state(), SourceState::attached);
}

TEST_F(SourceEndsTest, AFatalFaultIsSaidOnce) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  bus.deliver();
  fake_cupti_fatal(999, "the GPU has fallen off the bus");
  record();
  EXPECT_EQ(source.state(), SourceState::lost);
  bus.deliver();
  EXPECT_EQ(source.detach(), Detached::done);
  bus.deliver();
  EXPECT_TRUE(heard.empty());
  ASSERT_EQ(said.size(), 3);
  EXPECT_EQ(said[1].state, SourceState::lost);
  EXPECT_EQ(said[1].reason.view(), "the GPU has fallen off the bus");
  EXPECT_EQ(said[1].result, 999);
  EXPECT_EQ(said[2].state, SourceState::detached);
}

TEST_F(SourceEndsTest, WhatAnotherToolEndedIsLost) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiGetCallbackState", 15, 1000, nullptr);  // as after its cuptiFinalize()
  EXPECT_EQ(source.state(), SourceState::lost);
  EXPECT_EQ(source.state(), SourceState::lost);
  bus.deliver();
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(said[1].state, SourceState::lost);
  EXPECT_EQ(said[1].result, 15);
}

TEST_F(SourceEndsTest, WhatIsLostIsLeftAlone) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  (void)cuptiFinalize();
  EXPECT_EQ(source.state(), SourceState::lost);
  bus.deliver();
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(fake_cupti_dead_handles(), 0);
  bus.deliver();
  ASSERT_EQ(said.size(), 3);
  EXPECT_EQ(said[1].state, SourceState::lost);
  EXPECT_EQ(said[2].state, SourceState::detached);
}

TEST_F(SourceEndsTest, ALossThatIsFoundOutByLeavingIsSaid) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  (void)cuptiFinalize();
  EXPECT_FALSE(source.lend("torch.profiler").value());
  EXPECT_EQ(source.state(), SourceState::lost);
  (void)source.detach();
  fake_cupti_reset();
  source = attached(bus);
  (void)cuptiFinalize();
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(fake_cupti_dead_handles(), 0);
  bus.deliver();
  ASSERT_EQ(said.size(), 6);
  EXPECT_EQ(said[1].state, SourceState::lost);
  EXPECT_EQ(said[4].state, SourceState::lost);
  EXPECT_EQ(said[5].state, SourceState::detached);
}

TEST_F(SourceEndsTest, WhatCuptiRefusedIsAskedForWhenInterestIsToldAgain) {
  Source source = attached(bus);
  fake_cupti_answer("cuptiEnableCallback", 35, 1000, nullptr);
  const auto heard = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.wait_told(kPatience));
  fake_cupti_answer("cuptiEnableCallback", 0, 0, nullptr);
  const auto more = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.wait_told(kPatience));
  record();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceEndsTest, WhatCuptiRefusesIsSaid) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  fake_cupti_answer("cuptiEnableCallback", 35, 1000, nullptr);
  const auto refused = Source::attach(bus);
  ASSERT_FALSE(refused);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].state, SourceState::unavailable);
  EXPECT_EQ(said[0].result, 35);
}

TEST_F(SourceEndsTest, ADeliveryThatComesLateIsNotPublished) {
  const auto heard = bus.heard<EventRecord>();
  const auto gone = bus.heard<EventDeletion>();
  cudaEvent_t other = nullptr;
  ASSERT_EQ(cudaEventCreate(&other), cudaSuccess);
  Source source = attached(bus);
  (void)source.detach();
  fake_cupti_deliver_late(4);
  record();
  Source again = attached(bus);
  fake_cupti_deliver_late(4);
  record();
  fake_cupti_deliver_late(4);
  ASSERT_EQ(cudaEventDestroy(other), cudaSuccess);
  (void)again.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
  EXPECT_EQ(gone.size(), 1);
}

TEST_F(SourceEndsTest, ABusThatStopsIsNoHarm) {
  auto live = std::make_unique<Bus>();
  const auto heard = live->channel<EventRecord>().subscribe([](const EventRecord&) {});
  Source source = attached(*live);
  record();
  (void)live->stop();
  record();
  EXPECT_EQ(source.counts().published, 1);
  live.reset();
  record();
  std::thread(&SourceEndsTest_ABusThatStopsIsNoHarm_Test::record, this).join();
  EXPECT_EQ(source.detach(), Detached::done);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceEndsTest, OptionsOutsideTheirLimitsAreRefused) {
  const auto said = bus.heard<SourceNotice>();
  for (const Options& wrong : {Options{.handles = 0}, Options{.handles = 4294967295},
                               Options{.lane_events = 0}, Options{.lane_events = 4294967295}}) {
    const auto refused = Source::attach(bus, wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Error::Code::refused);
    bus.deliver();
    EXPECT_EQ(said.back().state, SourceState::unavailable);
    EXPECT_EQ(said.back().reason.view(), refused.error().message);
  }
  EXPECT_EQ(said.size(), 4);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceEndsTest, AnAttachedBusOfAnotherChannelTypeIsRefused) {
  struct Other {
    int x;
  };
  (void)bus.channel<Other>("cuda.event_record");
  const auto refused = Source::attach(bus);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::conflict);
  EXPECT_EQ(fake_cupti_subscribers(), 0);
}

TEST_F(SourceEndsTest, OtherLanesAreLivedWithAndSaid) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.channel<EventRecord>().set_thread_lanes({.capacity_events = 100}));
  Source source = attached(bus);
  record();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
  ASSERT_EQ(said.size(), 1);
  EXPECT_NE(said[0].reason.view().find("cuda.event_record"), std::string_view::npos);
}

/// What the child finds wrong, as a bit each.
int wrong_in_child(Source& source, Bus& bus, cudaEvent_t event, std::uint64_t served) {
  int wrong = 0;
  const auto published = source.counts().published;
  fake_cupti_deliver_late(1);
  (void)cudaEventRecord(event, nullptr);
  if (source.counts().published != published) wrong |= 1;
  if (source.detach() != Detached::was_not_attached) wrong |= 2;
  if (Source::attach(bus)) wrong |= 4;
  if (Source::state_in_process().has_value()) wrong |= 8;
  if (fake_cupti_enabled_count() != served) wrong |= 16;
  return wrong;
}

TEST_F(SourceEndsTest, AForkedChildIsInert) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  record();
  const unsigned enabled = fake_cupti_enabled_count();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(wrong_in_child(source, bus, event, enabled));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  record();
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 2) << "the parent goes on";
}

}  // namespace
}  // namespace ringmain::cuda
