// What does the bus say about itself? Ordinary events on ordinary channels, found by their types:
//
//   auto loss = bus.channel<ringmain::LossNotice>().subscribe([](const auto& n) { … });
//
// The bus's housekeeper publishes them. It looks once a second, and more often while workers are
// busy. With no subscriber they cost nothing. Losses on a `bus.*` channel itself cause no notice.
//
// A handler of these events runs on a worker, as other callbacks do: on a bus with one worker, a
// handler of SlowSubscriber waits for the very callback that it should hear of. Give such a bus two
// workers. Bus::stats() and stop() name the subscriber in any case.
#pragma once
#include <cstdint>

#include "event.hpp"

namespace ringmain {

/// `bus.loss`: one burst of losses of one channel, from all its publishers. Kept until it is
/// accepted: a subscriber that comes late hears the sum of the losses that were not told before.
/// Refusals after stop() has begun are not told.
struct LossNotice {
  Name channel;            // or the mailbox, by its subscriber's name
  bool mailbox = false;    // true: only that one subscriber lost them
  std::uint64_t full = 0;  // over the capacity; also would_deadlock
  std::uint64_t no_memory = 0;
  std::uint64_t too_deep = 0;
  std::uint64_t evicted = 0;  // pushed out by newer ones
  std::int64_t first_ns = 0;  // CLOCK_MONOTONIC: none was lost before,
  std::int64_t last_ns = 0;   // and none after; as exact as the time between its looks
  [[nodiscard]] constexpr std::uint64_t all() const noexcept {
    return full + no_memory + too_deep + evicted;
  }
};
constexpr auto describe(EventOf<LossNotice>) {
  return event("bus.loss", field<&LossNotice::channel>("channel"),
               field<&LossNotice::mailbox>("mailbox"),
               field<&LossNotice::full>("full", Unit::count),
               field<&LossNotice::no_memory>("no_memory", Unit::count),
               field<&LossNotice::too_deep>("too_deep", Unit::count),
               field<&LossNotice::evicted>("evicted", Unit::count),
               field<&LossNotice::first_ns>("first_ns", Unit::ns),
               field<&LossNotice::last_ns>("last_ns", Unit::ns));
}

/// `bus.slow_subscriber`: a turn of this subscriber (up to 256 events handed to it at once) has
/// taken longer than SubscribeOptions::budget_us and still runs. Told once per turn, within twice
/// the budget of its start. Time in which the whole process stood still does not count.
struct SlowSubscriber {
  Name subscriber;              // its SubscribeOptions::name
  Name channel;                 // or its mailbox
  std::int64_t running_ns = 0;  // at least, and so far
  std::int64_t budget_ns = 0;
};
constexpr auto describe(EventOf<SlowSubscriber>) {
  return event("bus.slow_subscriber", field<&SlowSubscriber::subscriber>("subscriber"),
               field<&SlowSubscriber::channel>("channel"),
               field<&SlowSubscriber::running_ns>("running_ns", Unit::ns),
               field<&SlowSubscriber::budget_ns>("budget_ns", Unit::ns));
}

/// `bus.threw`: a callback threw. At most one per second and subscriber; throws of an inline
/// subscriber are told within a second.
struct Threw {
  Name subscriber;
  Name channel;             // or its mailbox
  std::uint64_t count = 0;  // since the last notice of it
  Text<128> what;           // what one of them said
};
constexpr auto describe(EventOf<Threw>) {
  return event("bus.threw", field<&Threw::subscriber>("subscriber"),
               field<&Threw::channel>("channel"), field<&Threw::count>("count", Unit::count),
               field<&Threw::what>("what"));
}

/// `bus.quarantined`: OnThrow::quarantine has shut a subscriber out; its events are counted as
/// skipped until Subscription::readmit().
struct Quarantined {
  Name subscriber;
  Name channel;             // or its mailbox
  std::uint64_t count = 0;  // throws within a second: SubscribeOptions::throws_max
  Text<128> what;           // what one of them said
};
constexpr auto describe(EventOf<Quarantined>) {
  return event("bus.quarantined", field<&Quarantined::subscriber>("subscriber"),
               field<&Quarantined::channel>("channel"),
               field<&Quarantined::count>("count", Unit::count), field<&Quarantined::what>("what"));
}

/// `bus.waiting_removal`: a reset() has been waiting for a second for a call that does not end.
/// Perhaps its caller holds a lock that the callback wants. Told once per wait.
struct WaitingRemoval {
  Name subscriber;
  Name channel;  // or its mailbox
  std::int64_t waited_ns = 0;
};
constexpr auto describe(EventOf<WaitingRemoval>) {
  return event("bus.waiting_removal", field<&WaitingRemoval::subscriber>("subscriber"),
               field<&WaitingRemoval::channel>("channel"),
               field<&WaitingRemoval::waited_ns>("waited_ns", Unit::ns));
}

}  // namespace ringmain
