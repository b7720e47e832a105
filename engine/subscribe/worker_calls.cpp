#include "engine/subscribe/worker_calls.hpp"

namespace ringmain::engine {
namespace {
/// So many turns pay for a barrier many times over; a subscriber that lives shorter costs none.
enum : std::uint64_t { kTurnsToBias = 1024 };
}  // namespace

Entered enter_counted(Subscriber& subscriber) noexcept {
  if (!subscriber.gate.enter()) return Entered::refused;
  // One whose calls overlap is called by several workers at once, of which each would look for the
  // others as it leaves.
  if (subscriber.writers == Writers::one && subscriber.shown_by != nullptr) {
    subscriber.counted_turns.add(1);
    if (subscriber.counted_turns.get() == kTurnsToBias && !barrier_is_fence())
      subscriber.gate.bias();
  }
  return Entered::counted;
}

}  // namespace ringmain::engine
