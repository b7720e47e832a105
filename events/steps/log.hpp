// In which step was an event published that is heard by pattern? Its time tells.
//
//   auto seen = step::subscribe_with_step(bus, "cuda.*",
//       [](const EventView& event, const step::Place& in) { … });
//
// A subscriber by pattern, and every sink, has publishing times already. The edges of `train.step`
// are seen inline, in the thread that publishes them, and written into a log with the time of that
// moment. So an event that is published after a begin has returned is later than the begin's entry,
// which is in the log before the event; an event that was published before an end is earlier than
// the end's entry: on whichever threads, however late the reader is. For an event that nothing
// orders before or after an edge, either side of the edge is true.
//
// It costs only publishers of `train.step` something: a look at the clock and an extra lock
// (docs/adr/0014-steps-by-time.md). It needs the clock, so it is not for a bus without threads.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "../../bus/bus.hpp"

#include "follower.hpp"

namespace ringmain::step {

/// The last edges, with the place that each led to.
class Log {
 public:
  static constexpr std::size_t kEdges = 4096;

  /// Threads: any. Later edges have later times, of CLOCK_MONOTONIC.
  void write(const Step& edge) noexcept {
    const std::lock_guard lock(writing_);
    follower_.follow(edge);
    put(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  /// The same at a given time, no earlier than the last.
  void write_at(const Step& edge, std::int64_t time_ns) noexcept {
    const std::lock_guard lock(writing_);
    follower_.follow(edge);
    put(time_ns);
  }
  /// Where the loop was at that time. Not inside: nowhere, before the log's beginning, or so long
  /// ago that it is overwritten. Threads: any. Progress: wait-free.
  [[nodiscard]] Place at(std::int64_t time_ns) const noexcept {
    const std::uint64_t end = written_;
    const std::uint64_t oldest = end < kEdges ? 0 : end - kEdges + 1;  // one may be being replaced
    std::uint64_t low = oldest;                                        // the first that is later
    for (std::uint64_t high = end; low < high;) {
      const std::uint64_t middle =
          high - low > 1 && high == end ? high - 1 : low + (high - low) / 2;
      if (edge(middle).time_ns <= time_ns) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == oldest) return {};
    const Entry& found = edge(low - 1);
    Place place;
    place.step = found.step;
    const std::uint64_t inner = found.inner;
    place.inside = found.inside;
    place.phase = std::bit_cast<Name>(static_cast<std::uint32_t>(inner >> 32));
    place.micro_batch = static_cast<std::uint32_t>(inner);
    const bool whole = written_ - (low - 1) < kEdges;
    return whole && place.inside ? place : Place{};
  }

 private:
  struct Entry {
    std::atomic<std::int64_t> time_ns{0};
    std::atomic<std::uint64_t> step{0};
    std::atomic<std::uint64_t> inner{0};  // the phase's name, and below it the micro-batch
    std::atomic<bool> inside{false};
  };
  [[nodiscard]] const Entry& edge(std::uint64_t i) const noexcept { return entries_[i % kEdges]; }
  void put(std::int64_t time_ns) noexcept {
    const std::uint64_t i = written_;
    Entry& entry = entries_[i % kEdges];
    const Place here = follower_.here();
    entry.time_ns = time_ns;
    entry.step = here.step;
    entry.inner = std::uint64_t{here.phase.id()} << 32 | here.micro_batch;
    entry.inside = here.inside;
    written_ = i + 1;
  }

  std::mutex writing_;
  Follower follower_;
  std::array<Entry, kEdges> entries_{};
  std::atomic<std::uint64_t> written_{0};
};

/// Keeps the log of a bus's steps while it lives. A step that had begun before is not guessed at.
class Follow {
 public:
  /// Throws std::bad_alloc.
  explicit Follow(Bus& bus)
      : log_(std::make_shared<Log>()),
        edges_(bus.subscribe_inline_once_made<Step>(
            [log = log_](const Step& edge) { log->write(edge); }, {.name = "steps"})) {}

  /// Not inside if nobody looked at the clock when the event was published.
  [[nodiscard]] Place at(const Stamp& stamp) const noexcept {
    return stamp.time_from == TimeFrom::publisher ? log_->at(stamp.time_ns) : Place{};
  }

 private:
  std::shared_ptr<Log> log_;
  Subscription edges_;
};

/// `hear(event, place)` for every channel that matches. As Bus::subscribe() by pattern, with its
/// options and what it throws.
template <class F>
requires std::invocable<F&, const EventView&, const Place&>
[[nodiscard]] Subscription subscribe_with_step(Bus& bus, std::string_view pattern, F hear,
                                               SubscribeOptions options = {}) {
  return bus.subscribe(
      pattern,
      [follow = std::make_shared<Follow>(bus),
       hear = std::move(hear)](const EventView& event) mutable {
        const Place in = follow->at(event.stamp());
        hear(EventView(event, in), in);
      },
      std::move(options));
}

}  // namespace ringmain::step
