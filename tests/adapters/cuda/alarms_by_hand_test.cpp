// What do alarms make of events that no program here can call forth? By events that are made by
// hand.
#include <gtest/gtest.h>

#include "bus/test_bus.hpp"

#include "events/step.hpp"

#include "adapters/sources/cuda/cuda_alarms.hpp"

namespace ringmain::cuda {
namespace {

class AlarmsByHandTest : public testing::Test {
 protected:
  void make(std::uint64_t event, std::int32_t device, std::uint32_t context) {
    EventCreation made;
    made.event = event;
    made.device = device;
    made.context = context;
    made.result = 0;
    bus.channel<EventCreation>().post(made);
  }
  void end(ContextChange change, std::int32_t device, std::uint32_t context,
           Phase phase = Phase::instant) {
    ContextEvent ended;
    ended.change = change;
    ended.device = device;
    ended.context = context;
    ended.phase = phase;
    bus.channel<ContextEvent>().post(ended);
    bus.deliver();
  }

  static AlarmOptions each_rise_after_one_step() {
    AlarmOptions options;
    options.warmup_steps = options.rising_steps = options.rising_bytes = 1;
    return options;
  }
  void grow_in_step(std::uint64_t number, MemoryClass memory = MemoryClass::device) {
    step::Step now;
    now.step = number;
    bus.channel<step::Step>().post(now);
    MemoryAllocation made;
    made.bytes = 4096;
    made.memory = memory;
    made.result = 0;
    bus.channel<MemoryAllocation>().post(made);
    now.edge = step::Edge::end;
    bus.channel<step::Step>().post(now);
  }

  TestBus bus;
  Heard<Alarm> said = bus.heard<Alarm>();
  Alarms alarms{bus, each_rise_after_one_step()};
};

TEST_F(AlarmsByHandTest, AResetTakesTheHandlesOfAllContextsOfItsDevice) {
  make(0x10, 0, 5);
  make(0x20, 1, 6);
  end(ContextChange::reset, 0, 0);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].address, 0x10);
}

TEST_F(AlarmsByHandTest, AContextThatDoesNotEndKeepsItsHandles) {
  make(0x10, 0, 5);
  end(ContextChange::destroyed, 0, 5, Phase::failed);
  end(ContextChange::destroyed, 0, 6);
  bus.deliver();
  EXPECT_TRUE(said.empty());
  end(ContextChange::destroyed, 0, 5);
  bus.deliver();
  EXPECT_EQ(said.size(), 1);
}

TEST_F(AlarmsByHandTest, WhereAContextEndsTheNextStepsAreAWarmUpAgain) {
  grow_in_step(1);
  end(ContextChange::destroyed, 0, 5);
  grow_in_step(2);
  bus.deliver();
  EXPECT_TRUE(said.empty());
  grow_in_step(3);
  bus.deliver();
  ASSERT_EQ(said.size(), 1);
  EXPECT_EQ(said[0].kind, AlarmKind::growth);
  EXPECT_EQ(said[0].step, 3);
}

TEST_F(AlarmsByHandTest, AllMemoryOfTheDeviceCounts) {
  std::uint64_t step = 0;
  for (const MemoryClass memory :
       {MemoryClass::device, MemoryClass::stream_ordered, MemoryClass::array, MemoryClass::managed,
        MemoryClass::physical}) {
    grow_in_step(++step, memory);
  }
  bus.deliver();
  EXPECT_EQ(alarms.figures().growths, 4);  // the first is the warm-up
}

}  // namespace
}  // namespace ringmain::cuda
