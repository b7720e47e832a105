// Question: what does a publish cost that must wake the worker, and when does the call run (2c, 4)?
#include <atomic>
#include <climits>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/system/atomics.hpp"

#include "bench/on_bus.hpp"
#include "bench/questions.hpp"

namespace ringmain::bench {
namespace {

template <class System>
std::uint64_t wakes(System& system) {
  std::uint64_t sum = 0;
  for (const WorkerStats& worker : system.bus().stats().workers) sum += worker.wakes;
  return sum;
}
template <class Of>
void on_bus(Repetition& repetition) {
  publish_waking<Of>(repetition, [](auto& system) { return wakes(system); });
}

/// A store and the bare system call, to a thread that looks as long as a worker before it sleeps.
void bare_futex(Repetition& repetition) {
  engine::Atomic<std::uint32_t> word{0};
  std::atomic<std::uint32_t> seen{0};
  std::atomic<std::int64_t> sent{0};
  std::vector<std::int64_t> calls, samples;
  std::jthread sleeper([&](const std::stop_token& stop) {
    pin(cores().worker);
    for (std::uint32_t at = 0;;) {
      const std::int64_t until = ticks() + ticks_of(50e3);
      while (word.load() == at && ticks() < until) engine::pause();
      while (word.load() == at) engine::futex_wait(word, at);
      if (stop.stop_requested()) return;
      samples.push_back(ticks() - sent.load(std::memory_order_relaxed));
      seen.store(++at);
    }
  });
  for (std::uint32_t i = 1; i <= kSilences + 1; ++i) {
    spin_for(kSilenceNs);
    const std::int64_t now = ticks();
    sent.store(now, std::memory_order_relaxed);
    word.store(i);
    engine::futex_wake(word, INT_MAX);
    calls.push_back(ticks() - now);
    while (seen.load() != i) engine::pause();
  }
  sleeper.request_stop();
  word.store(kSilences + 2);
  engine::futex_wake(word, INT_MAX);
  sleeper.join();
  calls.erase(calls.begin());
  samples.erase(samples.begin());
  tell_wakes(repetition, calls, samples);
}

[[maybe_unused]] const bool kAdded[] = {
    add("wake", "bare_futex", {}, bare_futex),
    add("wake", "bus_moodycamel", {}, on_bus<OnQueue<Worker::standard>>),
    add("wake", "bus_segments", {}, on_bus<OnSegments<Worker::standard>>),
    add("wake", "bus_ring", {}, on_bus<OnRing<Worker::standard>>),
};

}  // namespace
}  // namespace ringmain::bench
