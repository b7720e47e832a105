// What does every publish look at first? One line of the channel: is anybody listening, has stop()
// begun, does a worker attend it. Read by all publishers, written only when one of these changes.
#pragma once
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"

namespace ringmain::engine {

/// A channel's line that publishers read. Written only when the first subscriber comes or the last
/// one goes, when a worker attends or leaves the channel, and at the end.
struct alignas(kLineBytes) ChannelLine {
  enum : std::uint32_t {
    kHeard = 1,      // there are subscribers
    kClosing = 2,    // stop() has begun
    kStamped = 4,    // a subscriber wants publishing times
    kFenced = 8,     // no membarrier here: publishers fence
    kSampled = 16,   // latency is measured
    kInline = 32,    // there are inline subscribers
    kUnqueued = 64,  // nobody hears it on a worker: events end with the inline phase, or the record
    kTicketed = 128,  // a subscriber wants one order over several lanes
    kForked = 256,    // in a forked child, of its parent's bus; kClosing is set too
    kRecorded = 512   // publishes are recorded: engine/flight/recording.hpp
  };
  /// Relaxed: a thread that publishes after subscribe() returned has ordered the two by its own
  /// means (G2 of docs/guarantees.md), and closing is looked at again after l.closing.
  [[nodiscard]] bool heard() const noexcept { return heard(look()); }
  /// All of it in one load, for a publish that asks more than one thing.
  [[nodiscard]] std::uint32_t look() const noexcept {
    return state.load(std::memory_order_relaxed);  // relaxed: as above
  }
  [[nodiscard]] static constexpr bool heard(std::uint32_t seen) noexcept {
    return (seen & kHeard) != 0;
  }
  [[nodiscard]] bool closing() const noexcept {
    return (state.load(std::memory_order_relaxed) & kClosing) != 0;
  }
  [[nodiscard]] bool forked() const noexcept {
    return (state.load(std::memory_order_relaxed) & kForked) != 0;
  }
  /// In a forked child, by its only thread.
  void become_forked() noexcept {
    state.store(kForked | kClosing, std::memory_order_relaxed);  // relaxed: nobody else is there
  }

  Atomic<std::uint32_t> state{0};
  Atomic<std::uint32_t> leased{0};
};
static_assert(sizeof(ChannelLine) == kLineBytes, "what follows it is on another line");

/// The line of a publisher that has no lane: unheard and closed.
extern ChannelLine nowhere;
/// The same in a forked child, of a bus of its parent.
extern ChannelLine forked_nowhere;

}  // namespace ringmain::engine
