// Many threads that publish at once, on whatever cores there are.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "bench/events.hpp"
#include "bench/hearing.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {

enum : int { kWarmRoundsMax = 12 };
enum : std::uint64_t { kEventsPerFault = 10'000 };  // a fault takes about 1 us: then 0.1 ns each

/// Each thread pushes for 25 ms through a producer of its own: systems give one by producer(), a
/// callable push(make) that waits, asleep, while there is no room.
template <class Of>
void publishers(Repetition& repetition, unsigned count) {
  const AnyCore any_core;
  Counter counter;
  typename Of::template System<Payload, Counter> system(counter);
  std::vector<decltype(system.producer())> producers;
  for (unsigned i = 0; i < count; ++i) producers.push_back(system.producer());
  std::atomic<std::uint64_t> pushed{0};
  std::atomic<std::int64_t> cpu{0};
  const auto run = [&](unsigned which, std::int64_t until) {
    auto& push = producers[which];
    std::uint64_t mine = 0;
    const std::int64_t before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    while (ticks() < until) {
      for (int i = 0; i < 256; ++i, ++mine) {
        while (!push([mine]() noexcept { return make_event<Payload>(mine, 0); })) {
          std::this_thread::yield();
        }
      }
    }
    cpu += cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    pushed += mine;
  };
  const auto all_for = [&](double ns) {
    const std::int64_t until = ticks() + ticks_of(ns);
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(run, i, until);
    threads.clear();
    while (counter.heard.load(std::memory_order_acquire) < pushed) std::this_thread::yield();
  };
  // Rounds until memory is touched and lanes are warm: with more threads than cores some threads
  // hardly run at first. A system that causes page faults for ever is measured with them.
  for (int round = 0; round < kWarmRoundsMax; ++round) {
    const std::int64_t before = page_faults();
    const std::uint64_t had = pushed;
    all_for(10e6);
    if (static_cast<std::uint64_t>(page_faults() - before) * kEventsPerFault < pushed - had) break;
  }
  const std::uint64_t primed = pushed;
  const std::int64_t faults = page_faults();
  cpu = 0;
  const std::int64_t since = ticks();
  all_for(25e6);
  const auto events = static_cast<double>(pushed - primed);
  repetition.value(events / (ns_since(since) * 1e-9));
  repetition.figure("page_faults", static_cast<double>(page_faults() - faults));
  repetition.figure("cpu_ns_per_publish", static_cast<double>(cpu.load()) / events);
}

template <class Of>
bool add_publishers(const char* contender, std::initializer_list<unsigned> counts) {
  for (const unsigned count : counts) {
    add("publishers", contender, {{"publishers", count}},
        [count](Repetition& repetition) { publishers<Of>(repetition, count); });
  }
  return true;
}

}  // namespace ringmain::bench
