// What is a sink? A class that is told of events, one call at a time. It has no thread, no mailbox
// and no subscription of its own: a SinkHandle has them.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"
#include "../bus/options.hpp"
#include "../bus/result.hpp"
#include "../bus/stats.hpp"

namespace ringmain {
class Bus;
}

namespace ringmain::registry {

/// Hears events of any described type. A SinkHandle subscribes it and makes one call at a time.
/// Progress: each call may be blocking; it holds up its own mailbox alone.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// One event. An exception is counted, and the next event comes all the same.
  virtual void hear(const EventView& event) = 0;
  /// No more events are at hand: a good moment to write what is held.
  virtual void idle() {}
  /// Nothing more will be heard. An Error if anything that was heard is lost.
  virtual Result<bool> close() { return true; }
};

/// A sink that may have to wait for a reader of its output can derive from this too: it says how
/// many of the events that it heard have not arrived, and can be told to wait no longer. Both may
/// be called during another call of the sink, and must not wait. Progress: wait-free.
class Arrivals {
 public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  virtual ~Arrivals() = default;
  [[nodiscard]] virtual std::uint64_t not_arrived() const noexcept = 0;
  virtual void give_up() noexcept = 0;
};

/// A sink that wants idle() called at least every so often, with events or without, for instance to
/// write a line every second, derives from this too.
class Periodic {
 public:
  Periodic() = default;
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;
  virtual ~Periodic() = default;
  /// Asked once, before the first event. 0 ms: only when no more events are at hand, as for other
  /// sinks. Progress: wait-free.
  [[nodiscard]] virtual milliseconds idle_every() const noexcept = 0;
};

/// A sink that needs more than each channel's own order derives from this too: it hears by
/// subscriptions of its own, such as Bus::subscribe_ordered(), and hear() is not called by
/// SinkHandle::attach(). Its output is written in idle(), which a thread of the handle calls as
/// Periodic says; without that only flush() and close() do.
class Subscribes {
 public:
  Subscribes() = default;
  Subscribes(const Subscribes&) = delete;
  Subscribes& operator=(const Subscribes&) = delete;
  virtual ~Subscribes() = default;
  /// Once, by attach(), whatever its pattern is. What it throws is attach()'s Error. The bus
  /// outlives the subscription.
  virtual void subscribe(Bus& bus) = 0;
  /// Hears what was published before, and nothing more. Called before close(), outside callbacks.
  /// Progress: may be blocking.
  virtual void unsubscribe() noexcept = 0;
  /// Its subscription's. Threads: any.
  [[nodiscard]] virtual SubscriberStats stats() const noexcept = 0;
};

}  // namespace ringmain::registry
