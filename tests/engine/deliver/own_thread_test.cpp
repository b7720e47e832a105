// May a subscriber's own thread be joined while it is being started, and does it wait where it may
// not?
#include "engine/deliver/own_thread.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/half_full.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::engine {
namespace {

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
  const Ref<OwnThread> own = new OwnThread(channel, "own");
  own->start();
  tests::expect_no_wait_at_a_half_full_lane(*channel);
  own->end();
  EXPECT_TRUE(own->join(-1));
  running->retire(*channel);
}

}  // namespace
}  // namespace ringmain::engine
