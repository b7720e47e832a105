// How does a worker wait? It looks again for a while, and only then parks.
//
// A wake-up costs the publisher a system call and the event 15 us, so a worker looks for about as
// long before it sleeps. Where cores are few it offers its core to other threads meanwhile; an
// offer delays the event that comes next, so it offers more seldom while no thread takes the core.
// The clock is read after every 64 looks, with a pause between two looks. After a short batch the
// worker lingers: one that keeps catching up with its publisher contends with it for every cache
// line. Figures: docs/notes, bench/.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <utility>

#include "atomics.hpp"
#include "clock.hpp"

namespace ringmain::engine {

struct WaitOptions {
  enum : std::int64_t { kLingerNsMax = 1'000'000 };
  std::int64_t spin_ns = 50'000;
  std::int64_t linger_ns = 300;
  std::int64_t realtime_ns_max = 20'000'000;
  bool yields = false;  // few cores: others need this one
};

class WaitStrategy {
 public:
  explicit WaitStrategy(const WaitOptions& options) noexcept : options_(options) {}

  /// The last look found work: `events` in one batch.
  void worked(std::size_t events) noexcept {
    // Batch after batch with no empty look between them: this worker chases its publisher, even
    // with one event each time. An event that comes alone is handed on at once.
    const bool chasing = std::exchange(looks_, 0) == 0;
    streak_ = chasing ? streak_ + 1 : 0;
    if (!chasing) linger_ns_ = options_.linger_ns;
    if (events > kLongBatch) linger_ns_ = std::max(options_.linger_ns, linger_ns_ / 2);
    if (linger_ns_ <= 0 || events > kLongBatch) return;
    if (events == 1 && streak_ < kChase) return;
    const std::int64_t until = now_ns() + linger_ns_;
    do pause();
    while (now_ns() < until);
    // Waiting did not help enough, so the next wait is longer, up to a bound. Where few events come
    // meanwhile, a longer wait would only delay them.
    const std::int64_t growth = events >= kManyEvents ? kGrowthOfMany : kGrowth;
    if (streak_ >= kChase) linger_ns_ = std::min(growth * options_.linger_ns, 2 * linger_ns_);
  }
  /// The last look found nothing. True: look again. False: it is time to park.
  [[nodiscard]] bool look_again() noexcept {
    pause();
    if (++looks_ % kLooksPerClock != 0) return true;
    const std::int64_t now = now_ns();
    if (looks_ == kLooksPerClock) since_ns_ = now;
    if (now - since_ns_ < options_.spin_ns) {
      if (options_.yields) offer(now);
      return true;
    }
    looks_ = 0;
    return false;
  }

 private:
  /// Offers the core if that is due. An offer that returns at once found no thread to run.
  void offer(std::int64_t now) noexcept {
    if ((unoffered_ += kLooksPerClock) < looks_per_offer_) return;
    unoffered_ = 0;
    ::sched_yield();
    const bool wanted = now_ns() - now > kSomebodyRanNs;
    looks_per_offer_ = wanted ? std::size_t{kLooksPerClock}
                              : std::min<std::size_t>(kLooksPerOfferMax, 2 * looks_per_offer_);
  }

  enum : std::size_t { kLooksPerOfferMax = 4096 };
  enum : std::int64_t { kSomebodyRanNs = 2'000 };  // the call alone takes about 400
  enum : std::size_t { kManyEvents = 64, kLongBatch = 224, kLooksPerClock = 64, kChase = 4 };
  enum : std::int64_t { kGrowth = 8, kGrowthOfMany = 16 };
  WaitOptions options_;
  std::size_t looks_ = 0;   // empty looks since there was work
  std::size_t streak_ = 0;  // batches since the last empty look
  std::int64_t linger_ns_ = options_.linger_ns;
  std::int64_t since_ns_ = 0;
  std::size_t unoffered_ = 0;  // looks since the core was last offered
  std::size_t looks_per_offer_ = kLooksPerClock;
};

}  // namespace ringmain::engine
