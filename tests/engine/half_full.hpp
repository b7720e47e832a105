// A lane that is half full while its reader is held up: does the reader wait after that?
#pragma once
#include <atomic>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::tests {

/// Holds up the reader in the first of four events, for which the lane has room, then publishes one
/// more. All are heard, unless the reader waits, by lingering_for_an_hour().
inline void expect_no_wait_at_a_half_full_lane(engine::ChannelCore& channel) {
  Door door;
  std::atomic<int> heard{0};
  const AttachedSubscriber attached(channel, [&](const engine::Run& run) {
    if (heard == 0) {
      EXPECT_TRUE(door.pass());
    }
    heard += static_cast<int>(run.count);
  });
  engine::LaneOptions small;
  small.capacity = 4;
  engine::Lane& lane = *channel.take_lane(small, channel);
  ASSERT_EQ(push_number(lane, 1), engine::Pushed::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(push_number(lane, 1), engine::Pushed::accepted);
  door.open();
  ASSERT_TRUE(eventually([&] { return heard == 4; }));
  ASSERT_EQ(push_number(lane, 1), engine::Pushed::accepted);
  EXPECT_TRUE(eventually([&] { return heard == 5; }));
  engine::ChannelCore::give_lane(lane);
}

}  // namespace ringmain::tests
