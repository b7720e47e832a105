// Calls of inline subscribers: how does one leave while publishing threads may be calling it,
// though a call changes no word that another thread writes?
//
// A publishing thread shows whom it calls in a word of its lane, then looks whether the gate is
// closed; after the call it shows the next of the row, or nothing, and looks again. Who closes a
// gate makes all threads pass a barrier and looks at the words of the channel's lanes. Nobody knows
// who leaves last: each call that finds its gate closed and deferred retires the subscriber, unless
// it is retired, and who reclaims it takes that back if a call still runs. Model:
// tests/model/inline_calls.pml. Decision: docs/adr/0023-inline-calls-are-shown.md.
#pragma once
#include <cstdint>

#include "gate.hpp"
#include "subscriber.hpp"

namespace ringmain::engine {

/// A publishing thread's word that says whom it calls. On a line of its own lane.
using Shown = Atomic<const Subscriber*>;

/// Where calls are shown: a channel, by the words of its lanes.
class ShownCalls {
 public:
  ShownCalls() = default;
  ShownCalls(const ShownCalls&) = delete;
  ShownCalls& operator=(const ShownCalls&) = delete;
  /// Does any thread show a call of it? The caller makes the barrier before, if it needs one. What
  /// a call that is over has written is seen. Threads: any. Progress: wait-free.
  [[nodiscard]] virtual bool calling(const Subscriber& subscriber) const noexcept = 0;
  /// It lives until let_go() was called as often.
  virtual void keep() const noexcept = 0;
  virtual void let_go() const noexcept = 0;

 protected:
  ~ShownCalls() = default;
};

// --- for subscribers of either kind ---

/// Closes the gate for good and leaves the captures to the calls that run. True: none runs, and the
/// caller must destroy them.
[[nodiscard]] bool close_deferred(Subscriber& subscriber) noexcept;
/// After its gate was closed: waits until no call is running, at most `limit_ns` (negative: for
/// ever).
[[nodiscard]] Gate::Waited wait_uncalled(Subscriber& subscriber, std::int64_t limit_ns) noexcept;

}  // namespace ringmain::engine
