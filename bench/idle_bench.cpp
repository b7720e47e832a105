// Question: what does a bus cost while nothing happens (row 4: idle CPU)?
#include <chrono>
#include <thread>

#include "bench/events.hpp"
#include "bench/on_bus.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {
namespace {

/// Percent of one core that this process takes in half a second.
double percent_of_a_core() {
  const std::int64_t cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t since = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return 100 * static_cast<double>(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / ns_since(since);
}

void process_alone(Repetition& repetition) {
  repetition.value(percent_of_a_core());
}

/// 16 channels with a subscriber each; realtime_ms > 0: one of them has a realtime publisher,
/// which is polled.
void with_bus(Repetition& repetition, int realtime_ms) {
  BusOptions options = bus_options(Worker::standard);
  if (realtime_ms > 0) options.realtime_us_max = std::chrono::milliseconds(realtime_ms);
  Bus bus(options);
  std::vector<Subscription> subscriptions;
  for (int i = 0; i < 16; ++i) {
    auto& channel = bus.channel<Payload>("bench.idle" + std::to_string(i));
    subscriptions.push_back(channel.subscribe([](const Payload&) {}));
    channel.post(make_event<Payload>(0, 0));
  }
  Publisher<Payload> realtime;
  if (realtime_ms > 0) {
    PublisherOptions lane;
    lane.realtime = true;
    lane.capacity_events = 1024;
    realtime = bus.channel<Payload>("bench.idle0").publisher(lane).value();
  }
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until the worker has parked
  repetition.value(percent_of_a_core());
}

[[maybe_unused]] const bool kAdded[] = {
    add("idle_cpu", "process_alone", {}, process_alone),
    add("idle_cpu", "bus", {{"realtime_ms", 0}}, [](Repetition& r) { with_bus(r, 0); }),
    add("idle_cpu", "bus", {{"realtime_ms", 20}}, [](Repetition& r) { with_bus(r, 20); }),
    add("idle_cpu", "bus", {{"realtime_ms", 1}}, [](Repetition& r) { with_bus(r, 1); }),
};

}  // namespace
}  // namespace ringmain::bench
