// What is a sink? A class that is told of events, one call at a time. It has no thread, no mailbox
// and no subscription of its own: SinkHandle sees to those.
#pragma once
#include <cstdint>

#include "../bus/event.hpp"
#include "../bus/options.hpp"
#include "../bus/result.hpp"

namespace ringmain::registry {

/// Hears events of any described type. A SinkHandle subscribes it and sees to it that one call runs
/// at a time.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  /// One event. What it throws is counted, and the next event comes all the same.
  virtual void hear(const EventView& event) = 0;
  /// No more events are at hand: a good moment to write out what is held.
  virtual void idle() {}
  /// Nothing more will be heard. An Error if anything that was heard is lost.
  virtual Result<bool> close() { return true; }
};

/// A sink may say besides how much of what it heard has not arrived, and be told not to wait any
/// longer for whoever reads it. Both are called while another call of it may be under way, and must
/// wait for nobody.
class Arrivals {
 public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  virtual ~Arrivals() = default;
  [[nodiscard]] virtual std::uint64_t not_arrived() const noexcept = 0;
  virtual void give_up() noexcept = 0;
};

/// A sink may want idle() called at least so often, whether or not there are events: to write a
/// line every second.
class Periodic {
 public:
  Periodic() = default;
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;
  virtual ~Periodic() = default;
  /// Asked once, before the first event. 0 ms: only when no more events are at hand, as others.
  [[nodiscard]] virtual milliseconds idle_every() const noexcept = 0;
};

}  // namespace ringmain::registry
