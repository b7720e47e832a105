// Question: how many events a second go from one publisher to its callbacks (5a, 5b)?
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"
#include "bench/reference.hpp"
#include "bench/segmented_ring.hpp"

namespace ringmain::bench {
namespace {

using BusQueue = OnQueue<Worker::standard>;
using BusRing = OnRing<Worker::standard>;
using BusSegments = OnSegments<Worker::standard>;

template <class E>
bool of_size() {
  const std::vector<Axis> axes{{"payload_bytes", sizeof(E)}};
  return add("throughput", "raw_moodycamel", axes, throughput<Raw<RawBulkQueue, 300>, E>) &&
         add("throughput", "raw_ring", axes, throughput<Raw<RawRing, 300>, E>) &&
         add("throughput", "raw_segmented", axes, throughput<Raw<SegmentedRing, 300>, E>) &&
         add("throughput", "bus_moodycamel", axes, throughput<BusQueue, E>) &&
         add("throughput", "bus_segments", axes, throughput<BusSegments, E>) &&
         add("throughput", "bus_ring", axes, throughput<BusRing, E>);
}

/// Callbacks a second are this times the subscribers.
bool to_many() {
  for (const unsigned subscribers : {4u, 16u}) {
    const std::vector<Axis> axes{{"subscribers", subscribers}};
    add("fan_out", "bus_moodycamel", axes, [=](Repetition& repetition) {
      throughput<BusQueue, Payload, unsigned>(repetition, subscribers);
    });
    add("fan_out", "bus_segments", axes, [=](Repetition& repetition) {
      throughput<BusSegments, Payload, unsigned>(repetition, subscribers);
    });
    add("fan_out", "bus_ring", axes, [=](Repetition& repetition) {
      throughput<BusRing, Payload, unsigned>(repetition, subscribers);
    });
  }
  return true;
}

[[maybe_unused]] const bool kAdded[] = {
    of_size<Payload>(),
    of_size<Sized<8>>(),
    of_size<Sized<64>>(),
    of_size<Sized<256>>(),
    of_size<Sized<1024>>(),
    add("throughput", "raw_moodycamel_single", {{"payload_bytes", 32}},
        throughput<Raw<RawSingleQueue, 0>, Payload>),
    add("throughput", "raw_moodycamel_bulk", {{"payload_bytes", 32}},
        throughput<Raw<RawBulkQueue, 0>, Payload>),
    to_many(),
};

}  // namespace
}  // namespace ringmain::bench
