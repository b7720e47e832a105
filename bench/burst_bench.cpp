// Question: what does a publish cost in a burst, while nobody drains, and while a worker does (2a)?
#include "engine/system/clock.hpp"

#include "bench/on_bus.hpp"
#include "bench/questions.hpp"
#include "bench/reference.hpp"
#include "bench/segmented_ring.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using BusQueue = OnQueue<Worker::standard>;
using BusRing = OnRing<Worker::standard>;
using BusSegments = OnSegments<Worker::standard>;

/// Its subscriber wants stamps, so publishers read the clock.
template <LaneKind kLane>
struct Timed {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear)
        : bus_(bus_options(Worker::standard)),
          channel_(bus_.channel<E>("bench.events")),
          heard_(channel_.subscribe([&hear](const E& event, const Stamp&) { hear(event); })),
          publisher_(channel_.publisher(lane_of(kLane)).value()) {}
    template <class Make>
    [[gnu::always_inline]] bool push(Make&& make) {
      return publisher_.publish_with(make).code == PublishCode::accepted;
    }

   private:
    Bus bus_;
    Channel<E>& channel_;
    Subscription heard_;
    Publisher<E> publisher_;
  };
};

void clock_alone(Repetition& repetition) {
  std::int64_t last = 0;
  repetition.value(time_stretches<4096>([&last] { last = engine::now_ns(); }, [] {}));
  benchmark::DoNotOptimize(last);
}

template <class E>
bool alone() {
  const std::vector<Axis> axes{{"payload_bytes", sizeof(E)}};
  return add("publish_alone", "raw_moodycamel", axes, publish_alone<Raw<RawBulkQueue, 300>, E>) &&
         add("publish_alone", "raw_ring", axes, publish_alone<Raw<RawRing, 300>, E>) &&
         add("publish_alone", "raw_segmented", axes, publish_alone<Raw<SegmentedRing, 300>, E>) &&
         add("publish_alone", "bus_moodycamel", axes, publish_alone<BusQueue, E>) &&
         add("publish_alone", "bus_segments", axes, publish_alone<BusSegments, E>) &&
         add("publish_alone", "bus_ring", axes, publish_alone<BusRing, E>);
}

[[maybe_unused]] const bool kAdded[] = {
    alone<Payload>(),
    alone<Sized<8>>(),
    alone<Sized<64>>(),
    alone<Sized<256>>(),
    alone<Sized<1024>>(),
    add("publish_alone_timed", "clock", {}, clock_alone),
    add("publish_alone_timed", "bus_segments", {},
        publish_alone<Timed<LaneKind::segments>, Payload>),
    add("publish_alone_timed", "bus_ring", {}, publish_alone<Timed<LaneKind::ring>, Payload>),
    add("publish_live", "raw_moodycamel_single", {}, publish_live<Raw<RawSingleQueue, 0>, Payload>),
    add("publish_live", "raw_moodycamel_bulk", {}, publish_live<Raw<RawBulkQueue, 0>, Payload>),
    add("publish_live", "raw_moodycamel", {}, publish_live<Raw<RawBulkQueue, 300>, Payload>),
    add("publish_live", "raw_ring", {}, publish_live<Raw<RawRing, 300>, Payload>),
    add("publish_live", "raw_segmented", {}, publish_live<Raw<SegmentedRing, 300>, Payload>),
    add("publish_live", "bus_moodycamel", {}, publish_live<BusQueue, Payload>),
    add("publish_live", "bus_segments", {}, publish_live<BusSegments, Payload>),
    add("publish_live", "bus_ring", {}, publish_live<BusRing, Payload>),
};

}  // namespace
}  // namespace ringmain::bench
