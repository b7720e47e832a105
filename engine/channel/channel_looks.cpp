// Figures of a channel. Read seldom, by the housekeeper and by whoever asks; not on a publisher's
// or a worker's way.
#include <algorithm>
#include <new>

#include "engine/channel/channel_core.hpp"

namespace ringmain::engine {
namespace {

std::uint64_t read(const Atomic<std::uint64_t>& count) noexcept {
  return count.load(std::memory_order_relaxed);  // relaxed: a count
}

}  // namespace

Losses ChannelCore::losses() const noexcept {
  Losses sum;
  sum.full = read(refused_[static_cast<std::size_t>(Pushed::full)]);
  sum.no_memory = read(refused_[static_cast<std::size_t>(Pushed::no_memory)]);
  sum.too_deep = read(refused_[static_cast<std::size_t>(Pushed::too_deep)]);
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    const Lane& one = lane(i);
    if (one.source->options().tells_no_losses) continue;
    sum.full += read(one.unqueued.full);
    sum.no_memory += read(one.unqueued.no_memory);
    sum.too_deep += read(one.unqueued.too_deep);
    sum.evicted += read(one.undelivered.evicted);
  }
  return sum;
}

std::uint64_t ChannelCore::depth() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    // Consumed first: what is consumed was published.
    const std::uint64_t consumed = lane(i).consumed.load(std::memory_order_acquire);  // e.consumed
    sum += std::max(lane(i).published(), consumed) - consumed;
  }
  return sum;
}

std::int64_t ChannelCore::smallest_budget_ns() const noexcept {
  std::int64_t smallest = 0;
  for_each_subscriber([&smallest](const Subscriber& s) {
    if (s.budget_ns != 0 && (smallest == 0 || s.budget_ns < smallest)) smallest = s.budget_ns;
  });
  return smallest;
}

Listening ChannelCore::listening() const noexcept {
  const std::lock_guard lock(mutex_);
  return {static_cast<std::uint32_t>(list_.size()), static_cast<std::uint32_t>(inline_list_.size()),
          list_.any_wants_time()};
}

bool ChannelCore::fed() const noexcept {
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    if (lane(i).tenure.live.load(std::memory_order_acquire) != 0) return true;  // e.lane_free
  }
  return false;
}

void ChannelCore::trim() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (list_.retired() != 0) host_->reclaim(list_);
    if (inline_list_.retired() != 0) inline_list_.reclaim(inline_readings());
  } catch (const std::bad_alloc&) {
    // The next look tries again.
  }
}

std::uint64_t ChannelCore::offered() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& r : refused_) sum += r.load(std::memory_order_relaxed);  // relaxed: counts
  for (std::uint32_t i = 0, n = lane_count(); i < n; ++i) {
    sum +=
        lane(i).published() + lane(i).refused.load(std::memory_order_relaxed);  // relaxed: a count
  }
  return sum;
}

ChannelCounts ChannelCore::counts() const noexcept {
  ChannelCounts sum;
  sum.full = read(refused_[static_cast<std::size_t>(Pushed::full)]);
  sum.closed = read(refused_[static_cast<std::size_t>(Pushed::closed)]);
  sum.no_memory = read(refused_[static_cast<std::size_t>(Pushed::no_memory)]);
  sum.too_deep = read(refused_[static_cast<std::size_t>(Pushed::too_deep)]);
  sum.lanes = lane_count();
  for (std::uint32_t i = 0; i < sum.lanes; ++i) {
    const Lane& one = lane(i);
    // Consumed first: what is consumed was published, so pending is never negative.
    const std::uint64_t consumed = one.consumed.load(std::memory_order_acquire);  // e.consumed
    // The two after it, so that neither is taken for delivered, and no more than were consumed.
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
