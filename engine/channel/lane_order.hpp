// In which order does a channel hand out the events of several lanes, if not lane by lane?
#pragma once
#include <cstddef>

#include "../subscribe/subscriber.hpp"

namespace ringmain::engine {

struct Drainer;

/// Drains instead of the round over the lanes. Threads: the holder of the channel's lease; any
/// thread may read the counts.
class LaneOrder {
 public:
  LaneOrder() = default;
  LaneOrder(const LaneOrder&) = delete;
  LaneOrder& operator=(const LaneOrder&) = delete;
  virtual ~LaneOrder() = default;

  /// Hands out what is due, at most `quantum` events. Returns how many it took.
  virtual std::size_t drain(Drainer& drainer, std::size_t quantum) noexcept = 0;

  Count gaps;  // busy publishers that were passed over
  Count late;  // events handed out after one with a younger ticket
};

}  // namespace ringmain::engine
