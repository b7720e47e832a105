// May a subscriber's own thread be joined while it is being started, and does it wait where it may
// not?
#include "engine/deliver/own_thread.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

using tests::AttachedSubscriber;
using tests::Door;
using tests::eventually;
using tests::push_number;

TEST(OwnThreadStartTest, AThreadMayBeJoinedWhileItIsBeingStarted) {
  const tests::Running running(1);
  for (int round = 0; round < 50; ++round) {
    ChannelCoreOptions options;
    options.pulled = options.own_thread = true;
    const auto channel = running.channel(options);
    const Ref<OwnThread> own = new OwnThread(channel, "own");
    own->end();  // so that it is over as soon as it has begun
    std::thread joins([&own] { EXPECT_TRUE(own->join(-1)); });
    own->start();
    joins.join();
    EXPECT_TRUE(own->join(-1));
    running->retire(*channel);
  }
}

// A wait would last for an hour.
TEST(OwnThreadWaitTest, WhereASmallLaneIsHalfFullItDoesNotWait) {
  const tests::Running running(1, tests::lingering_for_an_hour());
  ChannelCoreOptions options;
  options.pulled = options.own_thread = true;
  const auto channel = running.channel(options);
  Door door;
  std::atomic<int> heard{0};
  const AttachedSubscriber attached(*channel, [&](const engine::Run& run) {
    if (heard == 0) {
      EXPECT_TRUE(door.pass());
    }
    heard += static_cast<int>(run.count);
  });
  LaneOptions small;
  small.capacity = 4;
  Lane& lane = *channel->take_lane(small, *channel);
  const Ref<OwnThread> own = new OwnThread(channel, "own");
  own->start();
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  door.open();
  ASSERT_TRUE(eventually([&] { return heard == 4; }));
  ASSERT_EQ(push_number(lane, 1), Pushed::accepted);
  EXPECT_TRUE(eventually([&] { return heard == 5; }));
  ChannelCore::give_lane(lane);
  own->end();
  EXPECT_TRUE(own->join(-1));
  running->retire(*channel);
}

}  // namespace
}  // namespace ringmain::engine
