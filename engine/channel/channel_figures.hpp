// What has become of a channel's events? Sums over its lanes, for the housekeeper and for users'
// figures. They are read seldom, and not by publishers or workers. Whether they add up:
// accounts.hpp.
#pragma once
#include <cstdint>

#include "channel_core.hpp"

namespace ringmain::engine {

/// Sums over all lanes, exact when nobody publishes and nothing is in flight. I1 and I2 of
/// docs/guarantees.md: offered = accepted + refused, accepted = delivered + evicted + discarded +
/// pending.
struct ChannelCounts {
  std::uint64_t accepted = 0, full = 0, closed = 0, no_memory = 0, too_deep = 0, vetoed = 0;
  std::uint64_t delivered = 0, evicted = 0, discarded = 0, pending = 0;
  std::uint64_t coalesced = 0;  // replaced while queued: neither accepted nor refused
  std::uint64_t observed = 0;   // of those delivered: never queued, all subscribers were inline
  std::uint32_t lanes = 0, live_lanes = 0;
};
/// Threads: any. Progress: wait-free; so are those below.
[[nodiscard]] ChannelCounts counts_of(const ChannelCore& channel) noexcept;
/// Accepted and refused, counted by the publishers' own sequence words: the other side of I1.
[[nodiscard]] std::uint64_t offered_on(const ChannelCore& channel) noexcept;
/// All that its publishers lost, without the bus's own publishers. Reads no line that a publisher
/// writes in the steady state.
[[nodiscard]] Losses losses_of(const ChannelCore& channel) noexcept;
/// Events in its lanes.
[[nodiscard]] std::uint64_t depth_of(const ChannelCore& channel) noexcept;

}  // namespace ringmain::engine
