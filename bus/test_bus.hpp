// How does a user test a subscriber? On a bus without threads, which delivers when it is told to.
//
//   ringmain::TestBus bus;
//   Watcher watcher(bus);                               // your code: takes any ringmain::Bus&
//   auto alarms = bus.heard<Alarm>();                   // keeps what it hears
//   bus.channel<Step>().post({.loss = 1e9});
//   bus.deliver();                                      // callbacks run here, in this thread
//   assert(alarms.size() == 1 && alarms[0].loss > 1e6);
//
// Channels, lanes, ledgers, mailboxes and detaching are the real ones. The test decides only when
// and in which order they are drained, and which time stamps carry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "bus.hpp"

namespace ringmain {

/// Keeps every event of a channel, with its stamp, in the order in which it was heard. Move-only;
/// its destructor ends that. Threads: the one that delivers. Progress: wait-free, but for the
/// constructor and the destructor.
template <Event E>
class [[nodiscard]] Heard {
 public:
  explicit Heard(Channel<E>& channel) : kept_(std::make_unique<Kept>()) {
    subscription_ = channel.subscribe([kept = kept_.get()](const E& event, const Stamp& stamp) {
      kept->events.push_back(event);
      kept->stamps.push_back(stamp);
    });
  }

  [[nodiscard]] const std::vector<E>& events() const noexcept { return kept_->events; }
  [[nodiscard]] const std::vector<Stamp>& stamps() const noexcept { return kept_->stamps; }
  [[nodiscard]] std::size_t size() const noexcept { return kept_->events.size(); }
  [[nodiscard]] bool empty() const noexcept { return kept_->events.empty(); }
  [[nodiscard]] const E& operator[](std::size_t i) const noexcept { return kept_->events[i]; }
  [[nodiscard]] const E& back() const noexcept { return kept_->events.back(); }
  [[nodiscard]] auto begin() const noexcept { return kept_->events.begin(); }
  [[nodiscard]] auto end() const noexcept { return kept_->events.end(); }
  /// Forgets what it has kept, and goes on.
  void clear() noexcept {
    kept_->events.clear();
    kept_->stamps.clear();
  }

 private:
  struct Kept {
    std::vector<E> events;
    std::vector<Stamp> stamps;
  };
  std::unique_ptr<Kept> kept_;
  Subscription subscription_;  // after what its callback writes to: detached first
};

/// A bus without threads, for tests. Publishing queues; deliver() calls back, in the calling
/// thread and in the same order every time.
///
/// flush(), stop() and the destructor deliver in their caller. A mailbox's wait_for() delivers and
/// then returns at once. Overflow::block refuses as `full` at once, because no other thread makes
/// room. Threads: any; one delivers at a time. With several publishing threads, the order in which
/// they begin decides whose lane comes first.
class TestBus : public Bus {
 public:
  TestBus();

  /// Hands out all that is queued, and what callbacks publish meanwhile. Order: rounds; in each,
  /// channel after channel as they were made, lane after lane as their publishers came, at most 256
  /// events of one lane. It does not end while callbacks publish for one another without end: give
  /// it a limit then. Returns the number of events; those of an isolated subscription count again
  /// in its mailbox. 0 inside a callback. Progress: blocking.
  std::size_t deliver();
  /// Hands out the next `events_max` events in that order, or as many as there are.
  /// Progress: blocking.
  std::size_t deliver(std::size_t events_max);
  /// Events that deliver() would hand out now. Progress: blocking.
  [[nodiscard]] std::size_t queued() const;

  /// Keeps what is published on a channel from now on, for assertions. Progress: blocking.
  template <Described E>
  [[nodiscard]] Heard<E> heard() {
    return Heard<E>(channel<E>());
  }
  template <Event E>
  [[nodiscard]] Heard<E> heard(std::string_view name) {
    return Heard<E>(channel<E>(name));
  }

  /// The time that stamps carry: 1 s at first. Only the two calls below change it; waits neither
  /// change nor use it. Progress: wait-free.
  [[nodiscard]] std::int64_t time_ns() const noexcept;
  /// Sets it; 0 and less count as 1, since a stamp of 0 means "not yet". Progress: wait-free.
  void set_time_ns(std::int64_t time_ns) noexcept;
  /// Progress: wait-free.
  void advance(nanoseconds by) noexcept { set_time_ns(engine::sum_ns(time_ns(), by.count())); }
};

}  // namespace ringmain
