// What makes an order between two uses, and what does not? Rule by rule, on events made by hand.
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cuda_hazards.hpp"

namespace ringmain::cuda::hazards {
namespace {

constexpr std::uint64_t kBuffer = 0x7000, kOne = 0x51, kTwo = 0x52, kEvent = 0xE1;

class HazardsTest : public testing::Test {
 protected:
  HazardsTest() {
    hazards.hear(ContextEvent{.context = 1});
    make(kOne, true);
    make(kTwo, true);
  }
  void make(std::uint64_t stream, bool non_blocking) {
    StreamCreation call{.stream = stream, .flags = non_blocking ? 1u : 0u, .result = 0};
    call.context = 1;
    hazards.hear(call);
  }
  template <class Call>
  void hear(Call call, Phase phase = Phase::instant, std::int32_t result = 0) {
    call.context = 1;
    call.phase = phase;
    call.result = result;
    hazards.hear(call);
  }
  void use(std::uint64_t stream, Access access = Access::write, std::uint64_t at = kBuffer,
           std::uint64_t bytes = 16) {
    hazards.hear(
        BufferUse{.address = at, .bytes = bytes, .stream = stream, .context = 1, .access = access});
  }
  void record(std::uint64_t stream, std::uint32_t flags = 0) {
    hear(EventRecord{.event = kEvent, .stream = stream, .flags = flags});
  }
  void wait(std::uint64_t stream) { hear(EventWait{.event = kEvent, .stream = stream}); }
  void synchronize(std::uint64_t stream, std::int32_t result = 0) {
    hear(StreamSynchronization{.stream = stream}, Phase::begin, kNoResult);
    hear(StreamSynchronization{.stream = stream}, result == 0 ? Phase::end : Phase::failed, result);
  }
  /// Whether the pair of the last two uses races; there is exactly one pair.
  [[nodiscard]] bool races() const {
    EXPECT_EQ(verdicts.size(), 1);
    return !verdicts.empty() && verdicts.front().race;
  }

