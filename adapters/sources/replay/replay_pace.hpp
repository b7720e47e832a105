// When is a recorded event due? At its recorded distance from the first one, divided by the speed.
//
// Pauses of more than kQuietMax are cut to that: recordings may hold one stray time stamp, or be of
// different days. Events of the trace itself, which carry no real times, are due at once.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <sys/prctl.h>

namespace ringmain::replay {

/// Turns rising recorded times into times since the start of the replay. Threads: one.
class Pace {
 public:
  static constexpr std::chrono::nanoseconds kQuietMax = std::chrono::seconds(10);

  explicit Pace(double speed) : speed_(speed) {}
  [[nodiscard]] bool flat_out() const noexcept { return speed_ <= 0; }

  std::int64_t due_ns(std::int64_t recorded_ns, bool timed) noexcept {
    if (flat_out() || !timed) return due_ns_;
    if (begun_ && recorded_ns > last_ns_) {
      // In doubles: distances between the ends of the clock do not fit into 64 bits.
      const double wait =
          (static_cast<double>(recorded_ns) - static_cast<double>(last_ns_)) / speed_;
      const auto longest = static_cast<double>(kQuietMax.count());
      due_ns_ += static_cast<std::int64_t>(std::min(wait, longest));
      if (wait > longest) cut_ns_ += wait - longest;
    }
    begun_ = true;
    last_ns_ = recorded_ns;
    return due_ns_;
  }
  /// How much was cut out of pauses, in nanoseconds of the replay.
  [[nodiscard]] double cut_ns() const noexcept { return cut_ns_; }

 private:
  double speed_;
  bool begun_ = false;
  std::int64_t last_ns_ = 0;
  std::int64_t due_ns_ = 0;
  double cut_ns_ = 0;
};

/// Waits for points in time, unless told to stop. Threads: the one that made it.
class Alarm {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Alarm(Clock::time_point start) : start_(start), lock_(mutex_) {
    ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns; 50 us would be later than many events
  }
  /// False: stop was requested.
  bool wait(std::int64_t due_ns, const std::stop_token& stop) {
    const Clock::time_point due = start_ + std::chrono::nanoseconds(due_ns);
    const auto late = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - due);
    if (late.count() < 0) {
      wake_.wait_until(lock_, stop, due, [] { return false; });
    } else {
      late_ns_max_ = std::max<std::int64_t>(late_ns_max_, late.count());
    }
    return !stop.stop_requested();
  }
  /// How late the latest event was before it was published.
  [[nodiscard]] std::int64_t late_ns_max() const noexcept { return late_ns_max_; }

 private:
  const Clock::time_point start_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::unique_lock<std::mutex> lock_;
  std::int64_t late_ns_max_ = 0;
};

}  // namespace ringmain::replay
