// Which operations are open for too long, and what is done before the group is given up?
//
// A thread looks at the ledger of a bus. What has not begun counts from its issue, what has begun
// from its start: an operation that hangs before its work begins waits for something else than one
// that hangs in it. Each is said once, as collective.overdue. With the first of the process the
// a recorder's dump is written, and the program's own function called, and both waited for no
// longer than they are given; only then the group is given up, if that is wanted.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../../../bus/bus.hpp"
#include "../../../bus/result.hpp"

#include "../../../events/collective_overdue.hpp"

namespace ringmain::collective {

class FlightRecorderHook;

struct WatchdogOptions {
  /// Deadlines of operations that have no time-out of their own. 0: that of their communicator, and
  /// none where that is not known.
  nanoseconds from_issue{};
  nanoseconds from_start{};
  /// Between two looks, from 1 ms. 0: no thread looks, and the program calls look().
  nanoseconds period = std::chrono::seconds(1);
  /// Called with the first that is overdue, once in this process whichever watchdog finds it, in a
  /// thread of its own. What it captures must live until it has returned.
  std::function<void(const OverdueOperation&)> before_abort{};
  /// Writes its file before that, in the same thread. It needs a rank, and to live until make() has
  /// returned.
  const FlightRecorderHook* recorder = nullptr;
  /// Then they are left behind, which bus.slow_subscriber says.
  nanoseconds before_abort_within = std::chrono::seconds(15);
  /// The groups of what is overdue, and still open after that call, are given up, by `watchdog`.
  bool aborts = false;
};

/// While it lives, operations are issued though nobody listens: it counts as a subscriber of
/// collective.failed. What was passed over before it came it does not see. In a forked child it
/// looks at nothing, and its end waits for nobody. Threads: any.
class Watchdog {
 public:
  /// refused: a time below 0, a period below 1 ms, a recorder without a rank. conflict: as
  /// Ledger::of(). system: no thread. Throws std::bad_alloc. Its bus must outlive it.
  [[nodiscard]] static Result<Watchdog> make(Bus& bus, WatchdogOptions options);
  Watchdog(Watchdog&&) noexcept;
  Watchdog& operator=(Watchdog&&) noexcept;
  /// Waits for a look that is being made. Not inside one: in a hook or subscriber that it calls.
  ~Watchdog();

  /// Looks now. Returns what was found to be overdue by this look and by none before.
  std::vector<OverdueOperation> look();
  /// Its heartbeat: how many looks it has made. One that does not move is a watchdog that is stuck.
  /// A door's stats have it, with the age of the last look.
  [[nodiscard]] std::uint64_t looks() const noexcept;
  /// Is this thread inside a look of it, as an abort's hooks and inline subscribers are?
  [[nodiscard]] bool looks_here() const noexcept;

 private:
  class Core;
  explicit Watchdog(std::unique_ptr<Core> core) noexcept;
  std::unique_ptr<Core> core_;
};

}  // namespace ringmain::collective
