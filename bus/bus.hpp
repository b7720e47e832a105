// The bus: channels by type and by name, subscriptions across channels, flush, stop, figures.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../engine/system/durations.hpp"

#include "channel.hpp"
#include "event.hpp"
#include "in_subscriber.hpp"
#include "interest.hpp"
#include "mailbox.hpp"
#include "options.hpp"
#include "pattern.hpp"
#include "rank.hpp"
#include "recording.hpp"
#include "result.hpp"
#include "stats.hpp"
#include "subscription.hpp"

namespace ringmain {

enum class StopMode : std::uint8_t {
  drain,  // deliver what was accepted
  abort   // discard it, counted; a callback that is running finishes
};

struct Stopped {
  bool refused = false;            // called inside a callback, which stop() would wait for
  std::uint64_t left = 0;          // events not delivered by the deadline; they are discarded
  std::vector<std::string> stuck;  // subscribers still running at the deadline; the bus's core is
                                   // then leaked on purpose rather than freed under them
  std::vector<std::string> unbalanced;  // accounts that do not add up, which is a fault of the bus;
                                        // looked at only where nothing is left and nobody is stuck
};

namespace detail {
class BusCore;
struct Erased;
template <class F>
struct CallbackViews {
  static constexpr bool wants_time() { return true; }
  F callback;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) {
      const Stamp stamp = stamp_of(run, i);
      callback(view_of(run, i, stamp));
      return true;
    });
  }
};
}  // namespace detail

/// A set of channels and the workers that drain them. Channels live as long as their bus.
///
/// Progress: blocking, for it takes a lock or waits, unless a call says otherwise.
/// Threads: everything here may be called from any thread; flush() and stop() refuse inside
/// callbacks.
class Bus {
 public:
  /// Starts the workers. Throws std::system_error if the system gives no thread at all,
  /// std::bad_alloc, also where it cannot be told of forks, and std::invalid_argument if
  /// worker_cpus is not a list of CPUs or none of them is there. Environment: RINGMAIN_WORKERS,
  /// RINGMAIN_WORKER_CPUS, RINGMAIN_WORKER_NICE, RINGMAIN_SPIN_US and RINGMAIN_LINGER_NS, where
  /// set, override the options.
  explicit Bus(const BusOptions& options = {});
  /// The same, but what the constructor throws is an error: for programs without exceptions.
  [[nodiscard]] static Result<std::unique_ptr<Bus>> try_make(
      const BusOptions& options = {}) noexcept;
  /// Calls stop(drain, 5 s); inside a callback a new thread does that. Handles may outlive the bus.
  ~Bus();
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  /// The process's bus: made at the first call, never destroyed; adapters default to it. The first
  /// call throws as the constructor does, and the next one tries again.
  static Bus& process();

  /// The channel of a described event, by the name in its description. Throws std::bad_alloc; ends
  /// the process with one sentence if that name has another type or there are 4,096 channels.
  template <Described E>
  [[nodiscard]] Channel<E>& channel() {
    return face<E>(find(describe(EventOf<E>{}).name, ringmain::schema<E>(), nullptr));
  }
  /// The channel of that name. Names are dot-separated tokens: "train.step".
  template <Event E>
  [[nodiscard]] Channel<E>& channel(std::string_view name) {
    return face<E>(find(name, ringmain::schema<E>(), nullptr));
  }
  /// Makes a channel with options. conflict: it exists already, or has another type.
  template <Event E>
  [[nodiscard]] Result<Channel<E>*> configure(std::string_view name,
                                              const ChannelOptions& options) {
    auto core = configure_core(name, ringmain::schema<E>(), options);
    if (!core) return core.error();
    return &face<E>(*core.value());
  }
  template <Described E>
  [[nodiscard]] Result<Channel<E>*> configure(const ChannelOptions& options) {
    return configure<E>(describe(EventOf<E>{}).name, options);
  }

  /// `callback(const EventView&)` for every channel that matches, present and future: "cuda.*" (one
  /// token), "compile.>" (the rest), ">" (all). Always isolated or own_thread: one mailbox, so its
  /// callbacks do not overlap. Throws as Channel::subscribe().
  template <std::invocable<const EventView&> F>
  [[nodiscard]] Subscription subscribe(std::string_view pattern, F callback,
                                       SubscribeOptions options = {}) {
    return subscribe_core(pattern,
                          detail::make_subscriber(detail::CallbackViews<F>{std::move(callback)}),
                          std::move(options));
  }
  /// As Channel::try_subscribe().
  template <std::invocable<const EventView&> F>
  [[nodiscard]] Result<Subscription> try_subscribe(std::string_view pattern, F callback,
                                                   SubscribeOptions options = {}) {
    return try_subscribe_core(
        pattern, detail::try_make_subscriber(detail::CallbackViews<F>{std::move(callback)}),
        std::move(options));
  }
  /// As Channel<E>::subscribe_inline(), for a channel that need not exist yet and is not made by
  /// this call: `see` is called from its first event on. A channel of that name with another event
  /// is left alone.
  template <Described E, Observes<E> F>
  [[nodiscard]] Subscription subscribe_inline_once_made(F see, SubscribeOptions options = {}) {
    return subscribe_once_made(ringmain::schema<E>(),
                               detail::make_inline_subscriber<E>(std::move(see)),
                               std::move(options));
  }
  /// `callback(event)` or `callback(event, stamp)` for the events of several channels in one order:
  /// if publish(A) had returned before publish(B) was called, on any threads and channels, A is
  /// heard before B. All such subscribers hear the same order. It has a mailbox, as a subscription
  /// by pattern. While it lives, each publish on these channels takes a ticket from a counter that
  /// all of them share. Throws std::bad_alloc, and std::invalid_argument if one of the channels
  /// delivers in parallel.
  ///
  ///   bus.subscribe_ordered<Record, Wait>(overloaded{[](const Record&) {…}, [](const Wait&) {…}});
  template <class... E, class F>
  requires(sizeof...(E) > 0 && (Described<E> && ...) && (EventCallback<F, E> && ...))
      [[nodiscard]] Subscription subscribe_ordered(F callback, OrderOptions options = {}) {
    const std::array<engine::ChannelCore*, sizeof...(E)> channels{
        &find(describe(EventOf<E>{}).name, ringmain::schema<E>(), nullptr)...};
    return subscribe_ordered_core(
        channels,
        detail::make_subscriber(detail::CallbackOrdered<F, E...>{std::move(callback), channels}),
        std::move(options));
  }
  /// The same as a queue that the caller drains.
  [[nodiscard]] AnyMailbox mailbox(std::string_view pattern, SubscribeOptions options = {});

