// What became of what NCCL offered? Counted by any thread, mostly without a read-modify-write.
#pragma once
#include "engine/system/numbering.hpp"

#include "events/nccl_source.hpp"

namespace ringmain::nccl {

/// As Counts, field by field.
struct Counters {
  engine::Numbering started, stopped, stale, aborted, published, refused, filtered, no_room,
      no_context, unknown_types, unknown_states, stale_stops, stale_states, detached, lost_starts,
      suspect, unfollowed;

  /// Each is right for some moment. What has ended is read first: none has ended that has not
  /// begun.
  [[nodiscard]] Counts now() noexcept {
    Counts all;
    all.stopped = stopped.total();
    all.stale = stale.total();
    all.aborted = aborted.total();
    all.started = started.total();
    all.published = published.total();
    all.refused = refused.total();
    all.filtered = filtered.total();
    all.no_room = no_room.total();
    all.no_context = no_context.total();
    all.unknown_types = unknown_types.total();
    all.unknown_states = unknown_states.total();
    all.stale_stops = stale_stops.total();
    all.stale_states = stale_states.total();
    all.detached = detached.total();
    all.lost_starts = lost_starts.total();
    all.suspect = suspect.total();
    all.unfollowed = unfollowed.total();
    return all;
  }
};

}  // namespace ringmain::nccl
