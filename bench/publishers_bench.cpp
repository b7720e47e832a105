// Question: what becomes of cost and throughput with more publishing threads than cores (8a, 8b)?
#include "bench/on_bus.hpp"
#include "bench/producers.hpp"

namespace ringmain::bench {
namespace {

[[maybe_unused]] const bool kAdded[] = {
    add_publishers<OnQueue<Worker::loose>>("bus_moodycamel", {1, 2, 4, 8, 16}),
    add_publishers<OnSegments<Worker::loose>>("bus_segments", {1, 2, 4, 8, 16}),
    add_publishers<OnRing<Worker::loose>>("bus_ring", {1, 2, 4, 8, 16}),
};

}  // namespace
}  // namespace ringmain::bench