  /// Calls `tell(Interest)` with the interest as it is, and again whenever that changes. Several
  /// changes may be told as one; the last call always says the interest as it is. The housekeeper
  /// calls it, with no lock held; it counts as a callback, and reset() promises the same as for
  /// other callbacks. Throws std::bad_alloc.
  template <Event E, std::invocable<Interest> F>
  [[nodiscard]] Subscription on_interest(Channel<E>& channel, F tell,
                                         SubscribeOptions options = {}) {
    return on_interest_core(channel.core_, {}, told_by(std::move(tell)), std::move(options));
  }
  /// The same for every channel that matches, present and future: `tell(channel's name, Interest)`.
  template <std::invocable<std::string_view, Interest> F>
  [[nodiscard]] Subscription on_interest(std::string_view pattern, F tell,
                                         SubscribeOptions options = {}) {
    return on_interest_core(nullptr, pattern, told_by(std::move(tell)), std::move(options));
  }
  /// Waits until all that changed before this call was told to those that asked by on_interest().
  /// False: time ran out, it was called inside a callback, or the bus runs without a housekeeper.
  [[nodiscard]] bool wait_told(nanoseconds limit);

  /// Leaves what is published on all channels that match one of the patterns, present and future,
  /// in a file that outlives the process: "collective.>,train.*". Each publishing thread has a ring
  /// for each pattern, so a chatty pattern pushes out no other's records; a channel goes by the
  /// first pattern that matches. Refused and vetoed events are recorded with their publish code. It
  /// counts as interest. Where no file can be had the record is in memory, and
  /// Recording::complaint() says why. refused: patterns that can match no name, wrong
  /// sizes, or a bus with four recordings. no_memory: the process may map no more. Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<Recording> record(std::string_view patterns, RecordOptions options = {});

  /// Waits until all that was accepted before the call has been delivered, also through mailboxes
  /// that workers drain. False: time ran out, or it was called inside a callback.
  [[nodiscard]] bool flush(nanoseconds limit);
  /// Closes every channel, then drains or discards, then ends the workers; returns by the deadline,
  /// or seconds later (docs/guarantees.md, E3) where the machine is too busy to let threads end.
  Stopped stop(StopMode mode = StopMode::drain, nanoseconds limit = std::chrono::seconds(5));

  [[nodiscard]] Stats stats() const;
  /// Checks I1 and I2 of every channel, mailbox and hook row, and I3 of every live subscription
  /// whose channel is at rest. The error names the first account that does not balance, which is a
  /// fault of the bus, also if other threads publish meanwhile.
  [[nodiscard]] Result<bool> verify_accounting() const;
  [[nodiscard]] std::vector<std::string> channel_names() const;
  /// Progress: wait-free.
  [[nodiscard]] unsigned workers() const noexcept;

 private:
  friend class TestBus;
  friend struct detail::Erased;
  friend detail::TakenLane detail::take_default_lane(Bus*, std::string_view, const Schema&);
  explicit Bus(detail::BusCore* core) noexcept;

  template <Event E>
  static Channel<E>& face(engine::ChannelCore& core) {
    static_assert(sizeof(Channel<E>) <= sizeof(core.face) &&
                  std::is_trivially_destructible_v<Channel<E>>);
    // Built by find() under the bus's lock when the channel is made; the same for every E of a
    // name.
    return *std::launder(reinterpret_cast<Channel<E>*>(core.face));
  }
  using MakeFaceFn = void(engine::ChannelCore&);
  engine::ChannelCore& find(std::string_view name, const Schema& schema,
                            const ChannelOptions* options);
  Result<engine::ChannelCore*> configure_core(std::string_view name, const Schema& schema,
                                              const ChannelOptions& options);
  template <class F>
  static engine::Subscriber* told_by(F tell) {
    return detail::make_subscriber(detail::HearInterest<F>{std::move(tell)});
  }
  Subscription on_interest_core(engine::ChannelCore* channel, std::string_view pattern,
                                engine::Subscriber* subscriber, SubscribeOptions options);
  Subscription subscribe_once_made(const Schema& schema, engine::Subscriber* subscriber,
                                   SubscribeOptions options);
  Subscription subscribe_core(std::string_view pattern, engine::Subscriber* subscriber,
                              SubscribeOptions options);
  Result<Subscription> try_subscribe_core(std::string_view pattern, engine::Subscriber* subscriber,
                                          SubscribeOptions options) noexcept;
  Subscription subscribe_ordered_core(std::span<engine::ChannelCore* const> channels,
                                      engine::Subscriber* subscriber, OrderOptions options);

  detail::BusCore* core_;
};

/// One callable out of several, for subscriptions that hear more than one type.
template <class... F>
struct overloaded : F... {
  using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

}  // namespace ringmain
