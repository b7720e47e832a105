// What does the housekeeper read of a channel? Seldom, and off the lines that publishers write.
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
    sum.full += read(one.full);
    sum.no_memory += read(one.no_memory);
    sum.too_deep += read(one.too_deep);
    sum.evicted += read(one.evicted);
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
    if (lane(i).live.load(std::memory_order_acquire) != 0) return true;  // e.lane_free
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

}  // namespace ringmain::engine
