// Do a channel's figures add up (I1, I2), also while other threads publish and workers go on?
//
// Each count is read once, in an order in which a sound ledger cannot look wrong. A publisher that
// refuses raises `refused` and then the reason, and counts itself in `settling` meanwhile, as does
// a signal handler in the middle of that; a worker raises `dispatched` and then `consumed`. So a
// thread that is between two counts is seen there, and if none is the sums are exact: no look is
// repeated in the hope of a better one.
#pragma once
#include <cstdint>

#include "channel_core.hpp"

namespace ringmain::engine {

struct Accounts {
  bool offered_add_up = true;                            // I1, lane by lane
  bool accepted_add_up = true;                           // I2
  std::uint64_t offered = 0, accepted = 0, refused = 0;  // by reasons
  std::uint64_t observed = 0, dispatched = 0, drained = 0, evicted = 0, discarded = 0, pending = 0;
};
/// Threads: any. False in either is a fault of the bus, even if other threads publish meanwhile.
[[nodiscard]] Accounts look_at_accounts(const ChannelCore& channel) noexcept;

}  // namespace ringmain::engine
