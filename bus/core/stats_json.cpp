#include "bus/core/stats_json.hpp"

#include <string_view>

namespace ringmain::detail {
namespace {

using formats::JsonText;

std::string_view in_words(Served served) noexcept {
  switch (served) {
    case Served::shared:
      return "shared";
    case Served::isolated:
      return "isolated";
    case Served::own_thread:
      return "own_thread";
  }
  return "";
}

void add(JsonText& json, const ChannelStats& c) {
  json.open('{').key("name").text(c.name).key("mailbox").boolean(c.mailbox);
  json.key("offered").number(c.offered).key("accepted").number(c.accepted);
  json.key("full").number(c.full).key("closed").number(c.closed);
  json.key("no_memory").number(c.no_memory).key("too_deep").number(c.too_deep);
  json.key("vetoed").number(c.vetoed).key("delivered").number(c.delivered);
  json.key("observed").number(c.observed).key("evicted").number(c.evicted);
  json.key("discarded").number(c.discarded).key("pending").number(c.pending);
  json.key("order_gaps").number(c.order_gaps).key("order_late").number(c.order_late);
  json.key("depth_max").number(c.depth_max).key("publishers").number(c.publishers);
  json.key("lanes").number(c.lanes).key("subscribers").number(c.subscribers);
  json.key("latency_count").number(c.latency_count);
  json.key("latency_p50_ns").number(c.latency_p50_ns);
  json.key("latency_p90_ns").number(c.latency_p90_ns);
  json.key("latency_p99_ns").number(c.latency_p99_ns);
  json.key("latency_max_ns").number(c.latency_max_ns).close('}');
}

void add(JsonText& json, const SubscriptionStats& s) {
  const SubscriberStats& f = s.figures;
  json.open('{').key("name").text(s.name).key("channel").text(s.channel);
  json.key("served").text(in_words(s.served)).key("inline").boolean(s.called_inline);
  json.key("pulled").boolean(s.pulled).key("priority").number(s.priority);
  json.key("attached").boolean(s.attached).key("quarantined").boolean(s.quarantined);
  json.key("offered").number(f.offered).key("delivered").number(f.delivered);
  json.key("threw").number(f.threw).key("filtered").number(f.filtered);
  json.key("skipped").number(f.skipped).key("dropped").number(f.dropped);
  json.key("coalesced").number(f.coalesced).key("pending").number(f.pending);
  json.key("slow").number(f.slow).key("longest_ns").number(f.longest_ns);
  json.key("order_gaps").number(f.order_gaps).key("order_late").number(f.order_late).close('}');
}

}  // namespace

void add_stats(JsonText& json, const Stats& stats) {
  json.key("channels").open('[');
  for (const ChannelStats& one : stats.channels) add(json, one);
  json.close(']').key("subscriptions").open('[');
  for (const SubscriptionStats& one : stats.subscriptions) add(json, one);
  json.close(']').key("workers").open('[');
  for (const WorkerStats& one : stats.workers) {
    json.open('{').key("parks").number(one.parks).key("wakes").number(one.wakes);
    json.key("batches").number(one.batches).key("events").number(one.events).close('}');
  }
  json.close(']').key("housekeeper").open('{');
  json.key("running").boolean(stats.housekeeper.running);
  json.key("wakes").number(stats.housekeeper.wakes).close('}');
}

}  // namespace ringmain::detail
