// Question: how much slower is a loop that computes when it also publishes what it does?
#include "bench/hearing.hpp"
#include "bench/on_bus.hpp"
#include "bench/training.hpp"

namespace ringmain::bench {
namespace {

void without(Repetition& repetition) {
  training_loop(repetition, [](const Payload& event) { benchmark::DoNotOptimize(&event); });
}

template <class Of>
void with_bus(Repetition& repetition) {
  Counter counter;
  typename Of::template System<Payload, Counter> system(counter);
  training_loop(repetition, [&system](const Payload& event) {
    const auto make = [&event]() noexcept { return event; };
    (void)system.push(make);
  });
}

[[maybe_unused]] const bool kAdded[] = {
    add("training", "without", {}, without),
    add("training", "bus_moodycamel", {}, with_bus<OnQueue<Worker::standard>>),
    add("training", "bus_segments", {}, with_bus<OnSegments<Worker::standard>>),
    add("training", "bus_ring", {}, with_bus<OnRing<Worker::standard>>),
};

}  // namespace
}  // namespace ringmain::bench
