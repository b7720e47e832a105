// Question: what becomes of cost and throughput with more publishing threads than cores (8a, 8b)?
#include "bench/on_bus.hpp"
#include "bench/producers.hpp"

namespace ringmain::bench {
namespace {

template <class Of>
bool up_to_all_cores(const char* contender) {
  add_publishers<Of>(contender, {1, 2, 4, 8, 16});
  for (unsigned count = 32; count <= 256 && count <= cores_here(); count *= 2)
    add_publishers<Of>(contender, {count});
  return true;
}

[[maybe_unused]] const bool kAdded[] = {
    up_to_all_cores<OnQueue<Worker::loose>>("bus_moodycamel"),
    up_to_all_cores<OnSegments<Worker::loose>>("bus_segments"),
    up_to_all_cores<OnRing<Worker::loose>>("bus_ring"),
};

}  // namespace
}  // namespace ringmain::bench
