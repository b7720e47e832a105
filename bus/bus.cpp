#include "bus/bus.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/channel/accounts.hpp"
#include "engine/publish/missed.hpp"

#include "bus/bus_core.hpp"
#include "bus/copies.hpp"
#include "bus/first_use.hpp"
#include "bus/subscription_core.hpp"

namespace ringmain {
Bus::Bus(const BusOptions& options) : Bus(new detail::BusCore(options)) {}

Bus::Bus(detail::BusCore* core) noexcept : core_(core) {
  core_->hold();
}

Bus::~Bus() {
  const auto end = [](detail::BusCore* core) noexcept {
    core->end();
    core->release();
  };
  if (!engine::in_callback()) {
    end(core_);
    return;
  }
  // A worker that waited here might wait for itself: a thread of its own does it. Where there is
  // none to be had, or no memory for one, the core is leaked rather than freed under its workers.
  try {
    std::thread(end, core_).detach();
  } catch (const std::exception&) {
  }
}

namespace {
// Each side writes its own and then looks at the other's: one of the two sees it.
constinit std::atomic<void (*)() noexcept> tell_first_use{nullptr};
constinit std::atomic<bool> process_bus_is_made{false};
}  // namespace

bool detail::before_first_use(void (*tell)() noexcept) noexcept {
  tell_first_use = tell;
  return !process_bus_is_made;
}

Bus& Bus::process() {
  // Never destroyed: threads publish until the process is gone. Made after a flag that a fork in
  // the middle resets, as it does not with a guarded static.
  static std::once_flag once;
  static Bus* bus = nullptr;
  std::call_once(once, [] {
    bus = new Bus;
    engine::count_missed_of(bus->core_->engine());
    detail::tell_of_copies();
    process_bus_is_made = true;
  });
  auto* const tell = tell_first_use.load();
  if (tell != nullptr && !bus->core_->forked()) [[unlikely]]
    tell();
  return *bus;
}

engine::ChannelCore& Bus::find(std::string_view name, const Schema& schema,
                               const ChannelOptions* options) {
  auto found = core_->channel(name, schema, options);
  if (!found) {
    std::fprintf(stderr, "ringmain: %s\n", found.error().message.c_str());
    std::abort();
  }
  return *found.value();
}

Result<engine::ChannelCore*> Bus::configure_core(std::string_view name, const Schema& schema,
                                                 const ChannelOptions& options) {
  if (options.lanes_max == 0)
    return Error{Error::Code::refused, "lanes_max is 0: nobody could publish; use 1 or more"};
  if (options.delivery == Delivery::parallel && options.order == Order::total) {
    return Error{Error::Code::refused,
                 "Delivery::parallel has no order to be total; leave one of the two out"};
  }
  if (options.delivery == Delivery::parallel && options.lanes == LaneKind::ring) {
    return Error{Error::Code::refused,
                 "a ring's events are heard in place, one run after another: Delivery::parallel "
                 "needs LaneKind::moodycamel"};
  }
  return core_->channel(name, schema, &options);
}

Subscription Bus::subscribe_core(std::string_view pattern, engine::Subscriber* subscriber,
                                 SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  detail::check(options, true);
  const engine::Ref<detail::MailboxHold> mailbox = new detail::MailboxHold(
      core_->engine(), options.name.empty() ? "mailbox of " + std::string(pattern) : options.name,
      detail::drained_by(options, core_->engine()), options);
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, mailbox, std::move(options));
  orphan.subscriber = nullptr;
  made->set_owner(core_);
  made->set_bus(core_);
  made->listen(mailbox->core());
  made->start_thread(pattern);
  core_->add_pattern(*made, pattern);
  return detail::SubscriptionCore::handle(made);
}

Subscription Bus::subscribe_once_made(const Schema& schema, engine::Subscriber* subscriber,
                                      SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  detail::check(options, false);
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, {}, std::move(options));
  orphan.subscriber = nullptr;
  made->set_owner(core_);
  made->set_bus(core_);
  made->set_awaited(schema);
  core_->add_pattern(*made, schema.name);
  return detail::SubscriptionCore::handle(made);
}

Subscription Bus::on_interest_core(engine::ChannelCore* channel, std::string_view pattern,
                                   engine::Subscriber* subscriber, SubscribeOptions options) {
  detail::Orphan orphan{subscriber};
  if (core_->forked()) return {};
  const engine::Ref<detail::SubscriptionCore> made =
      new detail::SubscriptionCore(subscriber, {}, std::move(options));
  orphan.subscriber = nullptr;
  made->set_owner(core_);
  made->watch(*core_, channel, pattern);
  return detail::SubscriptionCore::handle(made);
}

bool Bus::wait_told(nanoseconds limit) {
  return !core_->forked() && core_->engine().house().await_round(limit.count());
}

AnyMailbox Bus::mailbox(std::string_view pattern, SubscribeOptions options) {
  return AnyMailbox(detail::make_pull_mailbox(*core_, pattern, std::move(options)));
}

bool Bus::flush(nanoseconds limit) {
  return core_->engine().flush(limit.count());
}

