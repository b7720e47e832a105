// One kind of event: how to publish it, how to subscribe to it.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "../engine/publish/thread_lanes.hpp"

#include "callback.hpp"
#include "mailbox.hpp"
#include "options.hpp"
#include "partition.hpp"
#include "publisher.hpp"
#include "stats.hpp"
#include "subscription.hpp"

namespace ringmain {

namespace detail {
/// Attaches `subscriber` and takes it over. Throws std::bad_alloc, and std::invalid_argument for
/// options that contradict how it is called.
[[nodiscard]] Subscription attach(engine::ChannelCore& channel, engine::Subscriber* subscriber,
                                  SubscribeOptions options, KeyWriter key = {});
/// The same, but what that throws is an error. nullptr: there was no memory for the subscriber.
[[nodiscard]] Result<Subscription> try_attach(engine::ChannelCore& channel,
                                              engine::Subscriber* subscriber,
                                              SubscribeOptions options) noexcept;
[[nodiscard]] ChannelStats stats_of(const engine::ChannelCore& channel);
}  // namespace detail

/// A typed channel of a bus. Lives as long as its bus; found again by its name.
///
/// Progress: blocking, for it takes a lock, unless a call says otherwise.
/// Threads: everything here may be called from any thread at any time, also inside callbacks.
template <Event E>
class Channel {
 public:
  using event_type = E;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // --- publish ---

  /// Publishes on this thread's lane, which the first call takes (with a lock, under which no code
  /// of a user runs) and the thread's end gives back; no_memory: there was none to be had.
  /// Otherwise as Publisher::publish(); a Publisher saves the look-up, about 3 ns. Progress:
  /// lock-free, but for the first call.
  PublishResult publish(const E& event) noexcept {
    return publish_with([&event]() noexcept -> E { return event; });
  }
  /// Progress: as publish().
  template <Makes<E> F>
  PublishResult publish_with(F&& make) noexcept {
    const std::uint32_t seen = core_->line.look();
    if (!engine::ChannelLine::heard(seen)) [[likely]]
      return detail::unheard_on(seen);
    return publish_heard(make, seen);
  }
  /// Progress: as publish().
  BatchResult publish_all(std::span<const E> events) noexcept {
    BatchResult sum;
    if (!core_->line.heard()) [[unlikely]] {
      sum.last = unheard().code;
      if (sum.last != PublishCode::unheard) sum.refused = static_cast<std::uint32_t>(events.size());
      return sum;
    }
    if (engine::Lane* lane = engine::thread_lane(*core_)) {
      const auto all = engine::push_all(*lane, events.data(), events.size());
      sum.accepted = static_cast<std::uint32_t>(all.accepted);
      sum.refused = static_cast<std::uint32_t>(all.refused);
      sum.vetoed = static_cast<std::uint32_t>(all.vetoed);
      sum.last = all.last;
    } else {
      for (const E& e : events) {
        const PublishResult one = publish(e);
        sum.accepted += one ? 1u : 0u;
        sum.refused += one || one == PublishCode::unheard ? 0u : 1u;
        sum.vetoed += one == PublishCode::vetoed ? 1u : 0u;
        if (!one) sum.last = one.code;
      }
    }
    return sum;
  }
  /// Publishes; only the ledger knows the result. Progress: as publish().
  void post(const E& event) noexcept { (void)publish(event); }
  /// A publisher with its own lane. refused: capacity 0, or realtime with block. no_memory: no lane
  /// is left.
  [[nodiscard]] Result<Publisher<E>> publisher(const PublisherOptions& options) {
    auto lane = detail::take_lane(*core_, options);
    if (!lane) return lane.error();
    return Publisher<E>(detail::TakenLane{lane.value(), lane.value()->line});
  }
  /// The same with default options. An empty publisher, whose result is `closed` or `forked`, if no
  /// lane is left.
  [[nodiscard]] Publisher<E> publisher() { return Publisher<E>(detail::take_default_lane(*core_)); }
  /// Says what lanes publish() takes for its threads from now on, in place of 65,536 events of the
  /// channel's kind. For a source that publishes in threads of others: {.capacity_events = 8192,
  /// .realtime = true} takes 8,192 slots at a thread's first publish (768 KiB at 96 bytes), and no
  /// system call afterwards; Overflow::block loses nothing. Of a realtime lane the first publish
  /// touches 64 KiB, so that it is soon over, and the housekeeper the rest: a thread that gets
  /// there before it takes page faults. Once for each channel: the same again is fine, others are a
  /// conflict. Threads that have a lane keep it. refused: as publisher(), and source_time.
  /// no_memory. Progress: lock-free.
  [[nodiscard]] Result<bool> set_thread_lanes(const PublisherOptions& options) {
    return detail::set_thread_lanes(*core_, options);
  }
  /// Is anybody listening? One load. Progress: wait-free.
  [[nodiscard]] bool wanted() const noexcept { return core_->line.heard(); }

