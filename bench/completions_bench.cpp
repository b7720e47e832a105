// Question: what does arming a point of a stream add to the driver's calls for it (10e), and what
// does the poller take while nothing is armed (10f)?
//
// The driver's functions are stand-ins that do nothing, so that no driver is in the figures; what
// calling them takes is a contender of its own, to be subtracted. Arming is timed without the
// poller: what it does, which is to give the room back, is done between the stretches.
#include <chrono>
#include <memory>
#include <thread>

#include "bus/test_bus.hpp"

#include "adapters/sources/cuda/completions_core.hpp"

#include "bench/repetition.hpp"
#include "bench/time_each.hpp"

namespace ringmain::bench {
namespace {

using namespace ringmain::cuda;

constexpr int kStretch = 4096;
int here = 0;  // what handles point to

/// A driver that agrees to everything, with one stream in one context.
const Driver& agreeable() {
  static const Driver driver = [] {
    Driver made;
    made.context_current = [](void** context) { return *context = &here, 0; };
    made.set_context = [](void*) { return 0; };
    made.context_id = [](void*, unsigned long long* id) { return *id = 1, 0; };
    made.stream_query = [](void*) { return 0; };
    made.stream_destroy = [](void*) { return 0; };
    made.stream_id = [](void*, unsigned long long* id) { return *id = 7, 0; };
    made.stream_context = [](void*, void** context) { return *context = &here, 0; };
    made.is_capturing = [](void*, int* capturing) { return *capturing = 0, 0; };
    made.exchange_capture_mode = [](int*) { return 0; };
    made.write_value = [](void*, unsigned long long, std::uint64_t, unsigned) { return 0; };
    made.host_unregister = [](void*) { return 0; };
    return made;
  }();
  return driver;
}

std::shared_ptr<CompletionsCore> made(Bus* bus) {
  auto core =
      std::make_shared<CompletionsCore>(agreeable(), CompletionsOptions{.lane_tickets = kStretch});
  core->strategy = Strategy::memory_writes;
  core->context = &here;
  core->context_id = 1;
  core->words = Words::make(core->options.lanes_max);
  if (bus != nullptr) core->publisher = bus->channel<Completion>().publisher();
  return core;
}

void arm(Repetition& repetition) {
  const auto core = made(nullptr);
  std::uint64_t refused = 0;
  repetition.value(time_stretches<kStretch>(
      [&] { refused += core->arm(&here, 1, nullptr) ? 0 : 1; },
      [&] { core->for_each_lane([](Lane& lane) { lane.tail = lane.armed(); }); }));
  if (refused != 0) repetition.fail("some were refused");
}

void drivers_calls(Repetition& repetition) {
  const Driver* driver = &agreeable();
  int capturing = 0;
  unsigned long long id = 0;
  repetition.value(time_stretches<kStretch>(
      [&] {
        benchmark::DoNotOptimize(driver);
        (void)own(driver->is_capturing, static_cast<void*>(&here), &capturing);
        (void)own(driver->stream_id, static_cast<void*>(&here), &id);
        (void)own(driver->write_value, static_cast<void*>(&here), 0ULL, std::uint64_t{1}, 0U);
      },
      [] {}));
}

/// What it is compared with. `stamped`: its time is asked for, so that it looks at the clock once,
/// as arming does.
void ring_publish(Repetition& repetition, bool stamped) {
  TestBus bus;
  std::uint64_t heard = 0;
  auto& channel = bus.channel<Completion>();
  const auto subscription =
      stamped ? channel.subscribe([&heard](const Completion&, const Stamp&) { ++heard; })
              : channel.subscribe([&heard](const Completion&) { ++heard; });
  auto publisher = channel.publisher({.capacity_events = kStretch, .lane = LaneKind::ring}).value();
  std::uint64_t refused = 0;
  const Completion completion;
  repetition.value(time_stretches<kStretch>(
      [&] { refused += publisher.publish(completion) == PublishCode::accepted ? 0 : 1; },
      [&] { (void)bus.deliver(); }));
  if (refused != 0 || heard == 0) repetition.fail("some were refused");
}

/// Percent of a core that this process takes in half a second.
void nothing_armed(Repetition& repetition, bool with_poller) {
  Bus bus;
  std::shared_ptr<CompletionsCore> core;
  if (with_poller) {
    core = made(&bus);
    if (core->start()) return repetition.fail("no thread");
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until all have parked
  const std::int64_t cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t since = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  repetition.value(100 * static_cast<double>(cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) /
                   ns_since(since));
  if (core && core->end(std::chrono::seconds(10)) != Detached::done) repetition.fail("no end");
}

[[maybe_unused]] const bool kAdded[] = {
    add("completions", "arm", {}, arm),
    add("completions", "drivers_calls", {}, drivers_calls),
    add("completions", "ring_publish", {}, [](Repetition& r) { ring_publish(r, false); }),
    add("completions", "ring_publish_stamped", {}, [](Repetition& r) { ring_publish(r, true); }),
    add("completions_idle", "without", {}, [](Repetition& r) { nothing_armed(r, false); }),
    add("completions_idle", "poller", {}, [](Repetition& r) { nothing_armed(r, true); }),
};

}  // namespace
}  // namespace ringmain::bench
