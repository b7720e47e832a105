#include "bus/subscription_core.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "engine/deliver/merge.hpp"
#include "engine/system/clock.hpp"

#include "bus/feed.hpp"
#include "bus/feeder.hpp"
#include "bus/reporter.hpp"

namespace ringmain::detail {

// --- the mailbox ---

DrainedBy drained_by(const SubscribeOptions& options, const engine::ChannelHost& host) noexcept {
  return options.served == Served::own_thread && !host.manual() ? DrainedBy::own_thread
                                                                : DrainedBy::workers;
}

void check(const SubscribeOptions& options, bool has_mailbox) {
  if (options.overflow == Overflow::block) {
    throw std::invalid_argument(
        "ringmain: a worker feeds the subscriber's queue and must never wait, so Overflow::block "
        "is refused; use drop_newest or drop_oldest, or let the publishers block");
  }
  if (!has_mailbox && options.overflow != Overflow::drop_newest) {
    throw std::invalid_argument(
        "ringmain: a shared subscriber has no queue that could overflow; use Served::isolated, or "
        "PublisherOptions::overflow");
  }
}

namespace {

engine::ChannelCoreOptions mailbox_options(std::string name, DrainedBy by) {
  engine::ChannelCoreOptions options;
  options.name = std::move(name);
  options.pulled = by != DrainedBy::workers;
  options.own_thread = by == DrainedBy::own_thread;
  return options;
}

engine::LaneOptions lanes_of(const SubscribeOptions& options) noexcept {
  engine::LaneOptions lanes = feeding_options(options.queue_events);
  lanes.overflow = options.overflow;
  return lanes;
}

}  // namespace

MailboxHold::MailboxHold(engine::ChannelHost& host, std::string name, DrainedBy by,
                         const SubscribeOptions& options)
    : MailboxHold(host, mailbox_options(std::move(name), by), lanes_of(options)) {}

MailboxHold::MailboxHold(engine::ChannelHost& host, engine::ChannelCoreOptions options,
                         const engine::LaneOptions& lanes)
    : lanes_(lanes) {
  options.mailbox = true;
  options.lanes_max = engine::ChannelCore::kLanesMax;
  const bool for_its_user = options.for_its_user();
  core_ = engine::make_channel_core(&host, std::move(options));
  if (!host.add(*core_)) throw std::bad_alloc();
  if (for_its_user) core_->begin_listening();
}

MailboxHold::~MailboxHold() {
  if (core_) core_->host().retire(*core_);
}

// --- the core of a subscription ---

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
  if (!called_inline)  // a worker's turns are watched, a publishing thread is not ours
    consumer_->budget_ns = engine::ns_of_us(std::max<std::int64_t>(0, options_.budget_us.count()));
  consumer_->detach_on_throw = options_.on_throw == OnThrow::detach;
  if (options_.on_throw == OnThrow::quarantine)
    consumer_->throws.set_max(std::max(1u, options_.throws_max));
  if (options_.on_throw != OnThrow::veto) return;
  consumer_->veto_on_throw = true;
  consumer_->threw_id =
      Name((options_.name.empty() ? "an inline subscriber" : options_.name) + " threw").id();
}

SubscriptionCore::~SubscriptionCore() {
  if (owner_ && !owner_->forked()) owner_->forget(*this);
  if (!closed_) detach_deferred();  // it never came to a handle: something threw on the way
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
  if (channel.attach(consumer_)) return;
  engine::drop_subscriber(consumer_);
  throw std::bad_alloc();
}

void SubscriptionCore::watch(BusCore& bus, engine::ChannelCore* channel, std::string_view pattern) {
  const std::lock_guard lock(mutex_);
  listed_.push_back({nullptr, consumer_});
  listens_ = true;
  consumer_->holders.fetch_add(1);
  try {
    bus.reporter().watch_interest(consumer_, channel, std::string(pattern));
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
  if (source.attach(feeder)) return;
  engine::drop_subscriber(feeder);
  throw std::bad_alloc();
}

void SubscriptionCore::stop_feeding_from(const engine::ChannelCore& source) noexcept {
  engine::Subscriber* feeder = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;  // close_all() sees to all of them
    const auto at = std::find_if(listed_.begin(), listed_.end(),
                                 [&source](const Listed& l) { return l.channel.get() == &source; });
    if (at == listed_.end()) return;
    feeder = at->subscriber;
    at->channel->unlist(feeder);
    listed_.erase(at);
    if (feeder == consumer_) consumer_ = nullptr;  // dropped below: the channel came to nothing
  }
  if (feeder->gate.close_deferred()) engine::destroy_captures(*feeder);
  engine::drop_subscriber(feeder);
}

void SubscriptionCore::close_all(bool deferred) noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (const Listed& l : listed_) {  // closed: nobody adds to it any more
    bool quiet = false;
    if (deferred) {
      quiet = l.subscriber->gate.close_deferred();
    } else {
      l.subscriber->gate.close();
    }
    if (l.channel) l.channel->unlist(l.subscriber);
    // Without our lock: what the captures destroy may come back here.
    if (quiet) engine::destroy_captures(*l.subscriber);
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

/// Most waits are over at once. A long one is made known to the housekeeper, which tells of it.
engine::Gate::Waited SubscriptionCore::wait_for(const Listed& listed,
                                                std::int64_t limit_ns) noexcept {
  enum : std::int64_t { kQuietNs = 100'000'000, kLookNs = 1'000'000 };
  engine::Gate& gate = listed.subscriber->gate;
  // A realtime publisher that leaves an inline callback wakes nobody.
  const std::int64_t look = listed.subscriber->judge != nullptr ? std::int64_t{kLookNs} : -1;
  if ((limit_ns >= 0 && limit_ns <= kQuietNs) || !owner_) return gate.wait(limit_ns, look);
  const engine::Gate::Waited waited = gate.wait(kQuietNs, look);
  if (waited != engine::Gate::Waited::timeout) return waited;
  const std::int64_t since = engine::now_ns() - kQuietNs;
  std::uint64_t which = 0;
  try {
    which = owner_->reporter().waits(options_.name,
                                     listed.channel ? listed.channel->options().name : "", since);
  } catch (const std::bad_alloc&) {
    // Nobody is told; waiting is what matters.
  }
  const engine::Gate::Waited late = gate.wait(limit_ns < 0 ? limit_ns : limit_ns - kQuietNs, look);
  if (which != 0) owner_->reporter().waits_no_more(which);
  return late;
}

Detached SubscriptionCore::detach(std::int64_t limit_ns) noexcept {
  if (forked()) return Detached::was_not_attached;
  if (bus_) bus_->remove_pattern(*this);
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
  if (bus_) bus_->remove_pattern(*this);
  close_all(true);
}

void SubscriptionCore::set_owner(BusCore* bus) noexcept {
  owner_ = bus;
  if (owner_) owner_->remember(*this);
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

Subscription SubscriptionCore::handle(engine::Ref<SubscriptionCore> subscription) noexcept {
  subscription->hold();
  return Subscription(subscription.get());
}

}  // namespace ringmain::detail
