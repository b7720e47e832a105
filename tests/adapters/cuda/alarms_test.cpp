// Is what deserves an alarm told, once, with the step, the call and the thread; and nothing else?
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "events/cuda_use.hpp"
#include "events/steps/source.hpp"

#include "adapters/launch/tid.hpp"
#include "adapters/sources/cuda/cuda_alarms.hpp"
#include "adapters/sources/cuda/traced.hpp"

#include "tests/adapters/cuda/source_fixture.hpp"

namespace ringmain::cuda {
namespace {

class AlarmsTest : public SourceFixture {
 protected:
  void watch(AlarmOptions options = {}) {
    alarms.emplace(bus, std::move(options));
    source = attached(bus);
  }
  /// All alarms of the run.
  const std::vector<Alarm>& finish() {
    (void)source.detach();
    EXPECT_TRUE(alarms->finish());
    bus.deliver();
    return said.events();
  }
  static void make_events(int count) {
    for (int i = 0; i < count; ++i) {
      cudaEvent_t made = nullptr;
      ASSERT_EQ(cudaEventCreate(&made), cudaSuccess);
    }
  }
  static void grow(std::size_t bytes) {
    void* made = nullptr;
    ASSERT_EQ(cudaMalloc(&made, bytes), cudaSuccess);
  }

  const Name forward{"forward"};
  Heard<Alarm> said = bus.heard<Alarm>();
  step::Source steps = step::Source::attach(bus).value();
  std::optional<Alarms> alarms;
  Source source;
};

TEST_F(AlarmsTest, ASynchronizationInsideAStepIsSaidWithItsStepCallAndThread) {
  watch();
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  {
    const auto step = steps.step(12);
    const auto phase = steps.phase(forward);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(finish().size(), 1);
  const Alarm& alarm = said[0];
  EXPECT_EQ(alarm.kind, AlarmKind::synchronization);
  EXPECT_EQ(alarm.api.view(), "cudaStreamSynchronize");
  EXPECT_EQ(alarm.step, 12);
  EXPECT_EQ(alarm.phase, forward);
  EXPECT_EQ(alarm.thread, static_cast<std::int32_t>(run::this_tid()));
  EXPECT_EQ(alarm.stream, reinterpret_cast<std::uintptr_t>(stream));
  EXPECT_EQ(alarm.count, 1);
  EXPECT_EQ(alarm.device, 0);
  EXPECT_EQ(alarm.context, fake_cuda_context_uid());
}

TEST_F(AlarmsTest, OneOutsideOfStepsAndOneThatIsAllowedAreNone) {
  AlarmOptions options;
  options.allowed = {"cudaEventSynchronize", "forward"};
  watch(options);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  {
    const auto step = steps.step(1);
    ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
    const auto phase = steps.phase(forward);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(finish().empty());
  EXPECT_EQ(alarms->figures().synchronizations, 0);
}

TEST_F(AlarmsTest, OneCauseIsSaidOnceAndAtTheEndWithHowOftenItCame) {
  watch();
  for (std::uint64_t number = 1; number <= 9; ++number) {
    const auto step = steps.step(number);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].count, 1);
  EXPECT_EQ(said[0].step, 1);
  ASSERT_EQ(finish().size(), 2);
  EXPECT_EQ(said[1].count, 9);
  EXPECT_EQ(said[1].step, 9);
  EXPECT_TRUE(alarms->finish());  // a second one says nothing
  bus.deliver();
  EXPECT_EQ(said.size(), 2);
}

TEST_F(AlarmsTest, EventsAndStreamsThatAreNeverDeletedAreSaidByTheCallsThatMadeThem) {
  watch();
  cudaStream_t stream = nullptr;
  {
    const auto step = steps.step(3);
    make_events(2);
  }
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(source.detach(), Detached::done);
  bus.deliver();
  ASSERT_EQ(said.size(), 2);
  EXPECT_EQ(said[0].kind, AlarmKind::leaked_events);
  EXPECT_EQ(said[0].count, 2);
  EXPECT_EQ(said[0].step, 3);
  EXPECT_EQ(said[0].api.view(), "cudaEventCreate");
  EXPECT_GT(said[0].generation, 0);
  EXPECT_NE(said[0].address, 0);
  EXPECT_EQ(said[1].kind, AlarmKind::leaked_streams);
  EXPECT_EQ(said[1].stream, reinterpret_cast<std::uintptr_t>(stream));
  EXPECT_EQ(said[1].step, kNoStep);
  EXPECT_EQ(finish().size(), 2);  // once
  EXPECT_EQ(alarms->figures().leaked_events, 2);
  EXPECT_EQ(alarms->figures().leaked_streams, 1);
}

TEST_F(AlarmsTest, WhatIsDeletedIsNoLeakUnlessCudaRefused) {
  watch();
  cudaEvent_t one = nullptr, two = nullptr;
  ASSERT_EQ(cudaEventCreate(&one), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&two), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(one), cudaSuccess);
  fake_cuda_fail("cuEventDestroy_v2", 1, 1);
  ASSERT_NE(cudaEventDestroy(two), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);  // from before
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  ASSERT_EQ(finish().size(), 1);
  EXPECT_EQ(said[0].address, reinterpret_cast<std::uintptr_t>(two));
  EXPECT_EQ(said[0].count, 1);
}

TEST_F(AlarmsTest, AContextThatEndsTakesItsHandlesAndTheyAreSaidThen) {
  watch();
  make_events(1);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].kind, AlarmKind::leaked_events);
  EXPECT_EQ(finish().size(), 1);
}