namespace {
std::vector<std::string> unbalanced(const detail::BusCore& core);
}

Stopped Bus::stop(StopMode mode, nanoseconds limit) {
  auto s = core_->engine().stop(mode == StopMode::abort, limit.count());
  Stopped stopped{s.refused, s.left, std::move(s.stuck), {}};
  if (!stopped.refused && !core_->forked() && stopped.left == 0 && stopped.stuck.empty())
    stopped.unbalanced = unbalanced(*core_);
  return stopped;
}

Stats Bus::stats() const {
  Stats all;
  if (core_->forked()) return all;
  for (const auto& c : core_->channels()) all.channels.push_back(detail::stats_of(*c));
  for (const auto& c : core_->engine().channels()) {
    if (c->options().mailbox) all.channels.push_back(detail::stats_of(*c));
  }
  for (const auto& w : core_->engine().counts())
    all.workers.push_back({w.parks, w.wakes, w.batches, w.events});
  core_->for_each_subscription(
      [&all](const detail::SubscriptionCore& a) { all.subscriptions.push_back(a.row()); });
  all.housekeeper = {core_->engine().house().running(), core_->engine().house().wakes()};
  return all;
}

namespace {

/// "" while it balances.
std::string unbalanced(const engine::ChannelCore& channel) {
  const engine::Accounts a = engine::look_at_accounts(channel);
  if (a.offered_add_up && a.accepted_add_up) return {};
  const auto n = [](std::uint64_t count) { return std::to_string(count); };
  return "channel '" + channel.options().name + "' does not balance (" +
         (a.offered_add_up ? "I2" : "I1") + "): offered " + n(a.offered) + ", accepted " +
         n(a.accepted) + ", refused " + n(a.refused) + ", delivered " + n(a.drained + a.observed) +
         ", observed " + n(a.observed) + ", dispatched " + n(a.dispatched) + ", evicted " +
         n(a.evicted) + ", discarded " + n(a.discarded) + ", pending " + n(a.pending);
}

std::vector<std::string> unbalanced(const detail::BusCore& core) {
  std::vector<std::string> sentences;
  const auto add = [&sentences](std::string sentence) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  for (const auto& c : core.channels()) add(unbalanced(*c));
  for (const auto& c : core.engine().channels()) {
    if (c->options().mailbox) add(unbalanced(*c));
  }
  core.for_each_subscription([&add](const detail::SubscriptionCore& a) { add(a.unbalanced()); });
  return sentences;
}

}  // namespace

Result<bool> Bus::verify_accounting() const {
  if (core_->forked()) return true;
  auto sentences = unbalanced(*core_);
  if (sentences.empty()) return true;
  return Error{Error::Code::conflict, std::move(sentences.front())};
}

std::vector<std::string> Bus::channel_names() const {
  std::vector<std::string> names;
  for (const auto& c : core_->channels()) names.push_back(c->options().name);
  return names;
}

unsigned Bus::workers() const noexcept {
  return core_->engine().running();
}

