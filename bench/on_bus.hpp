// ringmain as a system that can be published to, beside the raw loops and the peers.
//
// Nothing is switched off: ledgers, exact bounds, gates, statistics and quiescence are on.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "bus/bus.hpp"

#include "bench/machine.hpp"
#include "bench/reference.hpp"

namespace ringmain::bench {

enum class Worker {
  hot,       // never parks, never lingers: the lowest latency
  standard,  // as a user gets it, on a core of its own
  loose      // the same on any core
};

inline BusOptions bus_options(Worker worker, unsigned workers = 1) {
  BusOptions options;
  options.workers = workers;
  if (worker != Worker::loose) options.worker_cpus = worker_cpus();
  if (worker == Worker::hot) {
    options.spin_us = std::chrono::seconds(1);
    options.linger_ns = std::chrono::nanoseconds(0);
  }
  return options;
}

inline PublisherOptions lane_of(LaneKind kind) {
  PublisherOptions options;
  options.capacity_events = kInFlight;
  options.lane = kind;
  return options;
}

template <LaneKind kLane, Worker kWorker>
struct OnBus {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear, unsigned subscribers = 1)
        : bus_(bus_options(kWorker)),
          channel_(bus_.channel<E>("bench.events")),
          cells_(subscribers) {
      subscriptions_.push_back(channel_.subscribe([&hear](const E& event) { hear(event); }));
      for (unsigned i = 1; i < subscribers; ++i) {
        subscriptions_.push_back(channel_.subscribe(
            [cell = &cells_[i]](const E& event) { cell->sum = cell->sum + event.number; }));
      }
      publisher_ = channel_.publisher(lane_of(kLane)).value();
    }
    template <class Make>
    [[gnu::always_inline]] bool push(Make&& make) {
      return publisher_.publish_with(make).code == PublishCode::accepted;
    }
    /// What one more publishing thread publishes through.
    [[nodiscard]] auto producer() {
      PublisherOptions options = lane_of(kLane);
      options.overflow = Overflow::block;
      return [mine = channel_.publisher(options).value()](auto make) mutable {
        return mine.publish_with(make).code == PublishCode::accepted;
      };
    }
    [[nodiscard]] Bus& bus() { return bus_; }
    [[nodiscard]] Channel<E>& channel() { return channel_; }

   private:
    struct alignas(engine::kLineBytes) Cell {
      volatile std::uint64_t sum = 0;
    };
    Bus bus_;
    Channel<E>& channel_;
    std::vector<Cell> cells_;
    std::vector<Subscription> subscriptions_;
    Publisher<E> publisher_;
  };
};

template <Worker kWorker>
using OnQueue = OnBus<LaneKind::moodycamel, kWorker>;
template <Worker kWorker>
using OnSegments = OnBus<LaneKind::segments, kWorker>;
template <Worker kWorker>
using OnRing = OnBus<LaneKind::ring, kWorker>;

}  // namespace ringmain::bench
