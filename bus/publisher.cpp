#include "bus/publisher.hpp"

#include <algorithm>
#include <string>

#include "engine/channel/channel_core.hpp"
#include "engine/system/clock.hpp"

#include "bus/options.hpp"

namespace ringmain::detail {

namespace {

/// What the engine is asked for, or why it cannot be.
Result<engine::LaneOptions> lane_options_of(const engine::ChannelCore& channel,
                                            const PublisherOptions& options) {
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
  engine::LaneOptions asked;
  asked.capacity = options.capacity_events;
  asked.kind = options.realtime ? LaneKind::ring : options.lane;
  asked.realtime = options.realtime;
  asked.overflow = options.overflow;
  asked.source_time = options.source_time;
  if (options.overflow == Overflow::block)
    asked.block_ns_max = engine::ns_of_us(options.block_us_max.count());
  return asked;
}

std::string_view name_of(LaneKind kind) noexcept {
  switch (kind) {
    case LaneKind::moodycamel:
      return "moodycamel";
    case LaneKind::ring:
      return "ring";
    case LaneKind::segments:
      return "segments";
  }
  return "?";
}

/// "8192 events, ring, realtime, drop_newest".
std::string in_words(const engine::LaneOptions& o) {
  std::string words = std::to_string(o.capacity) + " events, ";
  words += name_of(o.kind);
  words += ", ";
  if (o.realtime) words += "realtime, ";
  if (o.overflow == Overflow::block)
    return words + "block for " + std::to_string(o.block_ns_max / 1000) + " us";
  return words + (o.overflow == Overflow::drop_oldest ? "drop_oldest" : "drop_newest");
}

}  // namespace

Result<engine::Lane*> take_lane(engine::ChannelCore& channel, const PublisherOptions& options) {
  const auto asked = lane_options_of(channel, options);
  if (!asked) return asked.error();
  engine::Lane* lane = channel.take_lane(asked.value(), channel);
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

TakenLane take_default_lane(engine::ChannelCore& channel) {
  PublisherOptions options;
  options.lane = channel.options().lanes;
  const auto lane = take_lane(channel, options);
  if (lane) return {lane.value(), lane.value()->line};
  return {nullptr, channel.line.forked() ? &engine::forked_nowhere : &engine::nowhere};
}

Result<bool> set_thread_lanes(engine::ChannelCore& channel, const PublisherOptions& options) {
  const auto asked = lane_options_of(channel, options);
  if (!asked) return asked.error();
  if (options.source_time) {
    return Error{Error::Code::refused,
                 "a thread's lane takes no source_time, for Channel::publish() gives none; use a "
                 "Publisher and its publish_at()"};
  }
  const engine::LaneOptions* holds = channel.set_thread_lanes(asked.value());
  if (holds == nullptr) {
    return Error{Error::Code::no_memory,
                 "out of memory for the options of the threads' lanes of "
                 "channel '" +
                     channel.options().name + "'; free some and try again"};
  }
  if (*holds == asked.value()) return true;
  return Error{Error::Code::conflict, "the threads' lanes of channel '" + channel.options().name +
                                          "' are set to (" + in_words(*holds) +
                                          ") already, and cannot be (" + in_words(asked.value()) +
                                          ") as well; use one of the two everywhere"};
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