  std::vector<Judgement> verdicts;
  Hazards hazards{[this](const Judgement& verdict) { verdicts.push_back(verdict); }};
};

TEST_F(HazardsTest, TwoStreamsWithoutAnOrderRaceAndBothSidesAreTold) {
  hazards.hear(step::Step{.step = 7, .edge = step::Edge::begin});
  hazards.hear(BufferUse{.address = kBuffer,
                         .bytes = 16,
                         .stream = kOne,
                         .context = 1,
                         .device = 3,
                         .thread = 11,
                         .by = Name("scale"),
                         .access = Access::write});
  hazards.hear(step::Step{.step = 7, .edge = step::Edge::end});
  hazards.hear(BufferUse{.address = kBuffer + 8,
                         .bytes = 16,
                         .stream = kTwo,
                         .context = 1,
                         .thread = 12,
                         .by = Name("add"),
                         .access = Access::read});
  ASSERT_TRUE(races());
  const Judgement& race = verdicts.front();
  EXPECT_EQ(race.earlier.stream, kOne);
  EXPECT_EQ(race.earlier.step, 7);
  EXPECT_EQ(race.earlier.thread, 11);
  EXPECT_EQ(race.earlier.device, 3);
  EXPECT_EQ(race.earlier.by.view(), "scale");
  EXPECT_EQ(race.later.stream, kTwo);
  EXPECT_EQ(race.later.step, -1);
  EXPECT_EQ(race.later.by.view(), "add");
  EXPECT_EQ(race.address, kBuffer + 8);
  EXPECT_EQ(race.bytes, 8);
}

TEST_F(HazardsTest, ReadsAndOtherBytesAndOneStreamMakeNoPair) {
  use(kOne, Access::read);
  use(kTwo, Access::read);
  use(kTwo, Access::read, kBuffer + 16);
  use(kOne, Access::write, kBuffer + 32);
  use(kOne, Access::write, kBuffer + 32);
  EXPECT_TRUE(verdicts.empty());
  EXPECT_EQ(hazards.figures().uses, 5);
}

TEST_F(HazardsTest, AUseIsComparedOnceWithEachOfManyWhicheverPiecesTheyLieIn) {
  constexpr std::uint64_t kMany = 50;
  for (std::uint64_t i = 0; i < kMany; ++i) use(kOne, Access::read, kBuffer + 64 * i, 64);
  for (std::uint64_t i = 0; i < kMany; ++i) use(kOne, Access::write, kBuffer + 64 * i + 16, 16);
  use(kTwo, Access::write, kBuffer, 64 * kMany);
  EXPECT_EQ(verdicts.size(), 2 * kMany);
}

TEST_F(HazardsTest, ARecordThatIsWaitedForIsAnOrderAndALaterUseIsNotInIt) {
  use(kOne);
  record(kOne);
  wait(kTwo);
  use(kTwo, Access::read);
  EXPECT_FALSE(races());
  verdicts.clear();
  use(kOne);  // after the record, and nothing waits for the read
  EXPECT_TRUE(races());
}

TEST_F(HazardsTest, CallsThatFailedMakeNoOrder) {
  use(kOne);
  hear(EventRecord{.event = kEvent, .stream = kOne}, Phase::failed, 400);
  wait(kTwo);
  synchronize(kOne, 700);
  use(kTwo);
  EXPECT_TRUE(races());
}

TEST_F(HazardsTest, ADeletionThatFailedChangesNothing) {
  use(kOne);
  record(kOne);
  hear(EventDeletion{.event = kEvent}, Phase::instant, kNoResult);
  hear(EventDeletion{.event = kEvent}, Phase::failed, 1);
  wait(kTwo);
  hear(StreamDeletion{.stream = kTwo}, Phase::instant, kNoResult);
  hear(StreamDeletion{.stream = kTwo}, Phase::failed, 1);
  use(kTwo);
  EXPECT_FALSE(races());
  EXPECT_EQ(hazards.figures().unjudged, 0);
}

TEST_F(HazardsTest, AHandleThatComesAgainIsAnotherStream) {
  use(kOne);
  hear(StreamDeletion{.stream = kOne}, Phase::instant, kNoResult);
  make(kOne, true);
  use(kOne);
  EXPECT_TRUE(races());
}

TEST_F(HazardsTest, OnlyWhatWasThereBeforeASynchronizationBeganIsWaitedFor) {
  use(kOne);
  hear(StreamSynchronization{.stream = kOne}, Phase::begin, kNoResult);
  use(kOne, Access::read);
  hear(StreamSynchronization{.stream = kOne}, Phase::end);
  use(kTwo);
  ASSERT_EQ(verdicts.size(), 2);
  EXPECT_FALSE(verdicts[0].race && verdicts[1].race);
  EXPECT_TRUE(verdicts[0].race || verdicts[1].race);
}

TEST_F(HazardsTest, AnEndWhoseBeginWasNotHeardWaitedForAll) {
  use(kOne);
  hear(EventSynchronization{.event = kEvent}, Phase::end);
  use(kTwo);
  EXPECT_FALSE(races());
}

TEST_F(HazardsTest, TheLegacyStreamOrdersStreamsThatAreNotNonBlocking) {
  constexpr std::uint64_t kThree = 0x53, kFour = 0x54;
  make(kThree, false);
  make(kFour, false);
  use(kThree);
  use(0, Access::write, kBuffer + 64);
  use(kFour);
  EXPECT_FALSE(races());
  verdicts.clear();
  use(1, Access::write, kBuffer + 64);  // the legacy stream by its own name
  EXPECT_TRUE(verdicts.empty());
  use(kOne);
  ASSERT_EQ(verdicts.size(), 2);
  EXPECT_TRUE(verdicts[0].race && verdicts[1].race);
}

TEST_F(HazardsTest, WhatIsCapturedIsNotDoneAndNotJudged) {
  hear(Capture{.stream = kOne, .step = CaptureStep::begin});
  use(kOne);
  record(kOne);
  wait(kTwo);  // becomes part of it
  use(kTwo);
  EXPECT_EQ(hazards.figures().unjudged, 2);
  hear(Capture{.stream = kOne, .step = CaptureStep::end});
  use(kTwo);
  EXPECT_TRUE(verdicts.empty());
  use(kOne);
  EXPECT_TRUE(races());
}

TEST_F(HazardsTest, AnEventThatGraphsRecordOrdersAllThatWasBefore) {
  hear(Capture{.stream = kOne, .step = CaptureStep::begin});
  record(kOne, 1);  // cudaEventRecordExternal
  hear(Capture{.stream = kOne, .step = CaptureStep::end});
  use(kOne);
  wait(kTwo);
  use(kTwo);
  EXPECT_FALSE(races());
}

TEST_F(HazardsTest, AStreamFromBeforeIsJudgedOnceItIsKnownNotToCapture) {
  constexpr std::uint64_t kOld = 0x61;
  hazards.forget();
  use(kOld);
  EXPECT_EQ(hazards.figures().unjudged, 1);
  synchronize(kOld);
  use(kOld);
  EXPECT_EQ(hazards.figures().unjudged, 1);
  make(kOne, true);
  use(kOne);
  EXPECT_TRUE(races());
}

TEST_F(HazardsTest, ASynchronizationWithTheDeviceSettlesWhatWasDoubted) {
  constexpr std::uint64_t kOld = 0x61;
  hazards.forget();
  use(kOld);
  hear(DeviceSynchronization{}, Phase::begin, kNoResult);
  hear(DeviceSynchronization{}, Phase::end);
  use(kOld);
  EXPECT_EQ(hazards.figures().unjudged, 1);
}

TEST_F(HazardsTest, MemoryOnAStreamIsThereAfterItsAllocationAndUntilItsDeallocation) {
  MemoryAllocation made{.address = kBuffer, .bytes = 64, .stream = kOne, .api = Name("made")};
  made.memory = MemoryClass::stream_ordered;
  hear(made);
  use(kTwo, Access::read);
  EXPECT_TRUE(races());
  EXPECT_EQ(verdicts.front().earlier.by.view(), "made");
  verdicts.clear();
  synchronize(kOne);
  synchronize(kTwo);
  MemoryDeallocation gone{.address = kBuffer, .bytes = 64, .stream = kOne, .api = Name("gone")};
  gone.memory = MemoryClass::stream_ordered;
  hear(gone, Phase::instant, kNoResult);
  verdicts.clear();
  use(kTwo, Access::read);
  EXPECT_TRUE(races());
  EXPECT_EQ(verdicts.front().earlier.by.view(), "gone");
}

TEST_F(HazardsTest, MemoryThatIsAnotherBufferNowHasNoHistory) {
  use(kOne);
  MemoryDeallocation gone{.address = kBuffer, .bytes = 16};
  gone.memory = MemoryClass::device;
  hear(gone, Phase::instant, kNoResult);
  use(kTwo);
  EXPECT_TRUE(verdicts.empty());
  MemoryAllocation made{.address = kBuffer + 8, .bytes = 16};
  made.memory = MemoryClass::device;
  hear(made);
  use(kOne, Access::write, kBuffer, 24);
  ASSERT_EQ(verdicts.size(), 1);  // by the first eight bytes
  EXPECT_TRUE(verdicts.front().race);
}

TEST_F(HazardsTest, AContextThatEndsAndASourceThatComesOrGoesLeaveNothing) {
  use(kOne);
  hear(ContextEvent{.change = ContextChange::destroyed}, Phase::instant, kNoResult);
  make(kTwo, true);
  use(kTwo);
  hazards.hear(SourceNotice{.state = SourceState::lent});
  make(kOne, true);
  use(kOne);
  EXPECT_TRUE(verdicts.empty());
  EXPECT_EQ(hazards.figures().forgotten, 2);
}

TEST_F(HazardsTest, AUseWhoseDefaultStreamCannotBeToldMakesItBeginAnew) {
  hazards.hear(ContextEvent{.context = 2});
  use(kOne);
  hazards.hear(BufferUse{.address = kBuffer, .bytes = 4, .stream = 0, .access = Access::write});
  EXPECT_TRUE(verdicts.empty());
  EXPECT_EQ(hazards.figures().unjudged, 1);
  EXPECT_EQ(hazards.figures().forgotten, 1);
}

TEST(HazardsWithoutTellTest, NobodyToTellIsRefusedAtOnce) {
  EXPECT_THROW(Hazards({}), std::invalid_argument);
}

}  // namespace
}  // namespace ringmain::cuda::hazards
