#include "engine/deliver/manual.hpp"

namespace ringmain::engine {

std::size_t ManualDelivery::deliver(std::size_t max, std::int64_t limit_ns) noexcept {
  if (in_callback() || host_.forked()) return 0;
  const Deadline deadline(limit_ns);
  while (delivering_.exchange(1, std::memory_order_acquire) != 0) {  // q.turn
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return 0;  // another thread delivers for longer
    futex_wait(delivering_, 1, left);
  }
  std::size_t taken = 0;
  while (taken < max && !deadline.passed()) {
    const std::size_t some = round(max - taken, deadline);
    if (some == 0) break;
    taken += some;
  }
  workers_.all().front()->reading.store(nullptr, std::memory_order_release);  // n.unread
  delivering_.store(0, std::memory_order_release);                            // q.turn
  futex_wake(delivering_, 1);
  host_.retire_list().reclaim_all();
  return taken;
}

/// Serves every channel once, by index. Callbacks may add channels and retire them meanwhile.
std::size_t ManualDelivery::round(std::size_t max, const Deadline& deadline) noexcept {
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < ChannelTable::kChannelsMax && taken < max; ++i) {
    bool more = false;
    const Ref<ChannelCore> channel = table_.at(i, more);
    if (!more) break;
    if (!channel || channel->options().pulled) continue;
    if (deadline.passed()) break;
    channel->last_lane = channel->lane_count() - 1;  // the first lane is the next
    taken += drain(*workers_.all().front(), *channel, max - taken);
    if (channel->retired.load(std::memory_order_acquire) != 0 &&
        !channel->anything_left())  // q.over
      workers_.dispose(*channel);
  }
  return taken;
}

}  // namespace ringmain::engine
