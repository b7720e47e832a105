// Who listens, and the promise made when they stop.
#pragma once
#include <cstdint>
#include <utility>

#include "options.hpp"
#include "result.hpp"

namespace ringmain {

/// Events this subscriber was due, and what became of each. While no batch is running and the
/// subscription lives: offered = delivered + threw + filtered + skipped + dropped +
/// coalesced + pending (I3).
struct SubscriberStats {
  std::uint64_t offered = 0;
  std::uint64_t delivered = 0;  // the callback returned
  std::uint64_t threw = 0;
  std::uint64_t filtered = 0;
  std::uint64_t skipped = 0;  // it was closed, or its owner was gone
  std::uint64_t dropped = 0;  // its mailbox was full, pushed it out, or discarded it at stop(abort)
  std::uint64_t coalesced = 0;  // a newer one of its key took its place in the mailbox
  std::uint64_t pending = 0;    // in its mailbox
  std::uint64_t slow = 0;       // turns over its budget
  std::int64_t longest_ns = 0;  // of those, as far as it was seen
  std::uint64_t order_gaps = 0, order_late = 0;  // subscribe_ordered() only: as in ChannelStats
};

namespace detail {
class SubscriptionCore;
}  // namespace detail

/// Keeps one subscriber attached. After reset() or destruction outside callbacks, no call to it is
/// running or will start, and its captures are destroyed. Inside any callback of any bus, reset()
/// closes at once and does not wait; the captures die with the last running call.
///
/// The caller of reset() must not hold a lock that the callback wants: nothing could save that.
/// Threads: one at a time per handle; different handles are independent.
class [[nodiscard]] Subscription {
 public:
  Subscription() noexcept = default;
  Subscription(Subscription&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept {
    Subscription(std::move(other)).swap(*this);  // the old subscriber is detached at this semicolon
    return *this;
  }
  ~Subscription();

  /// done, deferred (inside a callback) or was_not_attached. Progress: waits for a running call.
  Detached reset() noexcept;
  /// As reset(), but gives up waiting: `timeout` means closed, and a call is still running.
  Detached reset_for(nanoseconds limit) noexcept;
  /// Waits until a subscription closed elsewhere (deferred, timeout) has finished.
  Detached wait_quiescent(nanoseconds limit) noexcept { return reset_for(limit); }
  /// Lets a subscriber in quarantine (OnThrow::quarantine) be called again. False: it is in none.
  bool readmit() noexcept;
  /// Stays attached for the life of the bus; its captures die with the bus.
  void release() noexcept;

  [[nodiscard]] SubscriberStats stats() const noexcept;
  /// False for an empty handle and once reset() was called, also when it returned deferred.
  [[nodiscard]] bool attached() const noexcept;
  void swap(Subscription& other) noexcept { std::swap(held_, other.held_); }

 private:
  friend class detail::SubscriptionCore;
  explicit Subscription(detail::SubscriptionCore* held) noexcept : held_(held) {}
  detail::SubscriptionCore* held_ = nullptr;  // one holder of it
};

}  // namespace ringmain
