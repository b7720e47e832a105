// Question: how long from publish to callback, from 1,000 events a second to saturation (3, 4b)?
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"
#include "bench/reference.hpp"
#include "bench/segmented_ring.hpp"

namespace ringmain::bench {
namespace {

template <class Of>
bool at(const char* contender, std::initializer_list<std::int64_t> rates) {
  for (const std::int64_t rate : rates) {
    add("latency", contender, {{"per_second", rate}},
        [rate](Repetition& repetition) { latency<Of>(repetition, rate); });
  }
  return true;
}

[[maybe_unused]] const bool kAdded[] = {
    at<Raw<RawBulkQueue, 0>>("raw_moodycamel", {100'000, 1'000'000, 10'000'000}),
    at<Raw<RawRing, 0>>("raw_ring", {100'000, 1'000'000, 10'000'000}),
    at<Raw<SegmentedRing, 0>>("raw_segmented", {100'000, 1'000'000}),
    at<OnQueue<Worker::hot>>("bus_moodycamel",
                             {1'000, 10'000, 100'000, 1'000'000, 3'000'000, 10'000'000}),
    at<OnRing<Worker::hot>>("bus_ring", {1'000, 10'000, 100'000, 1'000'000, 3'000'000, 10'000'000}),
    at<OnSegments<Worker::hot>>("bus_segments", {1'000, 100'000, 1'000'000, 10'000'000}),
    // As a user gets it: the worker may park, and lingers after short batches.
    at<OnQueue<Worker::standard>>("bus_moodycamel_standard", {1'000, 10'000, 100'000, 1'000'000}),
    at<OnSegments<Worker::standard>>("bus_segments_standard", {1'000, 100'000, 1'000'000}),
    at<OnRing<Worker::standard>>("bus_ring_standard", {1'000, 10'000, 100'000, 1'000'000}),
};

}  // namespace
}  // namespace ringmain::bench
