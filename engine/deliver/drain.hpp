// How does a run of events leave its lane? Taken in order, handed to each subscriber, then
// accounted.
//
// `consumed` is raised after the callbacks: flush() returns, and slots are reused, only once an
// event was heard.
#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include "../channel/channel_core.hpp"
#include "../subscribe/shown.hpp"
#include "../watch/watchdog.hpp"
#include "glances.hpp"

namespace ringmain::engine {

/// What a thread needs to drain: a place to show what it reads, and room for a batch.
struct Drainer {
  enum : std::size_t { kBatchMax = 256, kRoomBytes = 64 * 1024 };
  static_assert(kRoomBytes >= slot_sizes().back(), "a take makes progress on every lane");

  alignas(kLineBytes) Reading reading{nullptr};
  /// Which subscriber is called: its end may wait for that.
  Shown shown{nullptr};
  /// Which subscriber is called, in which turn: call_word(), or 0. For the watchdog and for
  /// stop()'s report.
  Atomic<std::uint64_t> calling{0};
  std::uint32_t turns = 0;
  enum : std::uint32_t { kAnyRoom = ~0u };
  /// The smallest capacity of the lanes that runs were handed out of; 0: one of them was overrun,
  /// or holds more than a run may. Its own.
  std::uint32_t least_room = kAnyRoom;
  Glances glances;
  /// Odd while this thread hands out a run of a channel that delivers in parallel. Younger runs may
  /// overtake it there, so flush() waits for each run that it finds under way.
  Atomic<std::uint64_t> apart{0};
  alignas(kLineBytes) std::byte room[kRoomBytes];
  CallClock turn;  // the housekeeper's view of `calling`

  /// Is a call of it shown? What a call that is over has written is seen. Threads: any.
  [[nodiscard]] bool shows(const Subscriber& subscriber) const noexcept {
    return shown.load(std::memory_order_acquire) == &subscriber;  // g.shown
  }
  /// `least_room` since this was last called.
  [[nodiscard]] std::uint32_t take_least_room() noexcept {
    return std::exchange(least_room, std::uint32_t{kAnyRoom});
  }
  /// Called once there is something to serve, before any callback. Of a channel that delivers in
  /// parallel it passes the lease on.
  virtual void before_callbacks(ChannelCore&) noexcept {}
  virtual ~Drainer() = default;
};

/// Takes up to `max` events off a lane, and no more than fit into `room` unless the lane is a ring.
/// Evicts what the publisher has pushed out, at most as many as the lane's capacity. Threads: the
/// holder of the channel's lease.
[[nodiscard]] Run take_run(Lane& lane, std::span<std::byte> room, std::size_t max) noexcept;
/// For a run whose callbacks are over: lets its slots be written again.
void finish_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// Hands a run to every subscriber, and accounts for it.
void hand_out(Drainer& drainer, ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// For a run that is not handed out: counts it as discarded.
void discard_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// Drains the lanes in turn, or in the order of their tickets, at most `quantum` events. Returns
/// the events taken.
std::size_t drain(Drainer& drainer, ChannelCore& channel, std::size_t quantum) noexcept;

}  // namespace ringmain::engine
