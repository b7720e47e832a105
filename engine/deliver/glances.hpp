// How does a thread that waits for events see the next one at once? It glances: it looks at the
// slots alone in which the next events will lie.
//
// A whole look at nothing takes as long as an event takes from core to core: two hundred
// instructions for the channels that wait, the retire list and the end. So between two of them
// there are some glances, with a pause before each, and what one of them sees is taken from there.
// Figures: docs/notes/2026-11-27-glances.md.
#pragma once
#include <cstddef>
#include <utility>

#include "../system/atomics.hpp"
#include "glance_count.hpp"
#include "ready_channels.hpp"

namespace ringmain::engine {

/// Of one thread; its own.
struct Glances {
  enum : std::size_t { kMost = kGlancesMost, kLanesMax = 4 };
  /// So many follow a whole look. 0: a drain by hand, or a thread that serves several channels.
  std::size_t most = 0;
  /// Where another channel waits here, there are no more. nullptr: none can.
  const ReadyChannels* others = nullptr;
  /// By the last drain: all, or as many as it took to find something.
  std::size_t made = 0;

  /// How many have been made since this was asked last: a round without a drain made none.
  [[nodiscard]] std::size_t take_made() noexcept { return std::exchange(made, 0); }

  /// True: glance again; the pause is over.
  [[nodiscard]] bool again() noexcept {
    if (made >= most || (others != nullptr && others->anything())) return false;
    ++made;
    pause();
    return true;
  }
};

}  // namespace ringmain::engine
