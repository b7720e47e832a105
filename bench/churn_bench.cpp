// Question: do subscribers that come and go slow down a publish (6a) or a dispatch (6b)?
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "bench/backlog.hpp"
#include "bench/churn.hpp"
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"

namespace ringmain::bench {
namespace {

/// Long enough for the churning thread to come onto its core, short enough for the lane.
enum : std::uint64_t { kChurnBurst = 6 * kBurst };
static_assert(std::uint64_t{kChurnBurst} < kInFlight);

/// A second thread lets subscribers come and go while bursts are timed in the publishing one. The
/// worker sleeps in a callback meanwhile, so that the two do not share a core.
template <class Of>
void publish_churn(Repetition& repetition, std::int64_t per_second) {
  Counter counter;
  counter.sleeps = true;
  typename Of::template System<Payload, Counter> system(counter);
  std::uint64_t pushed = prime<Payload>(system, counter);
  Churn churn(system.channel(), per_second);
  std::atomic<bool> open{false};
  std::vector<double> ns;
  double seconds = 0;
  std::uint64_t changes = 0;
  {
    const std::jthread churner([&](const std::stop_token& stop) {
      pin(cores().worker);
      while (!stop.stop_requested()) {
        if (open.load(std::memory_order_relaxed)) churn.turn();
        engine::pause();
      }
    });
    const std::int64_t until = ticks() + ticks_of(20e6);
    do {
      push_one<Payload>(system, kHold);
      counter.wait_until_inside();
      open.store(true, std::memory_order_relaxed);
      const std::uint64_t before = churn.changes();
      ns.push_back(time_burst<Payload>(system, kChurnBurst));
      changes += churn.changes() - before;
      seconds += ns.back() * 1e-9 * static_cast<double>(kChurnBurst);
      open.store(false, std::memory_order_relaxed);
      counter.go_on();
      counter.wait_for(pushed += kChurnBurst + 1);
    } while (ticks() < until || ns.size() < 5);
  }
  if (churn.broken()) repetition.fail("a subscriber was called after it had gone");
  repetition.value(trimmed_mean(ns));
  repetition.figure("changes_per_second", static_cast<double>(changes) / seconds);
}

/// The publishing thread lets subscribers come and go beside four others while the worker takes a
/// backlog.
template <class Of>
void dispatch_churn(Repetition& repetition, std::int64_t per_second) {
  Stopwatch watch;
  typename Of::template System<Payload, Stopwatch> system(watch, 4);
  Backlogs backlogs(system, watch);
  Churn churn(system.channel(), per_second);
  backlogs.take(20e6, [&churn] { churn.turn(); });
  if (churn.broken()) repetition.fail("a subscriber was called after it had gone");
  repetition.value(trimmed_mean(backlogs.ns_each()));
  repetition.figure("changes_per_second",
                    static_cast<double>(churn.changes()) / backlogs.seconds());
}

template <class Of>
bool at_all_rates(const char* contender) {
  for (const std::int64_t rate : {std::int64_t{0}, std::int64_t{10'000}, kFlatOut}) {
    const std::vector<Axis> axes{{"changes_per_second", rate}};
    add("publish_churn", contender, axes, [=](Repetition& r) { publish_churn<Of>(r, rate); });
    add("dispatch_churn", contender, axes, [=](Repetition& r) { dispatch_churn<Of>(r, rate); });
  }
  return true;
}

[[maybe_unused]] const bool kAdded[] = {
    at_all_rates<OnQueue<Worker::standard>>("bus_moodycamel"),
    at_all_rates<OnSegments<Worker::standard>>("bus_segments"),
    at_all_rates<OnRing<Worker::standard>>("bus_ring"),
};

}  // namespace
}  // namespace ringmain::bench