  // --- subscribe: callbacks of a channel never overlap; each publisher's events come in order ---

  /// `callback(event)` or `callback(event, stamp)` on a worker. With stamps publishers read the
  /// clock, 20 ns. Every event whose publish happens after this returns is delivered. Throws
  /// std::bad_alloc, std::invalid_argument (options that cannot hold), std::system_error (no thread
  /// for own_thread).
  template <EventCallback<E> F>
  [[nodiscard]] Subscription subscribe(F callback, SubscribeOptions options = {}) {
    return attach(detail::CallbackEach<E, F>{std::move(callback)}, std::move(options));
  }
  /// The same, but what subscribe() throws is an error: for programs without exceptions. refused,
  /// no_memory, system. What copying `callback` or `options` into the call throws is the caller's:
  /// move them, or write them there.
  template <EventCallback<E> F>
  [[nodiscard]] Result<Subscription> try_subscribe(F callback, SubscribeOptions options = {}) {
    return detail::try_attach(
        *core_, detail::try_make_subscriber(detail::CallbackEach<E, F>{std::move(callback)}),
        std::move(options));
  }
  /// The same for events that `wanted` accepts. It is called on the worker too.
  template <Filter<E> P, EventCallback<E> F>
  [[nodiscard]] Subscription subscribe_if(P wanted, F callback, SubscribeOptions options = {}) {
    return attach(detail::CallbackIf<E, P, F>{std::move(wanted), std::move(callback)},
                  std::move(options));
  }
  /// Calls a member function while its object lives. The object is held during each batch; once it
  /// is gone, events are skipped.
  template <class T, class M>
  [[nodiscard]] Subscription subscribe(std::weak_ptr<T> owner, M T::*member,
                                       SubscribeOptions options = {}) {
    return attach(detail::CallbackWhileOwned<E, T, M T::*>{std::move(owner), member},
                  std::move(options));
  }
  /// `callback(Batch<E>)`: a run of one publisher's events at once.
  template <BatchCallback<E> F>
  [[nodiscard]] Subscription subscribe_batch(F callback, SubscribeOptions options = {}) {
    return attach(detail::CallbackBatch<E, F>{std::move(callback)}, std::move(options));
  }
  /// Calls `see(event)` in the publishing thread, before the event is queued. It returns nothing,
  /// or a Verdict: the first veto, by priority, refuses the event (PublishCode::vetoed).
  ///
  /// `see` is called for every event offered, also if that is then refused as full or closed, but
  /// not as too_deep. An event without a veto gets its time and sequence number afterwards; one
  /// with a veto leaves a gap, as every refusal does. Where all subscribers are inline, nothing is
  /// queued.
  ///
  /// `see` is called through const&, by all publishing threads at once, on their stacks and under
  /// the locks that they hold; for a realtime publisher it must be realtime-safe. It may publish,
  /// also on this channel, nested to 8 levels (then too_deep), may subscribe, and may reset
  /// subscriptions, which never waits there. If it throws, the event goes on, unless OnThrow::veto.
  /// stop() does not wait for inline callbacks; reset() outside callbacks does. After a deferred
  /// reset() a worker or stop() destroys the captures, and a publishing thread only if the bus has
  /// stopped. Options: queue_events has no meaning. Throws std::bad_alloc, and
  /// std::invalid_argument if `served` is not shared.
  template <Observes<E> F>
  [[nodiscard]] Subscription subscribe_inline(F see, SubscribeOptions options = {}) {
    return detail::attach(*core_, detail::make_inline_subscriber<E>(std::move(see)),
                          std::move(options));
  }
  /// The same, but what subscribe_inline() throws is an error: refused, no_memory.
  template <Observes<E> F>
  [[nodiscard]] Result<Subscription> try_subscribe_inline(F see, SubscribeOptions options = {}) {
    return detail::try_attach(*core_, detail::try_make_inline_subscriber<E>(std::move(see)),
                              std::move(options));
  }
  /// `callback(event)` or `callback(event, stamp)`, with the queued events coalesced: an event
  /// takes the place of the queued one with the same `key(event)`, which is counted as coalesced
  /// and never heard. So the newest event of each key is always heard, if its key found room. There
  /// is room for queue_events events, those that are being heard included; then options.overflow
  /// decides. A key may have one event that is being heard and one that is queued, so half as many
  /// keys always find room.
  ///
  /// The newer event keeps the place of the older one, so a key that changes all the time neither
  /// starves others nor is starved; across keys the order is that of what was replaced, within a
  /// key that of publishing. `key` is a member of the event or a pure function of it, and runs on
  /// the worker (what it throws is counted). A shared one is isolated. Progress: reader and feeder
  /// never wait for each other.
  template <KeyOf<E> K, EventCallback<E> F>
  [[nodiscard]] Subscription subscribe_latest(K key, F callback, SubscribeOptions options = {}) {
    auto by = detail::key_writer<E>(std::move(key));
    return detail::attach(*core_,
                          detail::make_subscriber(detail::CallbackEach<E, F>{std::move(callback)}),
                          std::move(options), std::move(by));
  }
  /// The same as a queue that the caller drains itself.
  template <KeyOf<E> K>
  [[nodiscard]] Mailbox<E> mailbox_latest(K key, SubscribeOptions options = {}) {
    return Mailbox<E>(detail::make_pull_mailbox(*core_, std::move(options),
                                                detail::key_writer<E>(std::move(key))));
  }
  /// `callback(event)` or `callback(event, stamp)` from `n` mailboxes, chosen by std::hash of
  /// `key(event)`: events of one key and publisher come in order and do not overlap; several
  /// workers may hear events of different keys at once. Each mailbox has its own copy of
  /// `callback`, and its own bound. refused: n is 0 or above 1024, or the channel delivers in
  /// parallel. Throws std::bad_alloc.
  template <PartitionKey<E> K, EventCallback<E> F>
  requires std::copy_constructible<F>
  [[nodiscard]] Result<Subscription> partition_by(K key, std::size_t n, F callback,
                                                  SubscribeOptions options = {}) {
    auto made = detail::make_parts(*core_, n, options);
    if (!made) return made.error();
    detail::PartsPtr parts = std::move(made).value();
    for (std::size_t i = 0; i < n; ++i)
      detail::add_part(*parts, detail::make_subscriber(detail::CallbackEach<E, F>{callback}));
    detail::Parts& all = *parts;
    return detail::attach_parts(
        *core_, all,
        detail::make_subscriber(detail::SortIntoParts<E, K>{std::move(key), n, std::move(parts)}),
        std::move(options));
  }
  /// A queue that the caller drains. Throws std::bad_alloc, std::invalid_argument.
  [[nodiscard]] Mailbox<E> mailbox(SubscribeOptions options = {}) {
    return Mailbox<E>(detail::make_pull_mailbox(*core_, std::move(options)));
  }

