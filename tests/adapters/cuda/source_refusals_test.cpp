// What if CUPTI refuses, or ends, while the source is attached? Nothing is taken for lost that is
// there, nothing is kept in silence, and the next source can come.
#include <atomic>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/adapters/cuda/source_fixture.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::cuda {
namespace {

constexpr auto kLong = std::chrono::minutes(10);

class SourceRefusalsTest : public SourceFixture {};

TEST_F(SourceRefusalsTest, OneQuestionThatFailsEndsNoSource) {
  auto heard = bus.heard<EventRecord>();
  {
    Source source = attached(bus);
    for (const int answer : {1, 15, 999}) {
      fake_cupti_answer("cuptiGetCallbackState", answer, 1, nullptr);
      EXPECT_EQ(source.state(), SourceState::attached) << answer;
    }
    record();
  }
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceRefusalsTest, OneQuestionThatFailsEndsNoSourceThatNobodyListensTo) {
  Source source = attached(bus);
  fake_cupti_answer("cuptiGetCallbackState", 15, 1, nullptr);
  EXPECT_EQ(source.state(), SourceState::attached);
  fake_cupti_answer("cuptiGetCallbackState", 15, 1000, nullptr);
  EXPECT_EQ(source.state(), SourceState::lost);
}

TEST_F(SourceRefusalsTest, WhatWasLostByMistakeIsEndedByTheNextSource) {
  const auto heard = bus.heard<EventRecord>();
  for (const std::uint32_t version : {28U, 130001U}) {  // which names nobody, and names us
    fake_cupti_version(version);
    Source source = attached(bus);
    fake_cupti_answer("cuptiGetCallbackState", 999, 1000, nullptr);
    EXPECT_EQ(source.state(), SourceState::lost);
    (void)source.detach();
    fake_cupti_answer("cuptiGetCallbackState", 0, 0, nullptr);
    Source next = attached(bus);
    EXPECT_EQ(fake_cupti_subscribers(), 1);
    record();
  }
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 2);
}

TEST_F(SourceRefusalsTest, AnotherToolIsNotSentAwayForWhatWasLost) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiGetCallbackState", 999, 1000, nullptr);
  EXPECT_EQ(source.state(), SourceState::lost);
  (void)source.detach();
  fake_cupti_answer("cuptiGetCallbackState", 0, 0, nullptr);
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"})
    fake_cupti_answer(function, 39, 1, "CUPTI for Kineto");
  EXPECT_FALSE(Source::attach(bus));
  EXPECT_EQ(fake_cupti_subscribers(), 1);
}

TEST_F(SourceRefusalsTest, AForeignEndIsFoundOutThoughNobodyAsks) {
  Bus live;
  std::atomic<bool> lost{false};
  const auto notices = live.channel<SourceNotice>().subscribe(
      [&](const SourceNotice& notice) { lost = lost || notice.state == SourceState::lost; });
  const Source source = attached(live);
  ASSERT_TRUE(live.wait_told(kLong));
  (void)cuptiFinalize();
  EXPECT_TRUE(tests::eventually([&] { return lost.load(); }));
}

TEST_F(SourceRefusalsTest, ACuptiThatNeverAnswersIsNotTakenForLost) {
  fake_cupti_answer("cuptiGetCallbackState", 1, 1000, nullptr);
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(source.state(), SourceState::attached);
  record();
  (void)source.detach();
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceRefusalsTest, EachLookIsOneQuestionWhileItIsThere) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  ASSERT_TRUE(bus.wait_told(kLong));
  auto before = fake_cupti_asked();
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(fake_cupti_asked(), before + 1);
  ASSERT_TRUE(source.lend("torch.profiler").value());
  before = fake_cupti_asked();
  ASSERT_TRUE(bus.wait_told(kLong));
  EXPECT_EQ(fake_cupti_asked(), before) << "nobody looks after what is lent";
  EXPECT_EQ(source.state(), SourceState::lent);
}

