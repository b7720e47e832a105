// The loops that every queue, lane and peer goes through alike: one function template per question.
//
// A system is constructed with the callback that hears, and has push(make): false means full, try
// again. It has one publishing thread, this one, on the publisher's core.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/system/atomics.hpp"

#include "bench/events.hpp"
#include "bench/hearing.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {

/// Inlined, as a user's call of publish() is, so that references and lanes are called alike.
template <class E, class System>
[[gnu::always_inline]] inline void push_one(System& system, std::uint64_t number,
                                            std::int64_t sent = 0) {
  const auto make = [=]() noexcept { return make_event<E>(number, sent); };
  while (!system.push(make)) engine::pause();
}

/// Pushes `events` events; nanoseconds for each.
template <class E, class System>
double time_burst(System& system, std::uint64_t events) {
  const std::int64_t since = ticks();
  for (std::uint64_t i = 0; i < events; ++i) push_one<E>(system, i);
  return ns_since(since) / static_cast<double>(events);
}

/// Touches the memory of a whole footprint, so that no measurement pays for page faults. Systems
/// that take microseconds for each event say how many are enough for them.
template <class E, class System, class Hear>
std::uint64_t prime(System& system, Hear& hear) {
  std::uint64_t events = 65536;
  if constexpr (requires { System::kPrime; }) events = System::kPrime;
  for (std::uint64_t i = 0; i < events; ++i) push_one<E>(system, i, ticks());
  hear.wait_for(events);
  return events;
}

// --- publish in a burst, the worker awake and taking ---

enum : std::uint64_t { kBurst = 8192 };
enum : std::size_t { kBurstsMin = 3 };

template <class Of, class E>
void publish_live(Repetition& repetition) {
  Counter counter;
  typename Of::template System<E, Counter> system(counter);
  std::uint64_t pushed = prime<E>(system, counter);
  std::vector<double> ns;
  const std::int64_t until = ticks() + ticks_of(15e6);
  do {
    ns.push_back(time_burst<E>(system, kBurst));
    counter.wait_for(pushed += kBurst);
  } while (ticks() < until || ns.size() < kBurstsMin);
  repetition.value(median(ns));
}

// --- the same while nobody takes anything ---

template <class Of, class E>
void publish_alone(Repetition& repetition) {
  Counter counter;
  typename Of::template System<E, Counter> system(counter);
  std::uint64_t pushed = prime<E>(system, counter);
  std::vector<double> ns;
  const std::int64_t until = ticks() + ticks_of(15e6);
  do {
    push_one<E>(system, kHold);
    counter.wait_until_inside();
    ns.push_back(time_burst<E>(system, kBurst));
    counter.go_on();
    counter.wait_for(pushed += kBurst + 1);
  } while (ticks() < until || ns.size() < kBurstsMin);
  repetition.value(median(ns));
}

// --- at a fixed rate; open loop: a late sender stamps when it should have sent ---

template <class Say>
void pace(std::int64_t per_second, std::uint64_t events, Say say) {
  const double period = 1e9 / static_cast<double>(per_second) / ns_per_tick();
  const std::int64_t late = ticks_of(1000);
  const std::int64_t begin = ticks() + ticks_of(2000);
  for (std::uint64_t i = 0; i < events; ++i) {
    const std::int64_t due = begin + static_cast<std::int64_t>(static_cast<double>(i) * period);
    std::int64_t now = ticks();
    while (now < due) {
      engine::pause();
      now = ticks();
    }
    say(i, now > due + late ? due : now);
  }
}

template <class Of>
void publish_paced(Repetition& repetition, std::int64_t per_second) {
  Counter counter;
  typename Of::template System<Payload, Counter> system(counter);
  const std::uint64_t primed = prime<Payload>(system, counter);
  const auto events = static_cast<std::uint64_t>(per_second / 50);  // 20 ms
  std::vector<std::int64_t> spent, empty;
  spent.reserve(events);
  empty.reserve(events);
  pace(per_second, events, [&](std::uint64_t i, std::int64_t sent) {
    const std::int64_t before = ticks();
    push_one<Payload>(system, i, sent);
    spent.push_back(ticks() - before);
  });
  pace(per_second, std::min<std::uint64_t>(events, 5000), [&](std::uint64_t, std::int64_t) {
    const std::int64_t before = ticks();
    empty.push_back(ticks() - before);
  });
  counter.wait_for(primed + events);
  repetition.value((trimmed_mean(spent) - trimmed_mean(empty)) * ns_per_tick());
}

