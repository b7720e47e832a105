// When are the pages of a lane's ring there? A page that was never touched costs its first writer a
// fault of about a microsecond, and a lane of 8,192 events has some 200 pages.
//
// A realtime lane has them from the start. One that is taken inside somebody's call
// (LaneOptions::touched_later) has its first ones, and the housekeeper touches the rest while
// events may already be written there: Linux can do that without changing a byte
// (MADV_POPULATE_WRITE, 5.14), so no order between the two is needed. A publisher that is faster
// than the housekeeper takes the faults itself.
#pragma once
#include "lane.hpp"

namespace ringmain::engine {

/// Gives a new lane its ring, by its options. False: out of memory; free_ring() all the same.
[[nodiscard]] bool give_ring(Lane& lane) noexcept;
/// Touches what was left for later. Threads: any, several at once.
void touch_ring(Lane& lane) noexcept;
void free_ring(Lane& lane) noexcept;

}  // namespace ringmain::engine
