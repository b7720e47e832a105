#include "bus/core/subscription_core.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "engine/channel/channel_figures.hpp"
#include "engine/deliver/merge.hpp"
#include "engine/system/clock.hpp"

#include "bus/core/feeder.hpp"
#include "bus/core/ordered.hpp"

namespace ringmain::detail {
namespace {

/// Room for as many is made at once.
std::uint32_t checked_throws(std::uint32_t throws_max) {
  if (throws_max >= 1 && throws_max <= 65'536) return throws_max;
  throw std::invalid_argument("ringmain: throws_max is " + std::to_string(throws_max) +
                              "; use 1 to 65,536, or OnThrow::keep");
}

}  // namespace

SubscriptionCore::SubscriptionCore(engine::Subscriber* subscriber, engine::Ref<MailboxHold> mailbox,
                                   SubscribeOptions options,
                                   std::vector<engine::Ref<SubscriptionCore>> parts)
    : consumer_(subscriber),
      mailbox_(std::move(mailbox)),
      parts_(std::move(parts)),
      options_(std::move(options)) {
  if (consumer_ == nullptr) return;
  const bool called_inline = consumer_->judge != nullptr;
  if (called_inline && options_.served != Served::shared) {
    throw std::invalid_argument(
        "subscribe_inline calls in the publishing thread; leave SubscribeOptions::served at "
        "shared");
  }
  if (!called_inline && options_.on_throw == OnThrow::veto) {
    throw std::invalid_argument(
        "OnThrow::veto needs subscribe_inline: a worker calls this subscriber too late for a veto");
  }
  consumer_->priority = options_.priority;
  consumer_->name = options_.name;
  if (!called_inline)  // workers' turns are watched, publishing threads are not
    consumer_->budget_ns = engine::ns_of_us(std::max<std::int64_t>(0, options_.budget_us.count()));
  consumer_->detach_on_throw = options_.on_throw == OnThrow::detach;
  if (options_.on_throw == OnThrow::quarantine)
    consumer_->throws.set_max(checked_throws(options_.throws_max));
  if (options_.on_throw != OnThrow::veto) return;
  consumer_->veto_on_throw = true;
  consumer_->threw_id =
      Name((options_.name.empty() ? "an inline subscriber" : options_.name) + " threw").id();
}

SubscriptionCore::~SubscriptionCore() {
  if (host_ && !host_->forked()) host_->forget(*this);
  if (!closed_) detach_deferred();  // it never got a handle: something threw before
  for (const Listed& l : listed_) engine::drop_subscriber(l.subscriber);
  if (consumer_ != nullptr && !listens_) discard(consumer_);
}

void SubscriptionCore::discard(engine::Subscriber* subscriber) noexcept {
  engine::destroy_captures(*subscriber);
  engine::drop_subscriber(subscriber);
}

void SubscriptionCore::listen(engine::ChannelCore& channel) {
  const std::lock_guard lock(mutex_);
  listen_locked(channel);
}

void SubscriptionCore::listen_locked(engine::ChannelCore& channel) {
  listed_.push_back({&channel, consumer_});
  listens_ = true;
  consumer_->news = &channel.host().inbox();
  consumer_->holders.fetch_add(1);
  if (channel.attach(consumer_)) return host_->arrivals().one_more();
  engine::drop_subscriber(consumer_);
  throw std::bad_alloc();
}

void SubscriptionCore::watch(engine::ChannelCore* channel, std::string_view pattern, bool again) {
  const std::lock_guard lock(mutex_);
  listed_.push_back({nullptr, consumer_});
  listens_ = true;
  consumer_->holders.fetch_add(1);
  try {
    host_->watch_interest(consumer_, channel, std::string(pattern), again);
  } catch (...) {
    engine::drop_subscriber(consumer_);
    throw;
  }
}

void SubscriptionCore::start_thread(std::string_view heard) {
  if (!mailbox_ || !mailbox_->core().options().own_thread) return;
  const engine::Ref<engine::OwnThread> made = new engine::OwnThread(
      &mailbox_->core(), options_.name.empty() ? std::string(heard) : options_.name);
  made->start();
  thread_ = made;
}

void SubscriptionCore::feed_from(engine::ChannelCore& source, KeyWriter key) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (awaited_ != nullptr) {
    const bool is_it = static_cast<const Schema*>(source.options().schema)->hash == awaited_->hash;
    return is_it && !listens_ ? listen_locked(source) : void();
  }
  listed_.reserve(listed_.size() + 1);
  engine::Subscriber* feeder =
      mailbox_->core().lane_order() != nullptr
          ? make_ordered_feeder(mailbox_, source)
          : make_feeder(mailbox_, source, options_.priority, std::move(key));
  feeder->wants_time = consumer_ == nullptr || consumer_->wants_time;
  feeder->patient = options_.patient;
  feeder->news = &source.host().inbox();
  listed_.push_back({&source, feeder});
  feeder->holders.fetch_add(1);
  if (source.attach(feeder)) return host_->arrivals().one_more();
  engine::drop_subscriber(feeder);
  throw std::bad_alloc();
}

void SubscriptionCore::stop_feeding_from(const engine::ChannelCore& source) noexcept {
  engine::Subscriber* feeder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;  // close_all() detaches all of them
    const auto at = std::find_if(listed_.begin(), listed_.end(),
                                 [&source](const Listed& l) { return l.channel.get() == &source; });
    if (at == listed_.end()) return;
    feeder = at->subscriber;
    at->channel->unlist(feeder);
    listed_.erase(at);
    if (feeder == consumer_) consumer_ = nullptr;  // dropped below
  }
  if (engine::close_deferred(*feeder)) engine::destroy_captures(*feeder);
  engine::drop_subscriber(feeder);
}