TEST_F(AlarmsTest, AtTheEndOfARunLeaksAreSaidWithoutASourceThatLeft) {
  watch();
  make_events(3);
  EXPECT_TRUE(alarms->finish());
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].count, 3);
}

TEST_F(AlarmsTest, MemoryThatRisesFromStepToStepIsSaidAfterTheWarmUp) {
  AlarmOptions options;
  options.warmup_steps = 4;
  options.rising_steps = 3;
  options.rising_bytes = 3000;
  watch(options);
  for (std::uint64_t number = 1; number <= 6; ++number) {
    const auto step = steps.step(number);
    const auto phase = steps.phase(forward);
    grow(1000);
  }
  bus.deliver();
  EXPECT_TRUE(said.empty());
  {
    const auto step = steps.step(7);
    grow(1000);
  }
  ASSERT_EQ(finish().size(), 1);
  EXPECT_EQ(said[0].kind, AlarmKind::growth);
  EXPECT_EQ(said[0].step, 7);
  EXPECT_EQ(said[0].bytes, 3000);
  EXPECT_EQ(said[0].api.view(), "cudaMalloc");
  EXPECT_EQ(said[0].thread, static_cast<std::int32_t>(run::this_tid()));
}

TEST_F(AlarmsTest, MemoryThatIsTakenBackOrRisesTooLittleIsNoGrowth) {
  AlarmOptions options;
  options.warmup_steps = 0;
  options.rising_steps = 2;
  options.rising_bytes = 1000;
  watch(options);
  for (std::uint64_t number = 1; number <= 8; ++number) {
    const auto step = steps.step(number);
    void* made = nullptr;
    ASSERT_EQ(cudaMalloc(&made, 4096), cudaSuccess);
    ASSERT_EQ(cudaFree(made), cudaSuccess);
    void* host = nullptr;
    ASSERT_EQ(cudaMallocHost(&host, 4096), cudaSuccess);  // no memory of the device
    if (number < 3) grow(100);                            // too few bytes, and then none
    if (number == 5 || number == 7) grow(4096);           // not in each step
  }
  EXPECT_TRUE(finish().empty());
}

