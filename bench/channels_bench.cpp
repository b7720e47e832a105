// Question: what do many channels cost, and what do more workers bring?
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/events.hpp"
#include "bench/hearing.hpp"
#include "bench/on_bus.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {
namespace {

struct Line {  // one channel with its publisher and its subscriber
  Line(Bus& bus, unsigned i, LaneKind lane)
      : heard(std::make_unique<Counter>()),
        subscription(
            channel(bus, i).subscribe([to = heard.get()](const Payload& event) { (*to)(event); })) {
    PublisherOptions options;
    options.capacity_events = 4096;
    options.overflow = Overflow::block;
    options.lane = lane;
    publisher = channel(bus, i).publisher(options).value();
  }
  static Channel<Payload>& channel(Bus& bus, unsigned i) {
    return bus.channel<Payload>("bench.line" + std::to_string(i));
  }
  std::unique_ptr<Counter> heard;
  Subscription subscription;
  Publisher<Payload> publisher;
};

std::vector<Line> lines_of(Bus& bus, unsigned count, LaneKind lane) {
  std::vector<Line> lines;
  for (unsigned i = 0; i < count; ++i) lines.emplace_back(bus, i, lane);
  return lines;
}

/// One thread goes round `count` channels, so that all of them are busy.
template <LaneKind kLane>
void many_channels(Repetition& repetition, unsigned count) {
  Bus bus(bus_options(Worker::standard));
  std::vector<Line> lines = lines_of(bus, count, kLane);
  std::uint64_t pushed = 0;
  const auto round = [&](double ns) {
    const std::uint64_t before = pushed;
    const std::int64_t since = ticks();
    const std::int64_t until = since + ticks_of(ns);
    do {
      for (Line& line : lines) {
        for (std::uint64_t i = 0; i < 16; ++i, ++pushed) {
          (void)line.publisher.publish_with([i]() noexcept { return make_event<Payload>(i, 0); });
        }
      }
    } while (ticks() < until);
    for (Line& line : lines) line.heard->wait_for(pushed / count);
    return static_cast<double>(pushed - before) / (ns_since(since) * 1e-9);
  };
  (void)round(5e6);
  repetition.value(round(20e6));
}

/// Four channels, or as many as there are workers, each with a thread that publishes.
template <LaneKind kLane>
void many_workers(Repetition& repetition, unsigned workers) {
  const AnyCore any_core;
  Bus bus(bus_options(Worker::loose, workers));
  std::vector<Line> lines = lines_of(bus, std::max(4u, workers), kLane);
  std::atomic<std::uint64_t> events{0};
  const std::int64_t since = ticks();
  const std::int64_t until = since + ticks_of(25e6);
  std::vector<std::jthread> threads;
  for (Line& line : lines) {
    threads.emplace_back([&line, &events, until] {
      std::uint64_t mine = 0;
      while (ticks() < until) {
        for (int i = 0; i < 256; ++i, ++mine) {
          (void)line.publisher.publish_with(
              [mine]() noexcept { return make_event<Payload>(mine, 0); });
        }
      }
      events += mine;
    });
  }
  threads.clear();
  if (!bus.flush(std::chrono::seconds(10))) return repetition.fail("not delivered in 10 s");
  repetition.value(static_cast<double>(events.load()) / (ns_since(since) * 1e-9));
}

template <LaneKind kLane>
bool add_all(const char* contender) {
  for (const unsigned count : {1u, 16u, 64u, 256u}) {
    add("channels", contender, {{"channels", count}},
        [count](Repetition& repetition) { many_channels<kLane>(repetition, count); });
  }
  // More than four only where each worker and each publisher has a core of its own.
  for (unsigned workers = 1; workers <= 4 || (workers <= 32 && 2 * workers <= cores_here());
       workers *= 2) {
    add("workers", contender, {{"workers", workers}},
        [workers](Repetition& repetition) { many_workers<kLane>(repetition, workers); });
  }
  return true;
}
[[maybe_unused]] const bool kAdded =
    add_all<LaneKind::segments>("bus_segments") && add_all<LaneKind::moodycamel>("bus_moodycamel");

}  // namespace
}  // namespace ringmain::bench
