// Subscribers that come and go while something is measured; none may be called after it has gone.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "bus/bus.hpp"

#include "bench/events.hpp"
#include "bench/machine.hpp"

namespace ringmain::bench {

/// Comings and goings per second: a rate so high that each follows the last one at once.
constexpr std::int64_t kFlatOut = 1'000'000'000;

class Churn {
 public:
  Churn(Channel<Payload>& channel, std::int64_t per_second)
      : channel_(channel),
        period_(per_second == 0 ? 0 : ticks_of(2e9 / static_cast<double>(per_second))),
        due_(ticks()) {}

  /// One coming and one going, if it is time for them.
  void turn() {
    if (period_ == 0) return;
    const std::int64_t now = ticks();
    if (now < due_) return;
    due_ = now + period_;
    gone_.store(false, std::memory_order_relaxed);
    Subscription visitor = channel_.subscribe([this](const Payload&) {
      if (gone_.load(std::memory_order_relaxed)) late_.store(true, std::memory_order_relaxed);
    });
    visitor.reset();
    gone_.store(true, std::memory_order_relaxed);
    changes_.store(changes_.load(std::memory_order_relaxed) + 2, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t changes() const noexcept {
    return changes_.load(std::memory_order_relaxed);
  }
  /// Somebody was called after reset() had returned.
  [[nodiscard]] bool broken() const noexcept { return late_.load(std::memory_order_relaxed); }

 private:
  Channel<Payload>& channel_;
  const std::int64_t period_;
  std::int64_t due_;
  alignas(engine::kLineBytes) std::atomic<std::uint64_t> changes_{0};
  std::atomic<bool> gone_{false}, late_{false};
};

}  // namespace ringmain::bench
