// What became of the events that one subscription was offered? Its figures, its row of Stats, and
// whether they balance (I3).
#include <algorithm>
#include <mutex>
#include <string>
#include <thread>

#include "ringmain/bus/attachment.hpp"

namespace ringmain::detail {

SubscriberStats Attachment::stats() const noexcept {
  SubscriberStats s;
  // Before the figures of its hearer: what comes out of the mailbox behind his end meets nobody.
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
  if (const engine::Merge* m = mailbox_->core().merge()) {
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

bool Attachment::quarantined() const noexcept {
  return (consumer_ != nullptr && consumer_->gate.barred()) ||
         std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->quarantined(); });
}

bool Attachment::called_inline() const {
  const std::lock_guard lock(mutex_);
  return consumer_ != nullptr && consumer_->judge != nullptr;
}

/// False: a run of what it hears may be going on.
bool Attachment::at_rest() const {
  {
    const std::lock_guard lock(mutex_);
    for (const Listed& l : listed_) {
      if (l.channel && l.channel->depth() != 0) return false;
    }
  }
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->at_rest(); });
}

SubscriptionStats Attachment::row() const {
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

std::string Attachment::unbalanced() const {
  enum { kLooks = 100 };  // a run that ends between two counts
  SubscriberStats s;
  for (int look = 0; look < kLooks; ++look) {
    if (closed_) return {};  // what it has not been told any more is nobody's account
    if (!at_rest()) return {};
    s = stats();
    const std::uint64_t sum =
        s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending;
    if (sum == s.offered || (sum < s.offered && called_inline())) return {};
    std::this_thread::yield();
  }
  return "subscription '" + options_.name + "' does not balance (I3): offered " +
         std::to_string(s.offered) + ", delivered " + std::to_string(s.delivered) + ", threw " +
         std::to_string(s.threw) + ", filtered " + std::to_string(s.filtered) + ", skipped " +
         std::to_string(s.skipped) + ", dropped " + std::to_string(s.dropped) + ", coalesced " +
         std::to_string(s.coalesced) + ", pending " + std::to_string(s.pending);
}

}  // namespace ringmain::detail
