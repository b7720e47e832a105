// How does a run of events leave its lane? Taken in order, handed to each subscriber, then
// accounted.
//
// `consumed` is raised after the callbacks, so that flush() and the bound tell the truth.
#pragma once
#include <cstddef>
#include <span>

#include "../channel/channel_core.hpp"
#include "../watch/watchdog.hpp"

namespace ringmain::engine {

/// What a thread needs to drain: a place to show what it reads, and room for a batch.
struct Drainer {
  enum : std::size_t { kBatchMax = 256, kRoomBytes = 64 * 1024 };

  alignas(kLineBytes) Reading reading{nullptr};
  /// Which subscriber is called, in which turn: call_word(), or 0. For the watchdog and for
  /// stop()'s report.
  Atomic<std::uint64_t> calling{0};
  std::uint32_t turns = 0;
  /// Odd while a run of a channel that delivers in parallel is handed out: flush() waits for those
  /// that it finds, since such a run may be overtaken by younger ones.
  Atomic<std::uint64_t> apart{0};
  alignas(kLineBytes) std::byte room[kRoomBytes];
  CallClock turn;  // the housekeeper's view of `calling`

  /// Called when there is something to serve, before any callback. A channel that delivers in
  /// parallel is no longer ours after it.
  virtual void before_callbacks(ChannelCore&) noexcept {}
  virtual ~Drainer() = default;
};

/// Takes up to `max` events off a lane, or as many as fit into `room` unless it is a ring; what its
/// publisher has pushed out is evicted on the way, at most as many as the lane's capacity. Threads:
/// the holder of the channel's lease.
[[nodiscard]] Run take_run(Lane& lane, std::span<std::byte> room, std::size_t max) noexcept;
/// The callbacks of a run are over: its slots may be written again.
void finish_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// Hands a run to every subscriber, and accounts for it.
void hand_out(Drainer& drainer, ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// The callbacks never ran: counted as discarded.
void discard_run(ChannelCore& channel, Lane& lane, const Run& run) noexcept;
/// Drains the lanes in turn, or in the order of their tickets, at most `quantum` events. Returns
/// the events taken.
std::size_t drain(Drainer& drainer, ChannelCore& channel, std::size_t quantum) noexcept;

}  // namespace ringmain::engine
