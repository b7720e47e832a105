#include "bus/channel.hpp"

#include <algorithm>
#include <utility>

#include "engine/channel/channel_figures.hpp"

#include "bus/core/or_error.hpp"
#include "bus/core/subscription_core.hpp"

namespace ringmain::detail {

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
  made->set_host(SubscriptionHost::of(channel));
  made->listen(mailbox ? mailbox->core() : channel);
  made->start_thread(channel.options().name);
  if (mailbox) made->feed_from(channel, std::move(key));
  return handle_of(*made);
}

Result<Subscription> try_attach(engine::ChannelCore& channel, engine::Subscriber* subscriber,
                                SubscribeOptions options) noexcept {
  if (subscriber == nullptr) return out_of_memory();
  return or_error([&] { return attach(channel, subscriber, std::move(options)); });
}

ChannelStats stats_of(const engine::ChannelCore& channel) {
  ChannelStats s;
  const engine::ChannelCounts c = counts_of(channel);
  s.name = channel.options().name;
  s.mailbox = channel.options().mailbox;
  s.accepted = c.accepted;
  s.full = c.full;
  s.closed = c.closed;
  s.no_memory = c.no_memory;
  s.too_deep = c.too_deep;
  s.vetoed = c.vetoed;
  s.depth_max = std::max(c.pending, channel.looked.depth_max.get());
  s.offered = offered_on(channel);
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

}  // namespace ringmain::detail
