// How does a bus without threads deliver? Whoever calls deliver() is the worker, for that long.
//
// The same channels, lanes, ledgers and drain(), in a fixed order and in one thread: tests of
// users' subscribers run the same every time. Every channel counts as leased, so that publishers
// never signal; the first worker's state, which has no thread, shows what is read.
#include <mutex>

#include "engine/deliver/workers.hpp"

namespace ringmain::engine {

std::size_t Workers::deliver(std::size_t max, std::int64_t limit_ns) noexcept {
  if (in_callback() || forked()) return 0;
  const Deadline deadline(limit_ns);
  while (delivering_.exchange(1, std::memory_order_acquire) != 0) {  // Q2
    const std::int64_t left = deadline.left_ns();
    if (left == 0) return 0;  // another thread is at it for longer
    futex_wait(delivering_, 1, left);
  }
  std::size_t taken = 0;
  while (taken < max && !deadline.passed()) {
    const std::size_t round = deliver_round(max - taken, deadline);
    if (round == 0) break;
    taken += round;
  }
  workers_.front()->reading.store(nullptr, std::memory_order_release);  // N2
  delivering_.store(0, std::memory_order_release);                      // Q2
  futex_wake(delivering_, 1);
  reclaim_captures();
  return taken;
}

/// Every channel once, in order of index. Callbacks may add channels and retire them meanwhile.
std::size_t Workers::deliver_round(std::size_t max, const Deadline& deadline) noexcept {
  std::size_t taken = 0;
  for (std::uint32_t i = 0; i < kChannelsMax && taken < max; ++i) {
    Ref<ChannelCore> channel;
    {
      const std::lock_guard lock(mutex_);
      if (i >= next_) break;
      channel = table_[i].load(std::memory_order_relaxed);  // relaxed: under our lock
    }
    if (!channel || channel->options().pulled) continue;
    if (deadline.passed()) break;
    channel->last_lane = channel->lane_count() - 1;  // the first lane is the next
    taken += drain(*workers_.front(), *channel, max - taken);
    if (channel->retired.load(std::memory_order_acquire) != 0 && !channel->anything_left())  // Q1
      dispose(*channel);
  }
  return taken;
}

}  // namespace ringmain::engine