// --- from publish to callback ---

inline void tell(Repetition& repetition, std::vector<std::int64_t> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) { return quantile(samples, share) * ns_per_tick(); };
  repetition.value(at(0.5));
  repetition.figure("p10", at(0.1));
  repetition.figure("p25", at(0.25));
  repetition.figure("p50", at(0.5));
  repetition.figure("p75", at(0.75));
  repetition.figure("p90", at(0.9));
  repetition.figure("p99", at(0.99));
  repetition.figure("p999", at(0.999));
  repetition.figure("max", at(1));
}

template <class Of>
void latency(Repetition& repetition, std::int64_t per_second) {
  const std::int64_t ms = per_second >= 100'000 ? 20 : per_second >= 10'000 ? 50 : 200;
  const auto events = static_cast<std::uint64_t>(per_second * ms / 1000);
  Latencies latencies(std::max<std::uint64_t>(events, 65536));
  typename Of::template System<Payload, Latencies> system(latencies);
  const std::uint64_t primed = prime<Payload>(system, latencies);
  latencies.samples.clear();
  const std::int64_t slept = sleeps();
  pace(per_second, events,
       [&](std::uint64_t i, std::int64_t sent) { push_one<Payload>(system, i, sent); });
  latencies.wait_for(primed + events);
  repetition.figure("sleeps_per_event",
                    static_cast<double>(sleeps() - slept) / static_cast<double>(events));
  if (latencies.samples.size() != events) return repetition.fail("events were lost");
  tell(repetition, latencies.samples);
}

// --- events per second, from the first push to the last call ---

template <class System, class E, class Hear>
double stream(System& system, Hear& hear, std::uint64_t& pushed, double ns) {
  const std::uint64_t before = pushed;
  const std::int64_t since = ticks();
  const std::int64_t until = since + ticks_of(ns);
  do {
    for (std::uint64_t i = 0; i < 1024; ++i) push_one<E>(system, i);
    pushed += 1024;
  } while (ticks() < until);
  hear.wait_for(pushed);
  return static_cast<double>(pushed - before) / (ns_since(since) * 1e-9);
}

template <class Of, class E, class... Setup>
void throughput(Repetition& repetition, Setup... setup) {
  Counter counter;
  typename Of::template System<E, Counter> system(counter, setup...);
  std::uint64_t pushed = prime<E>(system, counter);
  (void)stream<decltype(system), E>(system, counter, pushed, 5e6);
  repetition.value(stream<decltype(system), E>(system, counter, pushed, 20e6));
}

// --- one event after a silence in which the worker went to sleep ---

enum : int { kSilences = 40 };
constexpr double kSilenceNs = 400e3;  // a worker looks 50 us before it parks

/// What the caller pays, and how long until the call runs.
inline void tell_wakes(Repetition& repetition, const std::vector<std::int64_t>& calls,
                       const std::vector<std::int64_t>& samples) {
  tell(repetition, samples);
  std::vector<std::int64_t> sorted = calls;
  std::sort(sorted.begin(), sorted.end());
  repetition.figure("call_ns", quantile(sorted, 0.5) * ns_per_tick());
  repetition.figure("call_p90_ns", quantile(sorted, 0.9) * ns_per_tick());
}

template <class Of, class After>
void publish_waking(Repetition& repetition, After after) {
  Latencies latencies(kSilences + 1);
  typename Of::template System<Payload, Latencies> system(latencies);
  std::vector<std::int64_t> calls;
  push_one<Payload>(system, 0, ticks());
  latencies.wait_for(1);
  latencies.samples.clear();
  const auto before = after(system);
  for (std::uint64_t i = 0; i < kSilences; ++i) {
    spin_for(kSilenceNs);
    const std::int64_t sent = ticks();
    push_one<Payload>(system, i, sent);
    calls.push_back(ticks() - sent);
    latencies.wait_for(i + 2);
  }
  tell_wakes(repetition, calls, latencies.samples);
  repetition.figure("wakes_per_silence",
                    static_cast<double>(after(system) - before) / static_cast<double>(kSilences));
}

}  // namespace ringmain::bench