TEST_F(AlarmsTest, AStepThatTakesBackWhatIsOfUnknownSizeIsNoRise) {
  void* before[3] = {};
  for (void*& one : before) ASSERT_EQ(cudaMalloc(&one, 1 << 20), cudaSuccess);
  AlarmOptions options;
  options.warmup_steps = 0;
  options.rising_steps = 2;
  options.rising_bytes = 1;
  watch(options);
  for (std::uint64_t number = 0; number < 3; ++number) {
    const auto step = steps.step(number);
    grow(4096);
    ASSERT_EQ(cudaFree(before[number]), cudaSuccess);
  }
  EXPECT_TRUE(finish().empty());
}

TEST_F(AlarmsTest, WhatIsNotTakenBackIsTakenOffOnce) {
  AlarmOptions options;
  options.warmup_steps = 1;
  options.rising_steps = 1;
  options.rising_bytes = 1;
  bool refuses = true;
  const auto veto = bus.channel<CallBegin>().subscribe_inline([&](const CallBegin& begin) {
    const bool its = refuses && begin.kind == CallKind::memory_deallocation;
    return its ? ringmain::Verdict::veto(Name("not yet")) : ringmain::Verdict::allow();
  });
  watch(options);
  void* made = nullptr;
  ASSERT_EQ(cudaMalloc(&made, 4096), cudaSuccess);
  for (std::uint64_t number = 1; number <= 8; ++number) {
    const auto step = steps.step(number);
    void* other = nullptr;
    ASSERT_EQ(cudaMalloc(&other, 64), cudaSuccess);
    ASSERT_EQ(cudaFree(other), cudaSuccess);
    fake_cuda_fail("cudaFree", 1, refuses ? 0 : 1);
    EXPECT_NE(traced::cudaFree(made), 0);
    refuses = !refuses;  // a subscriber does, then CUDA
  }
  EXPECT_TRUE(finish().empty());
}

TEST_F(AlarmsTest, TwoStreamsWithoutAnOrderAreSaidAndTwoWithOneAreNot) {
  watch();
  cudaStream_t one = nullptr, two = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking), cudaSuccess);
  void* buffer = nullptr;
  ASSERT_EQ(cudaMalloc(&buffer, 4096), cudaSuccess);
  const auto use = [&](cudaStream_t stream, const char* by, Access access) {
    bus.channel<BufferUse>().post({.address = reinterpret_cast<std::uintptr_t>(buffer),
                                   .bytes = 4096,
                                   .stream = reinterpret_cast<std::uintptr_t>(stream),
                                   .thread = 5,
                                   .by = Name(by),
                                   .access = access});
  };
  const auto step = steps.step(2);
  use(one, "fill", Access::write);
  ASSERT_EQ(cudaEventRecord(event, one), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
  use(two, "reduce", Access::read);
  bus.deliver();
  EXPECT_TRUE(said.empty());
  use(one, "fill", Access::write);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].kind, AlarmKind::race);
  EXPECT_EQ(said[0].api.view(), "fill");
  EXPECT_EQ(said[0].other_api.view(), "reduce");
  EXPECT_EQ(said[0].stream, reinterpret_cast<std::uintptr_t>(one));
  EXPECT_EQ(said[0].other_stream, reinterpret_cast<std::uintptr_t>(two));
  EXPECT_EQ(said[0].step, 2);
  EXPECT_EQ(said[0].bytes, 4096);
  ASSERT_EQ(cudaStreamDestroy(one), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(two), cudaSuccess);
}

TEST_F(AlarmsTest, WhereEventsWereLostNothingIsMadeOfIt) {
  alarms.emplace(bus);
  source = attached(bus, {.lane_events = 64});
  for (int i = 0; i < 300; ++i) {
    cudaEvent_t made = nullptr;
    ASSERT_EQ(cudaEventCreate(&made), cudaSuccess);
    ASSERT_EQ(cudaEventDestroy(made), cudaSuccess);
  }
  const ChannelStats lost = bus.channel<EventDeletion>().stats();
  ASSERT_GT(lost.full, 0);
  EXPECT_TRUE(finish().empty());
  EXPECT_GE(alarms->figures().restarts, 1);
}

