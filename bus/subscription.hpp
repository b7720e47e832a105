// Who listens, and the promise made when they stop.
#pragma once
#include <cstdint>
#include <utility>

#include "options.hpp"
#include "result.hpp"
#include "stats.hpp"

namespace ringmain {

class Subscription;

namespace detail {
class SubscriptionCore;
/// A handle that holds it.
[[nodiscard]] Subscription handle_of(SubscriptionCore& held) noexcept;
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

  /// done, deferred (inside a callback) or was_not_attached. Progress: blocking.
  Detached reset() noexcept;
  /// As reset(), but gives up waiting: `timeout` means closed, and a call is still running.
  /// Progress: blocking.
  Detached reset_for(nanoseconds limit) noexcept;
  /// Waits until a subscription closed elsewhere (deferred, timeout) has finished.
  /// Progress: blocking.
  Detached wait_quiescent(nanoseconds limit) noexcept { return reset_for(limit); }
  /// Lets a subscriber in quarantine (OnThrow::quarantine) be called again. False: it is in none.
  /// Progress: blocking.
  bool readmit() noexcept;
  /// Stays attached for the life of the bus; its captures die with the bus. A hook stays for the
  /// life of its row (hooks.hpp), if that is shorter. Progress: blocking.
  void release() noexcept;

  /// Progress: blocking.
  [[nodiscard]] SubscriberStats stats() const noexcept;
  /// False for an empty handle and once reset() was called, also when it returned deferred.
  /// Progress: wait-free.
  [[nodiscard]] bool attached() const noexcept;
  /// Progress: wait-free.
  void swap(Subscription& other) noexcept { std::swap(held_, other.held_); }

 private:
  friend Subscription detail::handle_of(detail::SubscriptionCore& held) noexcept;
  explicit Subscription(detail::SubscriptionCore* held) noexcept : held_(held) {}
  detail::SubscriptionCore* held_ = nullptr;  // one holder of it
};

}  // namespace ringmain
