// Are handles that are made and not deleted kept as long as there is room?
#include <gtest/gtest.h>

#include "adapters/sources/cuda/alarms/handles.hpp"

namespace ringmain::cuda {
namespace {

TEST(AlarmsHandlesTest, WhatIsDeletedMakesRoomOnceThereIsNone) {
  alarms::Handles handles(3);
  const auto make = [&](std::uint64_t handle) {
    return handles.make({.handle = handle, .api = {}});
  };
  for (std::uint64_t handle = 1; handle <= 3; ++handle) EXPECT_TRUE(make(handle));
  EXPECT_FALSE(make(4));
  EXPECT_TRUE(make(3));  // it has its room already
  handles.end(1, true);
  handles.end(2, true);
  handles.end(1, false);  // CUDA refused
  EXPECT_TRUE(make(5));   // in the place of 2
  EXPECT_FALSE(make(6));
  for (std::uint64_t round = 0; round < 5000; ++round) {  // more than are kept
    handles.end(5, true);
    EXPECT_TRUE(make(5));
  }
  const auto left = handles.take_left([](const alarms::Made&) { return true; });
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left[0].count, 3);
  EXPECT_EQ(left[0].first.handle, 1);
}

}  // namespace
}  // namespace ringmain::cuda
