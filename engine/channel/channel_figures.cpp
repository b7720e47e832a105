#include "engine/channel/channel_figures.hpp"

#include <algorithm>

namespace ringmain::engine {
namespace {

std::uint64_t read(const Atomic<std::uint64_t>& count) noexcept {
  return count.load(std::memory_order_relaxed);  // relaxed: a count
}

}  // namespace

Losses losses_of(const ChannelCore& channel) noexcept {
  Losses sum;
  sum.full = read(channel.refused_early()[static_cast<std::size_t>(Pushed::full)]);
  sum.no_memory = read(channel.refused_early()[static_cast<std::size_t>(Pushed::no_memory)]);
  sum.too_deep = read(channel.refused_early()[static_cast<std::size_t>(Pushed::too_deep)]);
  for (std::uint32_t i = 0, n = channel.lane_count(); i < n; ++i) {
    const Lane& one = channel.lane(i);
    if (one.source->options().tells_no_losses) continue;
    sum.full += read(one.unqueued.full);
    sum.no_memory += read(one.unqueued.no_memory);
    sum.too_deep += read(one.unqueued.too_deep);
    sum.evicted += read(one.undelivered.evicted);
  }
  return sum;
}

std::uint64_t depth_of(const ChannelCore& channel) noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0, n = channel.lane_count(); i < n; ++i) {
    // Consumed first: what is consumed was published.
    const std::uint64_t consumed =
        channel.lane(i).consumed.load(std::memory_order_acquire);  // e.consumed
    sum += std::max(channel.lane(i).published(), consumed) - consumed;
  }
  return sum;
}

std::uint64_t offered_on(const ChannelCore& channel) noexcept {
  std::uint64_t sum = 0;
  for (const auto& r : channel.refused_early())
    sum += r.load(std::memory_order_relaxed);  // relaxed: counts
  for (std::uint32_t i = 0, n = channel.lane_count(); i < n; ++i) {
    sum += channel.lane(i).published() +
           channel.lane(i).refused.load(std::memory_order_relaxed);  // relaxed: a count
  }
  return sum;
}

ChannelCounts counts_of(const ChannelCore& channel) noexcept {
  ChannelCounts sum;
  sum.full = read(channel.refused_early()[static_cast<std::size_t>(Pushed::full)]);
  sum.closed = read(channel.refused_early()[static_cast<std::size_t>(Pushed::closed)]);
  sum.no_memory = read(channel.refused_early()[static_cast<std::size_t>(Pushed::no_memory)]);
  sum.too_deep = read(channel.refused_early()[static_cast<std::size_t>(Pushed::too_deep)]);
  sum.lanes = channel.lane_count();
  for (std::uint32_t i = 0; i < sum.lanes; ++i) {
    const Lane& one = channel.lane(i);
    // Consumed first: what is consumed was published, so pending is never negative.
    const std::uint64_t consumed = one.consumed.load(std::memory_order_acquire);  // e.consumed
    // Both are read after it, so that no such event counts as delivered, and limited to what was
    // consumed.
    const std::uint64_t discarded = std::min(read(one.undelivered.discarded), consumed);
    const std::uint64_t evicted = std::min(read(one.undelivered.evicted), consumed - discarded);
    const std::uint64_t observed = read(one.unqueued.observed);
    const std::uint64_t published = std::max(one.published(), consumed);
    sum.accepted += published + observed;
    sum.delivered += consumed - discarded - evicted + observed;
    sum.observed += observed;
    sum.discarded += discarded;
    sum.evicted += evicted;
    sum.coalesced += read(one.unqueued.coalesced);
    sum.pending += published - consumed;
    sum.full += read(one.unqueued.full);
    sum.closed += read(one.unqueued.closed);
    sum.no_memory += read(one.unqueued.no_memory);
    sum.too_deep += read(one.unqueued.too_deep);
    sum.vetoed += read(one.unqueued.vetoed);
    sum.live_lanes += one.tenure.live.load(std::memory_order_relaxed);  // relaxed: a count
  }
  return sum;
}

}  // namespace ringmain::engine
