// Which lane does this thread have in a channel? A small table per thread knows, until the thread
// ends.
//
// The table is in the library (initial-exec): thread_local templates in headers would keep every
// plugin that publishes from being unloaded. An entry holds its channel, so that bus and thread may
// end in any order.
#pragma once
#include "../channel/channel_core.hpp"
#include "push.hpp"

namespace ringmain::engine {

/// This thread's lane in `channel`, taken at the first call. nullptr: no lane is left or no memory;
/// the caller counts the refusal. At thread exit all lanes are given back. Taking one takes the
/// channel's lock and the allocator's, and no other: it may happen inside a call of somebody else,
/// who may hold any lock. Model: tests/model/thread_lanes.pml.
[[nodiscard]] Lane* thread_lane(ChannelCore& channel) noexcept;
/// The options of the lane that thread_lane() takes: those of ChannelCore::set_thread_lanes(), or
/// the channel's kind with 65,536 events.
[[nodiscard]] LaneOptions thread_lane_options(const ChannelCore& channel) noexcept;
/// push_slowly() on a lane that is taken for this one event, and allocates no ring for it: for a
/// thread whose table is gone, and whose events have no order from then on. no_memory for a thread
/// that never got a table.
PushResult push_once(ChannelCore& channel, BuildFn* build, void* from) noexcept;

}  // namespace ringmain::engine
