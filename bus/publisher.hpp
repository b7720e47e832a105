// How is an event published? Through a publisher's own lane, or through the thread's.
//
// A program that only publishes needs this header alone: ringmain::publisher<E>(), at its end.
#pragma once
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../engine/publish/push.hpp"

#include "event.hpp"
#include "result.hpp"

namespace ringmain {

/// One publisher's account, exact at every moment for the publishing thread and whenever the bus is
/// at rest for others: offered = dropped + delivered + in_flight. Unheard events are not offered.
struct Ledger {
  std::uint64_t offered = 0;
  std::uint64_t dropped = 0;    // refused: full, closed, no memory, too deep, vetoed; evicted; or
                                // discarded by stop(abort)
  std::uint64_t delivered = 0;  // callbacks over
  std::uint64_t in_flight =
      0;  // at most PublisherOptions::capacity_events; drop_oldest: twice that
};

template <class F, class E>
concept Makes = std::invocable<F&> && std::same_as<std::invoke_result_t<F&>, E>;

class Bus;
struct PublisherOptions;

namespace detail {
/// A lane of that channel. The lane holds the channel until give_back().
[[nodiscard]] Result<engine::Lane*> take_lane(engine::ChannelCore& channel,
                                              const PublisherOptions& options);
/// As Channel::set_thread_lanes().
[[nodiscard]] Result<bool> set_thread_lanes(engine::ChannelCore& channel,
                                            const PublisherOptions& options);
/// A lane and its channel's line; without a lane the line is one that is closed.
struct TakenLane {
  engine::Lane* lane = nullptr;
  const engine::ChannelLine* line = nullptr;
};
/// A lane with the channel's default options. Throws std::bad_alloc.
[[nodiscard]] TakenLane take_default_lane(engine::ChannelCore& channel);
/// The same by name. nullptr: of the process's bus. Ends the process as Bus::channel() does.
[[nodiscard]] TakenLane take_default_lane(Bus* bus, std::string_view channel, const Schema& schema);
void give_back(engine::Lane& lane) noexcept;
[[nodiscard]] Ledger ledger_of(const engine::Lane& lane) noexcept;
engine::PushResult push_at(engine::Lane& lane, engine::BuildFn* build, void* from,
                           std::int64_t time_ns) noexcept;

/// Why is the event not to be heard?
inline PublishResult unheard_on(std::uint32_t state) noexcept {
  using engine::ChannelLine;
  if ((state & (ChannelLine::kForked | ChannelLine::kClosing)) == 0) [[likely]]
    return {PublishCode::unheard, {}};
  return {(state & ChannelLine::kForked) != 0 ? PublishCode::forked : PublishCode::closed, {}};
}
inline PublishResult result_of(engine::PushResult pushed) noexcept {
  if (pushed.bits() == 0) [[likely]]
    return {};
  return std::bit_cast<PublishResult>(pushed.bits());
}
static_assert(std::endian::native == std::endian::little && offsetof(PublishResult, code) == 0 &&
              offsetof(PublishResult, why) == 4);
static_assert(PublishResult{}.code == PublishCode{});  // so that no bits mean accepted
}  // namespace detail

/// A publishing thread's own lane with its own capacity and policy. Move-only; empty ones say
/// `closed`. It may outlive channel and bus. Threads: one at a time; hand it over with a
/// happens-before edge.
template <Event E>
class [[nodiscard]] Publisher {
 public:
  Publisher() noexcept = default;
  Publisher(Publisher&& other) noexcept { swap(other); }
  Publisher& operator=(Publisher&& other) noexcept {
    Publisher(std::move(other)).swap(*this);
    return *this;
  }
  ~Publisher() {
    if (lane_ != nullptr) detail::give_back(*lane_);
  }
  void swap(Publisher& other) noexcept {
    std::swap(lane_, other.lane_);
    std::swap(line_, other.line_);
  }

