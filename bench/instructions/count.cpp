// Question: how many instructions does one publish take, and one dispatch? Exact, without a clock.
//
// Run under callgrind by bench/scripts/bench_instructions.py, which counts what lies inside the
// functions named count_*: kEvents turns of a loop around one call each.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "bench/events.hpp"

namespace ringmain::bench {
namespace {
enum : std::uint64_t { kEvents = 2048 };  // whole runs of 256
}

extern "C" {
[[gnu::noinline]] std::uint64_t count_wanted(const Publisher<Payload>& publisher) {
  std::uint64_t heard = 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    if (publisher.wanted()) ++heard;
    asm volatile("" ::: "memory");
  }
  return heard;
}

#define RINGMAIN_COUNT_PUBLISH(name)                                                           \
  [[gnu::noinline]] std::uint64_t name(Publisher<Payload>& publisher) {                        \
    std::uint64_t accepted = 0;                                                                \
    for (std::uint64_t i = 0; i < kEvents; ++i) {                                              \
      accepted +=                                                                              \
          publisher.publish_with([i]() noexcept { return make_event<Payload>(i, 0); }).code == \
          PublishCode::accepted;                                                               \
    }                                                                                          \
    return accepted;                                                                           \
  }
RINGMAIN_COUNT_PUBLISH(count_publish_unheard)
RINGMAIN_COUNT_PUBLISH(count_publish_moodycamel)
RINGMAIN_COUNT_PUBLISH(count_publish_ring)
RINGMAIN_COUNT_PUBLISH(count_publish_segments)

[[gnu::noinline]] std::size_t count_dispatch_moodycamel(TestBus& bus) {
  return bus.deliver();
}
[[gnu::noinline]] std::size_t count_dispatch_ring(TestBus& bus) {
  return bus.deliver();
}
[[gnu::noinline]] std::size_t count_dispatch_segments(TestBus& bus) {
  return bus.deliver();
}
[[gnu::noinline]] std::size_t count_dispatch_alone_moodycamel(TestBus& bus) {
  return bus.deliver();
}
[[gnu::noinline]] std::size_t count_dispatch_alone_ring(TestBus& bus) {
  return bus.deliver();
}
[[gnu::noinline]] std::size_t count_dispatch_alone_segments(TestBus& bus) {
  return bus.deliver();
}
}

namespace {

PublisherOptions lane_of(LaneKind kind) {
  PublisherOptions options;
  options.lane = kind;
  return options;
}

bool unheard() {
  Bus bus;
  auto publisher = bus.channel<Payload>("count.unheard").publisher();
  return count_wanted(publisher) == 0 && count_publish_unheard(publisher) == 0;
}

/// One subscriber; the worker is held in its callback, so that the channel is attended and only
/// this thread runs. The second round is counted: memory is there by then, and blocks are reused.
template <class Count>
bool publishes(LaneKind kind, Count count) {
  Bus bus;
  auto& channel = bus.channel<Payload>("count.publish");
  std::atomic<std::uint32_t> held{0}, inside{0};
  const Subscription subscription = channel.subscribe([&](const Payload& event) {
    if (event.number != kHold) return;
    inside = 1;
    inside.notify_all();
    held.wait(1);
  });
  auto publisher = channel.publisher(lane_of(kind)).value();
  const auto hold = [&] {
    held = 1;
    inside = 0;
    (void)publisher.publish(make_event<Payload>(kHold, 0));
    inside.wait(0);
  };
  const auto let_go = [&] {
    held = 0;
    held.notify_all();
    return bus.flush(std::chrono::seconds(60));
  };
  hold();
  for (std::uint64_t i = 0; i < 4 * kEvents; ++i)
    (void)publisher.publish(make_event<Payload>(i, 0));
  if (!let_go()) return false;
  hold();
  const std::uint64_t accepted = count(publisher);
  return let_go() && accepted == kEvents;
}

/// `at_once`: how many events wait for each call of `count`.
template <class Count>
bool dispatches(LaneKind kind, std::uint64_t at_once, Count count) {
  TestBus bus;
  auto& channel = bus.channel<Payload>("count.dispatch");
  volatile std::uint64_t sum = 0;
  const Subscription subscription =
      channel.subscribe([&sum](const Payload& event) { sum = sum + event.number; });
  auto publisher = channel.publisher(lane_of(kind)).value();
  const auto fill = [&](std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) (void)publisher.publish(make_event<Payload>(i, 0));
  };
  fill(kEvents);
  (void)bus.deliver();
  for (std::uint64_t turns = 0; turns < kEvents; ++turns) {  // it counts as called often then
    fill(1);
    (void)bus.deliver();
  }
  std::uint64_t delivered = 0;
  for (std::uint64_t left = kEvents; left > 0; left -= at_once) {
    fill(at_once);
    delivered += count(bus);
  }
  return delivered == kEvents;
}

}  // namespace
}  // namespace ringmain::bench

int main() {
  using namespace ringmain;
  using namespace ringmain::bench;
  const bool right = unheard() && publishes(LaneKind::moodycamel, count_publish_moodycamel) &&
                     publishes(LaneKind::ring, count_publish_ring) &&
                     publishes(LaneKind::segments, count_publish_segments) &&
                     dispatches(LaneKind::moodycamel, kEvents, count_dispatch_moodycamel) &&
                     dispatches(LaneKind::ring, kEvents, count_dispatch_ring) &&
                     dispatches(LaneKind::segments, kEvents, count_dispatch_segments) &&
                     dispatches(LaneKind::segments, 1, count_dispatch_alone_segments) &&
                     dispatches(LaneKind::moodycamel, 1, count_dispatch_alone_moodycamel) &&
                     dispatches(LaneKind::ring, 1, count_dispatch_alone_ring);
  std::printf("%llu\n", static_cast<unsigned long long>(bench::kEvents));
  return right ? 0 : 1;
}