void SubscriptionCore::close_all(bool deferred) noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (const Listed& l : listed_) {  // closed: nobody adds to it any more
    l.subscriber->gate.close();
    if (l.channel) {
      l.channel->unlist(l.subscriber);
    } else if (host_) {
      host_->unwatch_interest(*l.subscriber);
    }
    // Without this object's lock: destructors of captures may call it.
    if (deferred && engine::close_deferred(*l.subscriber)) engine::destroy_captures(*l.subscriber);
  }
  if (thread_) thread_->end();
  for (const auto& p : parts_) p->close_all(deferred);
}

Detached SubscriptionCore::wait_all(std::int64_t limit_ns) noexcept {
  const engine::Deadline deadline(limit_ns);
  Detached result = Detached::done;
  for (const Listed& l : listed_) {                         // closed: nobody adds to it any more
    if (engine::destroyed_by_this_thread(*l.subscriber)) {  // its captures held its own handle
      result = Detached::deferred;
      continue;
    }
    switch (wait_for(l, deadline.left_ns())) {
      case engine::Gate::Waited::timeout:
        return Detached::timeout;
      case engine::Gate::Waited::gone:
        break;
      case engine::Gate::Waited::claimed:
        engine::destroy_captures(*l.subscriber);
        break;
    }
  }
  if (result == Detached::done && thread_ && !thread_->join(deadline.left_ns()))
    return Detached::timeout;
  return result;
}

/// Most waits are over at once. The housekeeper is told of a long one, and publishes it.
engine::Gate::Waited SubscriptionCore::wait_for(const Listed& listed,
                                                std::int64_t limit_ns) noexcept {
  enum : std::int64_t { kQuietNs = 100'000'000 };
  engine::Subscriber& subscriber = *listed.subscriber;
  if ((limit_ns >= 0 && limit_ns <= kQuietNs) || !host_)
    return engine::wait_uncalled(subscriber, limit_ns);
  const engine::Gate::Waited waited = engine::wait_uncalled(subscriber, kQuietNs);
  if (waited != engine::Gate::Waited::timeout) return waited;
  const std::int64_t since = engine::now_ns() - kQuietNs;
  std::uint64_t which = 0;
  try {
    which =
        host_->waits(options_.name, listed.channel ? listed.channel->options().name : "", since);
  } catch (const std::bad_alloc&) {
    // It is not told then; what matters is to wait.
  }
  const engine::Gate::Waited late =
      engine::wait_uncalled(subscriber, limit_ns < 0 ? limit_ns : limit_ns - kQuietNs);
  if (which != 0) host_->waits_no_more(which);
  return late;
}

Detached SubscriptionCore::detach(std::int64_t limit_ns) noexcept {
  if (forked()) return Detached::was_not_attached;
  if (by_pattern_) host_->remove_pattern(*this);
  const bool inside = engine::in_callback();
  close_all(inside);
  if (inside) return Detached::deferred;
  const engine::Deadline deadline(limit_ns);
  Detached result = wait_all(limit_ns);
  for (const auto& p : parts_) {
    const Detached part = p->wait_all(deadline.left_ns());
    if (result == Detached::done) result = part;
  }
  return result;
}

void SubscriptionCore::detach_deferred() noexcept {
  if (forked()) return;
  if (by_pattern_) host_->remove_pattern(*this);
  close_all(true);
}

void SubscriptionCore::set_host(SubscriptionHost* host) noexcept {
  host_ = host;
  if (host_) host_->remember(*this);
}

const engine::ChannelCore* SubscriptionCore::hook_row() const noexcept {
  const std::lock_guard lock(mutex_);
  const engine::ChannelCore* const heard = listed_.empty() ? nullptr : listed_[0].channel.get();
  return heard != nullptr && heard->options().queueless ? heard : nullptr;
}

bool SubscriptionCore::readmit() noexcept {
  bool any = false;
  for (const auto& p : parts_) any = p->readmit() || any;
  const std::lock_guard lock(mutex_);
  if (consumer_ == nullptr || !consumer_->gate.barred()) return any;
  consumer_->throws.forget();
  consumer_->gate.readmit();
  return true;
}

// --- its figures, and whether they balance (I3) ---

