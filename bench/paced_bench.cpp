// Question: what does one publish cost a thread that publishes now and then, worker awake (2b)?
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"
#include "bench/reference.hpp"
#include "bench/segmented_ring.hpp"

namespace ringmain::bench {
namespace {

template <class Of>
bool at_both_rates(const char* contender) {
  for (const std::int64_t rate : {100'000, 1'000'000}) {
    add("publish_paced", contender, {{"per_second", rate}},
        [rate](Repetition& repetition) { publish_paced<Of>(repetition, rate); });
  }
  return true;
}

[[maybe_unused]] const bool kAdded[] = {
    at_both_rates<Raw<RawBulkQueue, 0>>("raw_moodycamel"),
    at_both_rates<Raw<RawRing, 0>>("raw_ring"),
    at_both_rates<Raw<SegmentedRing, 0>>("raw_segmented"),
    at_both_rates<OnQueue<Worker::hot>>("bus_moodycamel"),
    at_both_rates<OnSegments<Worker::hot>>("bus_segments"),
    at_both_rates<OnRing<Worker::hot>>("bus_ring"),
};

}  // namespace
}  // namespace ringmain::bench
