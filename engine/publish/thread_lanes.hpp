// Which lane is this thread's in that channel? A small table per thread, kept until the thread
// ends.
//
// The table lives in the library (initial-exec): thread_local templates in headers would pin every
// plugin that publishes. An entry holds its channel, so that bus and thread may die in any order.
#pragma once
#include "../channel/channel_core.hpp"
#include "push.hpp"

namespace ringmain::engine {

/// This thread's lane in `channel` with its default options, taken at the first call. nullptr: no
/// lane left or no memory; the caller counts it. At thread exit all are given back.
[[nodiscard]] Lane* thread_lane(ChannelCore& channel) noexcept;
/// As thread_lane(), with a lane of these options for this thread's first use of `channel`.
[[nodiscard]] LaneOptions default_lane_options(const ChannelCore& channel) noexcept;
/// push_slowly() on a lane taken for this one event: for a thread whose lanes are gone, and which
/// has no order from then on. For a thread that got none: no_memory.
PushResult push_once(ChannelCore& channel, BuildFn* build, void* from) noexcept;

}  // namespace ringmain::engine