TEST_F(SourceRefusalsTest, AfterAForeignEndTheNextSourceHears) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  (void)cuptiFinalize();
  EXPECT_EQ(source.state(), SourceState::lost);
  (void)source.detach();
  Source next = attached(bus);
  record();
  (void)next.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceRefusalsTest, AForeignEndDuringALoanIsNoLoss) {
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  ASSERT_TRUE(source.lend("torch.profiler").value());
  (void)cuptiFinalize();
  EXPECT_EQ(source.state(), SourceState::lent);
  ASSERT_TRUE(source.take_back().value());
  record();
  (void)source.detach();
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
}

TEST_F(SourceRefusalsTest, ASubscriptionThatCuptiDoesNotEndIsSaid) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiUnsubscribe", 999, 1, nullptr);
  EXPECT_EQ(source.detach(), Detached::done);
  record();
  EXPECT_EQ(source.state(), SourceState::detached);
  EXPECT_EQ(fake_cupti_subscribers(), 1);
  Source next = attached(bus);  // ends it
  record();
  (void)next.detach();
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
  ASSERT_EQ(said.size(), 4);
  EXPECT_EQ(said[1].state, SourceState::detached);
  EXPECT_EQ(said[1].result, 999);
  EXPECT_NE(said[1].reason.view(), "");
  EXPECT_EQ(said[3].result, 0);
}

TEST_F(SourceRefusalsTest, WhatCuptiDoesNotLetGoOfIsNotLent) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiUnsubscribe", 999, 1, nullptr);
  EXPECT_FALSE(source.lend("torch.profiler"));
  EXPECT_EQ(source.state(), SourceState::attached);
  record();
  EXPECT_TRUE(source.lend("torch.profiler").value());
  EXPECT_EQ(fake_cupti_subscribers(), 0);
  bus.deliver();
  EXPECT_EQ(heard.size(), 1);
  ASSERT_EQ(said.size(), 3);
  EXPECT_EQ(said[1].state, SourceState::attached);
  EXPECT_EQ(said[1].result, 999);
  EXPECT_EQ(said[2].state, SourceState::lent);
}

TEST_F(SourceRefusalsTest, WhatCuptiRefusesLaterIsSaidOnceForEachChange) {
  const auto said = bus.heard<SourceNotice>();
  Source source = attached(bus);
  fake_cupti_answer("cuptiEnableCallback", 35, 1000, nullptr);
  const auto heard = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.wait_told(kLong));
  const auto more = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.wait_told(kLong));
  fake_cupti_answer("cuptiEnableCallback", 0, 0, nullptr);
  const auto again = bus.heard<EventRecord>();
  ASSERT_TRUE(bus.wait_told(kLong));
  (void)source.detach();
  bus.deliver();
  ASSERT_EQ(said.size(), 4);
  EXPECT_EQ(said[1].state, SourceState::attached);
  EXPECT_EQ(said[1].result, 35);
  EXPECT_NE(said[1].reason.view().find("calls cannot be told of"), std::string_view::npos);
  EXPECT_EQ(said[2].state, SourceState::attached);
  EXPECT_EQ(said[2].result, 0);
  EXPECT_EQ(said[3].state, SourceState::detached);
}

TEST_F(SourceRefusalsTest, WhatCuptiRefusesWhenItIsTakenBackIsSaid) {
  const auto said = bus.heard<SourceNotice>();
  const auto heard = bus.heard<EventRecord>();
  Source source = attached(bus);
  ASSERT_TRUE(source.lend("torch.profiler").value());
  fake_cupti_answer("cuptiEnableCallback", 35, 5, nullptr);
  ASSERT_TRUE(source.take_back().value());
  bus.deliver();
  ASSERT_EQ(said.size(), 3);
  EXPECT_EQ(said[2].state, SourceState::attached);
  EXPECT_EQ(said[2].result, 35);
  EXPECT_NE(said[2].reason.view().find("calls cannot be told of"), std::string_view::npos);
}

}  // namespace
}  // namespace ringmain::cuda
