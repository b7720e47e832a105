// How does a worker wait? It looks again for a while, and only then parks.
//
// A wake-up costs the publisher a system call and the event 15 us, so a worker looks for about as
// long before it sleeps; where cores are few it offers its own after every 64 looks. The clock is
// read as seldom: between two looks lies one pause. After a short batch it lingers: a worker that
// keeps catching its publisher fights it for every line. Figures: docs/notes, bench/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <sched.h>

#include "ringmain/engine/atomics.hpp"
#include "ringmain/engine/clock.hpp"

namespace ringmain::engine {

struct WaitOptions {
  std::int64_t spin_ns = 50'000;
  std::int64_t linger_ns = 300;
  std::int64_t realtime_ns_max = 20'000'000;
  bool yields = false;  // few cores: others need this one
};

class WaitStrategy {
 public:
  explicit WaitStrategy(const WaitOptions& options) noexcept : options_(options) {}

  /// There was work: `events` in one batch.
  void worked(std::size_t events) noexcept {
    looks_ = 0;
    if (options_.linger_ns > 0 && events > 1 && events < kShortBatch) {
      const std::int64_t until = now_ns() + options_.linger_ns;
      do pause();
      while (now_ns() < until);
    }
  }
  /// There was none. True: look again. False: it is time to park.
  [[nodiscard]] bool look_again() noexcept {
    pause();
    if (++looks_ % kLooksPerClock != 0) return true;
    const std::int64_t now = now_ns();
    if (looks_ == kLooksPerClock) since_ns_ = now;
    if (now - since_ns_ < options_.spin_ns) {
      if (options_.yields) ::sched_yield();
      return true;
    }
    looks_ = 0;
    return false;
  }

 private:
  enum : std::size_t { kShortBatch = 32, kLooksPerClock = 64 };
  WaitOptions options_;
  std::size_t looks_ = 0;
  std::int64_t since_ns_ = 0;
};

}  // namespace ringmain::engine