namespace detail {

Stamp stamp_of(const engine::Run& run, std::size_t i) noexcept {
  const engine::SlotHeader& header = run.header(i);
  if (const engine::Envelope* e = run.envelope(i)) {
    return {header.time_ns, e->sequence, e->publisher, static_cast<TimeFrom>(e->time_from)};
  }
  Stamp stamp;
  stamp.sequence = header.sequence - run.first_sequence;
  stamp.publisher = run.publisher;
  if (run.source_time) {
    stamp.time_ns = header.time_ns;
    stamp.time_from = TimeFrom::source;
  } else if (header.time_ns != 0) {
    stamp.time_ns = header.time_ns;
    stamp.time_from = TimeFrom::publisher;
  } else {
    stamp.time_ns = run.taken();
  }
  return stamp;
}

EventView view_of(const engine::Run& run, std::size_t i, const Stamp& stamp) noexcept {
  const auto& from = run.source->options();
  return {from.name, *static_cast<const Schema*>(from.schema), run.payload(i), stamp};
}

Subscription attach(engine::ChannelCore& channel, engine::Subscriber* subscriber,
                    SubscribeOptions options, KeyWriter key) {
  Orphan orphan{subscriber};
  if (channel.inert()) return {};
  engine::Ref<MailboxHold> mailbox;
  if (key.bytes != 0 && options.served == Served::shared) options.served = Served::isolated;
  check(options, options.served != Served::shared);
  if (options.served != Served::shared) {
    mailbox = new MailboxHold(
        channel.host(),
        options.name.empty() ? "mailbox of " + channel.options().name : options.name,
        drained_by(options, channel.host()), options);
  }
  const engine::Ref<SubscriptionCore> made =
      new SubscriptionCore(subscriber, mailbox, std::move(options));
  orphan.subscriber = nullptr;
  made->set_owner(static_cast<BusCore*>(channel.options().owner));
  made->listen(mailbox ? mailbox->core() : channel);
  made->start_thread(channel.options().name);
  if (mailbox) made->feed_from(channel, std::move(key));
  return SubscriptionCore::handle(made);
}

Result<engine::Lane*> take_lane(engine::ChannelCore& channel, const PublisherOptions& options) {
  if (channel.inert()) {
    return Error{Error::Code::refused,
                 "channel '" + channel.options().name +
                     "' belongs to the process that forked this one; make a Bus in the child"};
  }
  if (options.capacity_events == 0) {
    return Error{Error::Code::refused,
                 "capacity_events is 0: nothing could be published; use 1 or more"};
  }
  if (options.realtime && options.overflow == Overflow::block) {
    return Error{Error::Code::refused,
                 "a realtime publisher must never wait; use Overflow::drop_newest or drop_oldest"};
  }
  if (channel.options().parallel) {
    if (options.realtime || options.lane == LaneKind::ring) {
      return Error{Error::Code::refused,
                   "channel '" + channel.options().name +
                       "' delivers in parallel, which rings and so realtime publishers cannot; use "
                       "LaneKind::moodycamel, or Delivery::serial"};
    }
    if (options.overflow == Overflow::drop_oldest) {
      return Error{Error::Code::refused,
                   "channel '" + channel.options().name +
                       "' delivers in parallel and so knows no oldest event; use "
                       "Overflow::drop_newest or block"};
    }
  }
  engine::LaneOptions lane_options;
  lane_options.capacity = options.capacity_events;
  lane_options.ring = options.realtime || options.lane == LaneKind::ring;
  lane_options.realtime = options.realtime;
  lane_options.overflow = options.overflow;
  lane_options.source_time = options.source_time;
  if (options.overflow == Overflow::block)
    lane_options.block_ns_max = engine::ns_of_us(options.block_us_max.count());
  engine::Lane* lane = channel.take_lane(lane_options, channel);
  if (lane == nullptr) {
    if (channel.lane_count() < channel.options().lanes_max)
      return Error{
          Error::Code::no_memory,
          "out of memory for a publisher of channel '" + channel.options().name +
              "'; lower PublisherOptions::capacity_events, which a ring allocates at once"};
    return Error{Error::Code::no_memory,
                 "no lane left in channel '" + channel.options().name + "' (" +
                     std::to_string(channel.options().lanes_max) +
                     " publishers at most); raise ChannelOptions::lanes_max"};
  }
  channel.hold();
  return lane;
}

void give_back(engine::Lane& lane) noexcept {
  engine::ChannelCore* channel = lane.channel;
  engine::ChannelCore::give_lane(lane);
  channel->release();
}

engine::PushResult push_at(engine::Lane& lane, engine::BuildFn* build, void* from,
                           std::int64_t time_ns) noexcept {
  return engine::push_slowly(lane, build, from, lane.options.source_time ? time_ns : 0);
}

Ledger ledger_of(const engine::Lane& lane) noexcept {
  Ledger ledger;
  const std::uint64_t consumed = lane.consumed.load();
  const std::uint64_t published = std::max(lane.published(), consumed);
  // Behind consumed, so that nothing lost is taken for delivered, and no more than was consumed.
  const std::uint64_t lost = std::min(
      lane.discarded.load() - lane.discarded_before + lane.evicted.load() - lane.evicted_before,
      consumed - lane.published_before);
  const std::uint64_t observed = lane.observed.load() - lane.observed_before;
  const std::uint64_t unqueued = lane.refused.load() - lane.refused_before;
  ledger.in_flight = published - consumed;
  ledger.dropped = unqueued - std::min(unqueued, observed) + lost;
  ledger.delivered = consumed - lane.published_before - lost + observed;
  ledger.offered = published - lane.published_before + unqueued;
  return ledger;
}

ChannelStats stats_of(const engine::ChannelCore& channel) {
  ChannelStats s;
  const engine::ChannelCounts c = channel.counts();
  s.name = channel.options().name;
  s.mailbox = channel.options().mailbox;
  s.accepted = c.accepted;
  s.full = c.full;
  s.closed = c.closed;
  s.no_memory = c.no_memory;
  s.too_deep = c.too_deep;
  s.vetoed = c.vetoed;
  s.depth_max = std::max(c.pending, channel.looked.depth_max.get());
  s.offered = channel.offered();
  s.delivered = c.delivered;
  s.observed = c.observed;
  s.evicted = c.evicted;
  s.discarded = c.discarded;
  s.pending = c.pending;
  s.publishers = c.live_lanes;
  s.lanes = c.lanes;
  if (const engine::LaneOrder* m = channel.lane_order()) {
    s.order_gaps = m->gaps.get();
    s.order_late = m->late.get();
  }
  s.subscribers = static_cast<std::uint32_t>(channel.subscribers());
  if (const engine::Histogram* h = channel.latency()) {
    s.latency_count = h->count();
    s.latency_p50_ns = h->quantile(0.50);
    s.latency_p90_ns = h->quantile(0.90);
    s.latency_p99_ns = h->quantile(0.99);
    s.latency_max_ns = h->max();
  }
  return s;
}

}  // namespace detail
}  // namespace ringmain
