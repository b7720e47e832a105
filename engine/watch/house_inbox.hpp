// What do other threads leave for the housekeeper? Words that it looks at in its next round, and
// the event count that ends its wait. It costs them a look or two, and no wait.
#pragma once
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/event_count.hpp"

namespace ringmain::engine {

/// Threads: any, unless said otherwise. Progress: wait-free, but for budget(), which is lock-free.
class HouseInbox {
 public:
  [[nodiscard]] EventCount& event_count() noexcept { return event_count_; }

  /// A subscriber with that budget was listed; 0: one without a budget.
  void budget(std::int64_t budget_ns) noexcept {
    if (lower_budget(budget_ns))
      event_count_.notify(EventCount::kBusy);  // a short wait may be long
  }
  /// A subscriber was taken off a list, perhaps the one with the smallest budget.
  void budget_left() noexcept {
    stale_.store(1, std::memory_order_relaxed);  // relaxed: soon is enough
  }

  /// A subscriber's throws are news, and a lane whose memory is to be touched. `wakes`: tells the
  /// housekeeper now, with a system call if need be; else it finds them at its next look.
  void note_news(bool wakes) noexcept {
    news_.store(1, std::memory_order_release);  // x.news
    if (wakes) event_count_.notify(EventCount::kNews);
  }
  /// Adds to the number of those that asked by on_interest(); while it is 0, a change of the lists
  /// costs nothing.
  void add_interested(int n) noexcept {
    interested_.fetch_add(static_cast<std::uint32_t>(n), std::memory_order_acq_rel);  // h.interest
  }
  /// Call it under the channel's lock: a thread that counts itself in by add_interested() and then
  /// reads the lists sees the change, or its count is seen here.
  void interest_changed() noexcept {
    if (interested_.load(std::memory_order_acquire) != 0)
      event_count_.notify(EventCount::kInterest);  // h.interest
  }

  // --- the housekeeper ---
  /// 0: no subscriber has a budget.
  [[nodiscard]] std::int64_t smallest_budget_ns() const noexcept {
    return smallest_budget_ns_.load(std::memory_order_relaxed);  // relaxed: a smaller one notifies
  }
  /// True: the subscriber with the smallest budget may have left since the last call, so the caller
  /// looks through the lists and calls lower_budget() for each budget that it finds.
  [[nodiscard]] bool forget_stale_budget() noexcept {
    if (stale_.exchange(0, std::memory_order_relaxed) == 0)
      return false;                                           // relaxed: soon is enough
    smallest_budget_ns_.store(0, std::memory_order_relaxed);  // relaxed: the lists' locks
    return true;
  }
  /// True: this budget is the smallest now.
  bool lower_budget(std::int64_t budget_ns) noexcept {
    std::int64_t now = smallest_budget_ns_.load(std::memory_order_relaxed);  // relaxed: a minimum
    while (budget_ns > 0 && (now == 0 || budget_ns < now)) {
      // Relaxed: the notification orders it.
      if (smallest_budget_ns_.compare_exchange_weak(now, budget_ns, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  [[nodiscard]] bool take_news() noexcept {
    return news_.exchange(0, std::memory_order_acquire) != 0;  // x.news
  }
  /// Some news is to be told later.
  void keep_news() noexcept { news_.store(1, std::memory_order_relaxed); }  // relaxed: for itself

 private:
  EventCount event_count_;
  Atomic<std::int64_t> smallest_budget_ns_{0};
  Atomic<std::uint32_t> news_{0};
  Atomic<std::uint32_t> interested_{0};
  Atomic<std::uint32_t> stale_{0};  // the one with the smallest budget may have left
};

}  // namespace ringmain::engine
