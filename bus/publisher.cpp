#include "bus/publisher.hpp"

#include <algorithm>
#include <string>

#include "engine/channel/channel_core.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::detail {

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
  // Read after `consumed`, so that no lost event counts as delivered, and limited to what was
  // consumed.
  const std::uint64_t lost = std::min(lane.undelivered.discarded.load() - lane.before.discarded +
                                          lane.undelivered.evicted.load() - lane.before.evicted,
                                      consumed - lane.before.published);
  const std::uint64_t observed = lane.unqueued.observed.load() - lane.before.observed;
  const std::uint64_t unqueued = lane.refused.load() - lane.before.refused;
  ledger.in_flight = published - consumed;
  ledger.dropped = unqueued - std::min(unqueued, observed) + lost;
  ledger.delivered = consumed - lane.before.published - lost + observed;
  ledger.offered = published - lane.before.published + unqueued;
  return ledger;
}

}  // namespace ringmain::detail
