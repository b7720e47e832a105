// Question: how much memory does a queued event take, and an idle channel, and what grows (row 7)?
//
// A program of its own: its allocation functions count, which would slow the others down.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <string>
#include <vector>

#include "bench/events.hpp"
#include "bench/hearing.hpp"
#include "bench/on_bus.hpp"
#include "bench/questions.hpp"

namespace ringmain::bench {
namespace {

std::atomic<std::uint64_t> allocations{0};

double bytes_in_use() {
  const struct mallinfo2 heap = ::mallinfo2();
  return static_cast<double>(heap.uordblks + heap.hblkhd);
}

template <LaneKind kLane>
void queued_event(Repetition& repetition) {
  Counter counter;
  typename OnBus<kLane, Worker::standard>::template System<Payload, Counter> system(counter);
  push_one<Payload>(system, kHold);
  counter.wait_until_inside();
  PublisherOptions options = lane_of(kLane);
  options.capacity_events = 1 << 20;
  const double before = bytes_in_use();
  auto publisher = system.channel().publisher(options).value();
  enum : std::uint64_t { kDepth = 1'000'000 };
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < kDepth; ++i) {
    accepted += publisher.publish(make_event<Payload>(i, 0)).code == PublishCode::accepted;
  }
  const double bytes = bytes_in_use() - before;
  counter.go_on();
  counter.wait_for(kDepth + 1);
  if (accepted != kDepth) return repetition.fail("events were refused");
  repetition.value(bytes / static_cast<double>(kDepth));
  repetition.figure("slot_bytes", static_cast<double>(kSlotOf<Payload>));
}

void idle_channel(Repetition& repetition) {
  Bus bus(bus_options(Worker::standard));
  enum : int { kChannels = 256 };
  std::vector<Subscription> subscriptions;
  std::vector<Publisher<Payload>> publishers;
  subscriptions.reserve(kChannels);
  publishers.reserve(kChannels);
  const auto open = [&](int i) {
    auto& channel = bus.channel<Payload>("bench.idle" + std::to_string(i));
    subscriptions.push_back(channel.subscribe([](const Payload&) {}));
    publishers.push_back(channel.publisher());
    (void)publishers.back().publish(make_event<Payload>(0, 0));
  };
  open(0);
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  const double before = bytes_in_use();
  for (int i = 1; i < kChannels; ++i) open(i);
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  repetition.value((bytes_in_use() - before) / (kChannels - 1));
}

/// After a warm-up of the same depth: allocations for each million of events.
template <LaneKind kLane>
void steady_state(Repetition& repetition) {
  Counter counter;
  typename OnBus<kLane, Worker::standard>::template System<Payload, Counter> system(counter);
  std::uint64_t pushed = 0;
  const auto a_million = [&] {
    for (std::uint64_t burst = 0; burst < 125; ++burst) {
      push_one<Payload>(system, kHold);
      counter.wait_until_inside();
      for (std::uint64_t i = 0; i < 8000; ++i) push_one<Payload>(system, i);
      counter.go_on();
      counter.wait_for(pushed += 8001);
    }
  };
  a_million();
  const std::uint64_t before = allocations.load();
  const double bytes = bytes_in_use();
  a_million();
  repetition.value(static_cast<double>(allocations.load() - before));
  repetition.figure("growth_bytes", bytes_in_use() - bytes);
}

[[maybe_unused]] const bool kAdded[] = {
    add("memory_event", "bus_moodycamel", {}, queued_event<LaneKind::moodycamel>),
    add("memory_event", "bus_segments", {}, queued_event<LaneKind::segments>),
    add("memory_channel", "bus_segments", {}, idle_channel),  // by default
    add("memory_steady", "bus_moodycamel", {}, steady_state<LaneKind::moodycamel>),
    add("memory_steady", "bus_segments", {}, steady_state<LaneKind::segments>),
    add("memory_steady", "bus_ring", {}, steady_state<LaneKind::ring>),
};

}  // namespace
}  // namespace ringmain::bench

// The C library's functions under its own names, counted. All others end in these.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  ringmain::bench::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ringmain::bench::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ringmain::bench::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ringmain::bench::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
}
