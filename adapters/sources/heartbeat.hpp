// The smallest source: one event per period. Copy this file to write another.
//
// A source is a class with attach(): it takes a bus, finds its channels, and publishes from a
// thread of its own (or from wherever what it watches calls it) until it is destroyed.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

#include "../../bus/bus.hpp"

namespace ringmain::heartbeat {

/// "I am alive". A gap in `count` is as many periods in which the thread did not run.
struct Beat {
  std::uint64_t count = 0;   // periods since the start
  std::int64_t late_ns = 0;  // after the moment it was due
};
constexpr auto describe(EventOf<Beat>) {
  return event("heartbeat.beat", field<&Beat::count>("count", Unit::count),
               field<&Beat::late_ns>("late_ns", Unit::ns));
}

/// Beats until it is destroyed, which takes no longer than one publish. The bus must outlive it.
class Source {
 public:
  /// The first beat comes after one period. refused: the period is not above 0; no_memory, system:
  /// no lane or no thread left.
  static Result<Source> attach(Bus& bus, milliseconds period = milliseconds(1000)) {
    if (period <= milliseconds(0)) {
      return Error{Error::Code::refused, "a heartbeat's period must be above 0 ms"};
    }
    auto beats = bus.channel<Beat>().publisher(PublisherOptions{});
    if (!beats) return beats.error();
    try {
      // No longer than a year: the clock counts 292 of them.
      return Source(std::move(beats).value(),
                    std::min<milliseconds>(period, std::chrono::hours(24 * 365)));
    } catch (const std::system_error& failed) {
      return Error{Error::Code::system,
                   std::string("no thread for the heartbeat: ") + failed.what()};
    }
  }

 private:
  Source(Publisher<Beat> beats, milliseconds period)
      // Made here, since it allocates: in the thread nobody would hear that there is no memory.
      : thread_([said = std::move(beats), period,
                 stopped = std::make_shared<std::condition_variable_any>()](
                    const std::stop_token& stop) mutable {
          using Clock = std::chrono::steady_clock;
          std::mutex mutex;
          std::unique_lock lock(mutex);
          const Clock::time_point start = Clock::now();
          for (std::uint64_t n = 1;; ++n) {
            const Clock::time_point due = start + n * period;
            // Ends at once when stop is requested.
            stopped->wait_until(lock, stop, due, [] { return false; });
            if (stop.stop_requested()) return;
            const std::chrono::nanoseconds late = Clock::now() - due;
            (void)said.publish({n, late.count()});  // what is refused is counted in the ledger
            n += static_cast<std::uint64_t>(late / period);
          }
        }) {}

  std::jthread thread_;
};

}  // namespace ringmain::heartbeat