  /// Publishes one event: first to inline subscribers, in this thread, then to the workers' queue.
  /// Never throws. Progress: lock-free, no allocation once warm, no system call unless a worker
  /// must be woken (never for a realtime publisher), except that Overflow::block waits, and for
  /// what inline subscribers do. In a signal handler: docs/lifetime.md.
  [[gnu::always_inline]] PublishResult publish(const E& event) noexcept {
    return publish_with([&event]() noexcept -> E { return event; });
  }
  /// Builds the event in the queue. `make` is not called when nobody listens, nor when there is no
  /// room, unless there are inline subscribers, which see the event all the same. It must not
  /// throw; what it publishes on the same lane is refused as too_deep. Progress: as publish().
  template <Makes<E> F>
  [[gnu::always_inline]] PublishResult publish_with(F&& make) noexcept {
    const std::uint32_t seen = line_->look();
    if (!engine::ChannelLine::heard(seen)) [[likely]]
      return detail::unheard_on(seen);
    return detail::result_of(engine::push<E>(*lane_, make, seen));
  }
  /// For publishers with source_time: publishes an event that happened at `time_ns` of the source's
  /// clock. Progress: as publish().
  PublishResult publish_at(const E& event, std::int64_t time_ns) noexcept {
    if (lane_ == nullptr) return unheard();
    return detail::result_of(detail::push_at(
        *lane_, [](void* to, void* from) noexcept { ::new (to) E(*static_cast<const E*>(from)); },
        const_cast<E*>(&event), time_ns));
  }
  /// Publishes the events in order, as many at once as there is room for. Progress: as publish().
  BatchResult publish_all(std::span<const E> events) noexcept {
    const auto n = static_cast<std::uint32_t>(events.size());
    if (!line_->heard()) [[unlikely]] {
      const PublishCode code = unheard().code;
      return {0, code == PublishCode::unheard ? 0 : n, 0, code};
    }
    const auto all = engine::push_all(*lane_, events.data(), events.size());
    return {static_cast<std::uint32_t>(all.accepted), static_cast<std::uint32_t>(all.refused),
            static_cast<std::uint32_t>(all.vetoed), all.last};
  }
  /// Is anybody listening? For skipping work before publishing. One load. Progress: wait-free.
  [[nodiscard]] bool wanted() const noexcept { return line_->heard(); }
  /// Progress: wait-free.
  [[nodiscard]] Ledger ledger() const noexcept {
    return lane_ == nullptr ? Ledger{} : detail::ledger_of(*lane_);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return lane_ != nullptr; }

 private:
  template <Event>
  friend class Channel;
  template <Described D>
  friend Publisher<D> publisher();
  template <Described D>
  friend Publisher<D> publisher(Bus& bus);
  explicit Publisher(engine::Lane* lane) noexcept : lane_(lane), line_(lane->line) {}
  explicit Publisher(const detail::TakenLane& taken) noexcept
      : lane_(taken.lane), line_(taken.line) {}
  [[nodiscard]] PublishResult unheard() const noexcept { return detail::unheard_on(line_->look()); }

  engine::Lane* lane_ = nullptr;                        // holds its channel
  const engine::ChannelLine* line_ = &engine::nowhere;  // the channel's, or one that is closed
};

/// A publisher of the process's bus, in the channel of that event: what a program needs that
/// publishes and does not listen, with this header alone, which costs a compiler half of bus.hpp.
/// As Channel<E>::publisher(). Throws std::bad_alloc, and what the first Bus::process() throws;
/// ends the process as Bus::channel() does.
///
///   auto steps = ringmain::publisher<Step>();  // one for each thread
///   steps.publish({.step = 7, .loss = 0.25});
template <Described E>
[[nodiscard]] Publisher<E> publisher() {
  return Publisher<E>(detail::take_default_lane(nullptr, describe(EventOf<E>{}).name, schema<E>()));
}
/// The same of another bus.
template <Described E>
[[nodiscard]] Publisher<E> publisher(Bus& bus) {
  return Publisher<E>(detail::take_default_lane(&bus, describe(EventOf<E>{}).name, schema<E>()));
}

}  // namespace ringmain
