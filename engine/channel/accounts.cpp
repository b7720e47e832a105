#include "engine/channel/accounts.hpp"

#include <algorithm>
#include <atomic>

namespace ringmain::engine {
namespace {

/// I1 of one lane. While an event is being refused or observed, `refused` may count it already and
/// its reason not yet: the publisher is `settling` then, or busy, and a signal handler in the
/// middle of that adds one to `settling`. `refused` is read last, so it has at least what the
/// reasons have.
void look_at_refusals(const Lane& lane, Accounts& sum) noexcept {
  const std::uint64_t first = lane.refused.load(std::memory_order_acquire);  // a.refusals
  const std::uint64_t between =
      lane.unqueued.settling.load(std::memory_order_acquire) +  // a.refusals
      (lane.word.load(std::memory_order_acquire) & 1);          // e.published
  std::uint64_t reasons = 0;
  for (const Atomic<std::uint64_t>* reason :
       {&lane.unqueued.full, &lane.unqueued.closed, &lane.unqueued.no_memory,
        &lane.unqueued.too_deep, &lane.unqueued.vetoed})
    reasons += reason->load(std::memory_order_acquire);  // a.refusals
  const std::uint64_t observed =
      lane.unqueued.observed.load(std::memory_order_acquire);  // a.refusals
  const std::uint64_t last =
      lane.refused.load(std::memory_order_relaxed);  // relaxed: a.refusals above
  const std::uint64_t counted = reasons + observed;
  if (first > counted + between || counted > last) sum.offered_add_up = false;
  sum.refused += reasons;
  sum.observed += observed;
  sum.offered += last;
}

}  // namespace

Accounts look_at_accounts(const ChannelCore& channel) noexcept {
  Accounts sum;
  const std::uint64_t before = channel.dispatched.get();
  // A fence: what was published with it is read after it. This thread writes no word here.
  std::atomic_thread_fence(std::memory_order_acquire);  // a.refusals
  bool busy = false;
  for (std::uint32_t i = 0, n = channel.lane_count(); i < n; ++i) {
    const Lane& lane = channel.lane(i);
    look_at_refusals(lane, sum);
    // Consumed first, as in ChannelCore::counts().
    const std::uint64_t consumed = lane.consumed.load(std::memory_order_acquire);  // e.consumed
    // Relaxed: raised before `consumed`; what is newer makes the sum smaller, and no less true.
    const std::uint64_t discarded =
        std::min(lane.undelivered.discarded.load(std::memory_order_relaxed), consumed);
    const std::uint64_t evicted =
        std::min(lane.undelivered.evicted.load(std::memory_order_relaxed), consumed - discarded);
    const std::uint64_t word = lane.word.load(std::memory_order_acquire);  // e.published
    const std::uint64_t published = std::max(word >> 1, consumed);
    busy = busy || (word & 1) != 0;  // its event may be heard before it counts as published
    sum.offered += published;
    sum.accepted += published;
    sum.drained += consumed - discarded - evicted;
    sum.discarded += discarded;
    sum.evicted += evicted;
    sum.pending += published - consumed;
  }
  sum.accepted += sum.observed;
  sum.dispatched = channel.dispatched.get();
  sum.accepted_add_up =
      sum.drained <= sum.dispatched && (busy || before <= sum.drained + sum.pending);
  return sum;
}

}  // namespace ringmain::engine