  // --- know ---

  /// Progress: wait-free.
  [[nodiscard]] std::string_view name() const noexcept { return core_->options().name; }
  /// Progress: wait-free.
  [[nodiscard]] const Schema& schema() const noexcept {
    return *static_cast<const Schema*>(core_->options().schema);
  }
  [[nodiscard]] ChannelStats stats() const { return detail::stats_of(*core_); }

 private:
  template <class F>
  PublishResult publish_heard(F& make, std::uint32_t seen) noexcept {
    engine::Lane* lane = engine::thread_lane(*core_);
    if (lane != nullptr) [[likely]]
      return detail::result_of(engine::push<E>(*lane, make, seen));
    return detail::result_of(engine::push_once(
        *core_, [](void* to, void* from) noexcept { ::new (to) E((*static_cast<F*>(from))()); },
        const_cast<void*>(static_cast<const void*>(&make))));
  }
  friend class Bus;
  explicit Channel(engine::ChannelCore& core) noexcept : core_(&core) {}

  template <class Captures>
  Subscription attach(Captures captures, SubscribeOptions options) {
    return detail::attach(*core_, detail::make_subscriber(std::move(captures)), std::move(options));
  }
  [[nodiscard]] PublishResult unheard() const noexcept {
    return detail::unheard_on(core_->line.look());
  }

  engine::ChannelCore* core_;  // the bus holds it
};

}  // namespace ringmain