TEST_F(AlarmsTest, WhileCuptiIsLentNothingIsTakenForALeak) {
  watch();
  cudaEvent_t made = nullptr;
  ASSERT_EQ(cudaEventCreate(&made), cudaSuccess);
  ASSERT_TRUE(source.lend("a profiler").value());
  ASSERT_EQ(cudaEventDestroy(made), cudaSuccess);
  ASSERT_TRUE(source.take_back().value());
  EXPECT_TRUE(finish().empty());
  EXPECT_EQ(alarms->figures().restarts, 1);
}

TEST_F(AlarmsTest, OnlyWhatTheyNeedIsAskedOfCupti) {
  AlarmOptions options;
  options.races = false;
  watch(options);
  EXPECT_TRUE(fake_cupti_enabled(2, 131));   // cudaStreamSynchronize
  EXPECT_FALSE(fake_cupti_enabled(2, 135));  // cudaEventRecord
  EXPECT_TRUE(finish().empty());
}

TEST_F(AlarmsTest, ThereIsRoomForSoManyCausesAndOthersAreCounted) {
  watch();
  std::vector<Name> phases;
  for (std::size_t i = 0; i < Alarms::kCausesMax + 5; ++i)
    phases.emplace_back("phase " + std::to_string(i));
  const auto step = steps.step(1);
  for (const Name phase : phases) {
    const auto in = steps.phase(phase);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    bus.deliver();
  }
  EXPECT_EQ(finish().size(), Alarms::kCausesMax);
  EXPECT_EQ(alarms->figures().unkept, 5);
  EXPECT_EQ(alarms->figures().synchronizations, Alarms::kCausesMax + 5);
}

TEST_F(AlarmsTest, WhatItIsToldToThrowsKeepsNothingElseFromBeingSaid) {
  int calls = 0;
  alarms.emplace(bus, AlarmOptions(), [&calls](const Alarm&) {
    ++calls;
    throw std::runtime_error("a log that is full");
  });
  source = attached(bus);
  make_events(1);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_THROW(alarms->finish(), std::runtime_error);
  bus.deliver();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(said.size(), 2);
}

TEST_F(AlarmsTest, OptionsThatCannotBeAreRefused) {
  AlarmOptions empty;
  empty.allowed = {"forward", ""};  // would be each wait outside of phases
  EXPECT_THROW(Alarms(bus, empty), std::invalid_argument);
  AlarmOptions none;
  none.synchronization = none.leaks = none.growth = none.races = false;
  EXPECT_THROW(Alarms(bus, none), std::invalid_argument);
  AlarmOptions never;
  never.rising_steps = 0;
  EXPECT_THROW(Alarms(bus, never), std::invalid_argument);
}

TEST_F(AlarmsTest, OnesThatComeToAnAttachedSourceJudgeNothingFromBefore) {
  Bus live;
  Source there = attached(live);
  auto found = live.channel<Alarm>().mailbox();
  cudaEvent_t before = nullptr, later = nullptr;
  ASSERT_EQ(cudaEventCreate(&before), cudaSuccess);
  Alarms late(live);
  ASSERT_EQ(cudaEventCreate(&later), cudaSuccess);
  ASSERT_EQ(there.detach(), Detached::done);
  EXPECT_TRUE(late.finish());
  ASSERT_TRUE(live.flush(std::chrono::minutes(10)));
  std::vector<Alarm> heard;
  found.drain([&](const Alarm& alarm) { heard.push_back(alarm); });
  ASSERT_EQ(heard.size(), 1);
  EXPECT_EQ(heard[0].address, reinterpret_cast<std::uintptr_t>(later));
  EXPECT_EQ(late.figures().leaked_events, 1);
}

}  // namespace
}  // namespace ringmain::cuda
