// Question: what does a worker pay for each callback, against a bare loop over pointers (5b)?
#include <array>
#include <cstdint>
#include <vector>

#include "bench/backlog.hpp"
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"
#include "bench/reference.hpp"

namespace ringmain::bench {
namespace {

using Call = void (*)(void* captures, const Payload& event);
struct Row {
  Call call;
  void* captures;
};
struct alignas(engine::kLineBytes) Cell {
  volatile std::uint64_t sum = 0;
};

/// kByEvent: each event to all, then the next; else a run to one subscriber after the other.
template <bool kByEvent>
void bare(Repetition& repetition, unsigned subscribers) {
  std::vector<Cell> cells(subscribers);
  std::vector<Row> rows;
  for (Cell& cell : cells) {
    rows.push_back({[](void* captures, const Payload& event) {
                      auto& sum = static_cast<Cell*>(captures)->sum;
                      sum = sum + event.number;
                    },
                    &cell});
  }
  std::vector<engine::Slot<kSlotOf<Payload>>> run(kRun);
  benchmark::DoNotOptimize(rows.data());
  std::vector<double> ns;
  for (int stretch = 0; stretch < 64; ++stretch) {
    const std::int64_t since = ticks();
    for (int again = 0; again < 16; ++again) {
      const auto event = [&](std::size_t i) -> const Payload& {
        return *reinterpret_cast<const Payload*>(run[i].payload);
      };
      if constexpr (kByEvent) {
        for (std::size_t i = 0; i < kRun; ++i)
          for (const Row& row : rows) row.call(row.captures, event(i));
      } else {
        for (const Row& row : rows)
          for (std::size_t i = 0; i < kRun; ++i) row.call(row.captures, event(i));
      }
    }
    ns.push_back(ns_since(since) / static_cast<double>(16 * kRun));
  }
  repetition.value(median(ns));
}

template <class Of>
void of_backlog(Repetition& repetition, unsigned subscribers) {
  Stopwatch watch;
  typename Of::template System<Payload, Stopwatch> system(watch, subscribers);
  Backlogs backlogs(system, watch);
  backlogs.take(15e6, [] {});
  repetition.value(trimmed_mean(backlogs.ns_each()));
}

bool with(unsigned subscribers) {
  const std::vector<Axis> axes{{"subscribers", subscribers}};
  return add("dispatch", "bare_by_event", axes,
             [=](Repetition& r) { bare<true>(r, subscribers); }) &&
         add("dispatch", "bare_by_subscriber", axes,
             [=](Repetition& r) { bare<false>(r, subscribers); }) &&
         add("dispatch", "bus_moodycamel", axes,
             [=](Repetition& r) { of_backlog<OnQueue<Worker::standard>>(r, subscribers); }) &&
         add("dispatch", "bus_segments", axes,
             [=](Repetition& r) { of_backlog<OnSegments<Worker::standard>>(r, subscribers); }) &&
         add("dispatch", "bus_ring", axes,
             [=](Repetition& r) { of_backlog<OnRing<Worker::standard>>(r, subscribers); });
}

[[maybe_unused]] const bool kAdded[] = {with(1), with(4), with(16)};

}  // namespace
}  // namespace ringmain::bench
