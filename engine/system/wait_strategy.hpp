// How does a worker wait? It looks again for a while, and only then parks.
//
// A wake-up costs the publisher a system call and the event 15 us, so a worker looks for about as
// long before it sleeps. Where cores are few it offers its core to other threads meanwhile; an
// offer delays the event that comes next, so it offers more seldom while no thread takes the core.
// The clock is read after every 64 looks, with a pause between two looks. After a short batch the
// worker lingers: one that keeps catching up with its publisher contends with it for every cache
// line. It lingers longer the fewer events came meanwhile, up to a bound, and not at all where a
// lane is half full, or has no room by Drainer::least_room. Figures: docs/notes, bench/.
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

  /// The last look found work: `events` in one batch, from lanes that hold `room` events or more.
  /// `glances`: empty ones before it found work.
  void worked(std::size_t events, std::size_t room = kRoomy, std::size_t glances = 0) noexcept {
    const std::int64_t linger_ns = linger_after(events, room, glances);
    if (linger_ns <= 0) return;
    const std::int64_t until = now_ns() + linger_ns;
    do pause();
    while (now_ns() < until);
  }
  /// How long worked() lingers.
  [[nodiscard]] std::int64_t linger_after(std::size_t events, std::size_t room,
                                          std::size_t glances = 0) noexcept {
    looks_ += glances;
    // Batch after batch with no empty look between them: this worker chases its publisher, even
    // with one event each time. An event that comes alone is handed on at once.
    const bool chasing = std::exchange(looks_, 0) == 0;
    streak_ = chasing ? streak_ + 1 : 0;
    if (!chasing) {
      linger_ns_ = options_.linger_ns;
      gathered_ = 0;
    }
    gathered_ += events;
    if (linger_ns_ <= 0 || events > kLongBatch) return 0;
    if (events == 1 && streak_ < kChase) return 0;
    const std::size_t gathered = std::exchange(gathered_, 0);
    // A lane that fills up while its worker waits would refuse events, or hold its publisher up.
    adapt(gathered, std::min<std::size_t>(kEnough, room / 2));
    return gathered < room / 2 ? linger_ns_ : 0;
  }
  /// The last look found nothing, nor did so many glances after it. True: look again. False: it is
  /// time to park.
  [[nodiscard]] bool look_again(std::size_t glances = 0) noexcept {
    pause();
    const std::size_t before = std::exchange(looks_, looks_ + 1 + glances);
    if (before / kLooksPerClock == looks_ / kLooksPerClock) return true;
    const std::int64_t now = now_ns();
    if (before < kLooksPerClock) since_ns_ = now;
    if (now - since_ns_ < options_.spin_ns) {
      if (options_.yields) offer(now);
      return true;
    }
    looks_ = 0;
    return false;
  }

 private:
  /// `gathered`: events since the last linger; with `enough` of them the next one is shorter, also
  /// where this one is left out: after a few events more it would fill the lane again. Where few
  /// came meanwhile a longer wait would only delay them, hence two bounds.
  void adapt(std::size_t gathered, std::size_t enough) noexcept {
    if (gathered >= enough) {
      linger_ns_ = std::max(options_.linger_ns, linger_ns_ / 2);
    } else if (streak_ >= kChase && gathered < enough / 2) {
      const std::int64_t growth = gathered >= kManyEvents ? kGrowthOfMany : kGrowth;
      linger_ns_ = std::max(linger_ns_, std::min(growth * options_.linger_ns, 2 * linger_ns_));
    }
  }
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
  enum : std::size_t { kEnough = 4096, kRoomy = std::size_t{1} << 31 };
  enum : std::int64_t { kGrowth = 8, kGrowthOfMany = 16 };
  WaitOptions options_;
  std::size_t looks_ = 0;     // empty looks since there was work
  std::size_t streak_ = 0;    // batches since the last empty look
  std::size_t gathered_ = 0;  // events since the last linger
  std::int64_t linger_ns_ = options_.linger_ns;
  std::int64_t since_ns_ = 0;
  std::size_t unoffered_ = 0;  // looks since the core was last offered
  std::size_t looks_per_offer_ = kLooksPerClock;
};

}  // namespace ringmain::engine