SubscriberStats SubscriptionCore::stats() const noexcept {
  SubscriberStats s;
  // Read before the figures of its subscriber, which no longer hears what comes out of the mailbox
  // after its end.
  const std::uint64_t came_out = mailbox_ ? counts_of(mailbox_->core()).delivered : 0;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!forked()) lock.lock();  // in a forked child it may never be free again
  if (consumer_ != nullptr) {
    // The parts before the whole: a call is offered before it is anything else.
    s.threw = consumer_->threw.get();
    s.filtered = consumer_->filtered.get();
    const engine::CallCells::Sums calls = consumer_->calls();
    s.delivered = calls.delivered;
    s.skipped = calls.skipped;
    s.offered = calls.offered;
    if (came_out > s.offered) s.skipped += came_out - s.offered;
    s.slow = consumer_->slow.get();
    s.longest_ns = static_cast<std::int64_t>(consumer_->longest_ns.get());
  }
  if (!parts_.empty()) s.delivered = 0;  // the sorter only passes them on: the parts count them
  for (const auto& p : parts_) {
    const SubscriberStats part = p->stats();
    s.delivered += part.delivered;
    s.threw += part.threw;
    s.filtered += part.filtered;
    s.skipped += part.skipped;
    s.dropped += part.dropped;
    s.pending += part.pending;
    s.slow += part.slow;
    s.longest_ns = std::max(s.longest_ns, part.longest_ns);
  }
  if (!mailbox_) return s;
  const engine::ChannelCounts box = counts_of(mailbox_->core());
  s.dropped = box.full + box.no_memory + box.closed + box.evicted + box.discarded;
  s.pending = box.pending;
  s.coalesced = box.coalesced;
  s.offered = box.accepted + box.full + box.no_memory + box.closed + box.coalesced;
  if (consumer_ == nullptr) s.delivered = box.delivered;
  if (const engine::LaneOrder* m = mailbox_->core().lane_order()) {
    s.order_gaps = m->gaps.get();
    s.order_late = m->late.get();
  }
  for (const Listed& l : listed_) {
    if (l.subscriber == consumer_) continue;
    s.threw += l.subscriber->threw
                   .get();  // thrown by a key function: the event did not get into the mailbox
    s.offered += l.subscriber->threw.get();
  }
  return s;
}

bool SubscriptionCore::quarantined() const noexcept {
  return (consumer_ != nullptr && consumer_->gate.barred()) ||
         std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->quarantined(); });
}

/// How much has been published and consumed on all that it hears. nullopt: a run may be under way,
/// or a publisher is busy, whose event may be heard before it counts as published.
std::optional<std::uint64_t> SubscriptionCore::at_rest() const {
  std::uint64_t so_far = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Listed& l : listed_) {
      const std::uint32_t lanes = l.channel ? l.channel->lane_count() : 0;
      for (std::uint32_t i = 0; i < lanes; ++i) {
        const engine::Lane::Moment now = l.channel->lane(i).moment();
        if (now.busy || now.published != now.consumed) return {};
        so_far += now.published;
      }
    }
  }
  for (const auto& p : parts_) {
    const auto part = p->at_rest();
    if (!part) return {};
    so_far += *part;
  }
  return so_far;
}

bool SubscriptionCore::called_by_drainers() const {
  const std::lock_guard lock(mutex_);
  const bool of_a_channel = listed_.empty() || listed_.front().channel;
  return consumer_ == nullptr || (consumer_->judge == nullptr && of_a_channel);
}

SubscriptionStats SubscriptionCore::row() const {
  SubscriptionStats row;
  row.figures = stats();
  const std::lock_guard lock(mutex_);
  row.name = options_.name;
  row.served = options_.served;
  row.priority = options_.priority;
  row.called_inline = consumer_ != nullptr && consumer_->judge != nullptr;
  row.pulled = consumer_ == nullptr;
  row.attached = !closed_;
  row.quarantined = quarantined();
  if (mailbox_) {
    row.channel = mailbox_->core().options().name;
  } else if (!listed_.empty() && listed_.front().channel) {
    row.channel = listed_.front().channel->options().name;
  }
  return row;
}

/// The account can be checked only if no event was under way while its counts were read. While
/// publishers go on there may be no such moment; then it counts as balanced.
std::string SubscriptionCore::unbalanced() const {
  enum { kLooks = 100 };
  SubscriberStats s;
  for (int look = 0;; ++look) {
    if (look == kLooks || closed_) return {};  // closed: further events are not its own
    const auto before = at_rest();
    if (!before) return {};
    s = stats();
    if (at_rest() == before) break;
    std::this_thread::yield();
  }
  const std::uint64_t sum =
      s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending;
  // at_rest() does not see calls by publishing threads and by the housekeeper, which are offered
  // first and settled later.
  const bool in_call = !called_by_drainers() && sum < s.offered;
  if (closed_ || sum == s.offered || in_call) return {};
  return "subscription '" + options_.name + "' does not balance (I3): offered " +
         std::to_string(s.offered) + ", delivered " + std::to_string(s.delivered) + ", threw " +
         std::to_string(s.threw) + ", filtered " + std::to_string(s.filtered) + ", skipped " +
         std::to_string(s.skipped) + ", dropped " + std::to_string(s.dropped) + ", coalesced " +
         std::to_string(s.coalesced) + ", pending " + std::to_string(s.pending);
}

}  // namespace ringmain::detail
