// What became of the events that one subscription was offered? Its figures, its row of Stats, and
// whether they balance (I3).
#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bus/subscription_core.hpp"

namespace ringmain::detail {

SubscriberStats SubscriptionCore::stats() const noexcept {
  SubscriberStats s;
  // Before the figures of its subscriber: what comes out of the mailbox after its end meets
  // nobody.
  const std::uint64_t came_out = mailbox_ ? mailbox_->core().counts().delivered : 0;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!forked()) lock.lock();  // else it may never be free again
  if (consumer_ != nullptr) {
    s.delivered = consumer_->delivered.get();
    s.threw = consumer_->threw.get();
    s.filtered = consumer_->filtered.get();
    s.skipped = consumer_->skipped.get();
    s.offered = consumer_->offered.get();
    if (came_out > s.offered) s.skipped += came_out - s.offered;
    s.slow = consumer_->slow.get();
    s.longest_ns = static_cast<std::int64_t>(consumer_->longest_ns.get());
  }
  if (!parts_.empty()) s.delivered = 0;  // sorted: what became of them the parts know
  for (const auto& p : parts_) {
    const SubscriberStats part = p->stats();
    s.delivered += part.delivered;
    s.threw += part.threw;
    s.filtered += part.filtered;
    s.skipped += part.skipped;
    s.dropped += part.dropped;
    s.pending += part.pending;
    s.slow += part.slow;
    s.longest_ns = std::max(s.longest_ns, part.longest_ns);
  }
  if (!mailbox_) return s;
  const engine::ChannelCounts box = mailbox_->core().counts();
  s.dropped = box.full + box.no_memory + box.closed + box.evicted + box.discarded;
  s.pending = box.pending;
  s.coalesced = box.coalesced;
  s.offered = box.accepted + box.full + box.no_memory + box.closed + box.coalesced;
  if (consumer_ == nullptr) s.delivered = box.delivered;
  if (const engine::LaneOrder* m = mailbox_->core().lane_order()) {
    s.order_gaps = m->gaps.get();
    s.order_late = m->late.get();
  }
  for (const Listed& l : listed_) {
    if (l.subscriber == consumer_) continue;
    s.threw += l.subscriber->threw.get();  // in a key function: it never came to the mailbox
    s.offered += l.subscriber->threw.get();
  }
  return s;
}

bool SubscriptionCore::quarantined() const noexcept {
  return (consumer_ != nullptr && consumer_->gate.barred()) ||
         std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->quarantined(); });
}

/// What has been published and consumed of all that it hears. None: a run of it may be going on, or
/// a publisher is busy, whose event may be heard before it counts as published.
std::optional<std::uint64_t> SubscriptionCore::at_rest() const {
  std::uint64_t so_far = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Listed& l : listed_) {
      const std::uint32_t lanes = l.channel ? l.channel->lane_count() : 0;
      for (std::uint32_t i = 0; i < lanes; ++i) {
        const engine::Lane::Moment now = l.channel->lane(i).moment();
        if (now.busy || now.published != now.consumed) return {};
        so_far += now.published;
      }
    }
  }
  for (const auto& p : parts_) {
    const auto part = p->at_rest();
    if (!part) return {};
    so_far += *part;
  }
  return so_far;
}

bool SubscriptionCore::called_by_drainers() const {
  const std::lock_guard lock(mutex_);
  const bool of_a_channel = listed_.empty() || listed_.front().channel;
  return consumer_ == nullptr || (consumer_->judge == nullptr && of_a_channel);
}

SubscriptionStats SubscriptionCore::row() const {
  SubscriptionStats row;
  row.figures = stats();
  const std::lock_guard lock(mutex_);
  row.name = options_.name;
  row.served = options_.served;
  row.priority = options_.priority;
  row.called_inline = consumer_ != nullptr && consumer_->judge != nullptr;
  row.pulled = consumer_ == nullptr;
  row.attached = !closed_;
  row.quarantined = quarantined();
  if (mailbox_) {
    row.channel = mailbox_->core().options().name;
  } else if (!listed_.empty() && listed_.front().channel) {
    row.channel = listed_.front().channel->options().name;
  }
  return row;
}

/// It can be checked only where nothing of it was under way from before its counts were read until
/// after that. Beside publishers that go on there may be no such moment: then nothing is claimed.
std::string SubscriptionCore::unbalanced() const {
  enum { kLooks = 100 };
  SubscriberStats s;
  for (int look = 0;; ++look) {
    if (look == kLooks || closed_) return {};  // closed: what it is not told any more is nobody's
    const auto before = at_rest();
    if (!before) return {};
    s = stats();
    if (at_rest() == before) break;
    std::this_thread::yield();
  }
  const std::uint64_t sum =
      s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending;
  // Calls by publishing threads and the housekeeper are not seen above: offered, and then settled.
  const bool in_call = !called_by_drainers() && sum < s.offered;
  if (closed_ || sum == s.offered || in_call) return {};
  return "subscription '" + options_.name + "' does not balance (I3): offered " +
         std::to_string(s.offered) + ", delivered " + std::to_string(s.delivered) + ", threw " +
         std::to_string(s.threw) + ", filtered " + std::to_string(s.filtered) + ", skipped " +
         std::to_string(s.skipped) + ", dropped " + std::to_string(s.dropped) + ", coalesced " +
         std::to_string(s.coalesced) + ", pending " + std::to_string(s.pending);
}

}  // namespace ringmain::detail
