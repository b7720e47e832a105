#include "ringmain/engine/snapshot.hpp"

#include <algorithm>

namespace ringmain::engine {

SubscriberList::~SubscriberList() {
  if (const Snapshot* last = current_.load(std::memory_order_acquire)) {  // N1
    for (Subscriber* s : last->subscribers) drop_subscriber(s);
    delete last;
  }
  for (const Retired& r : retired_) {
    delete r.snapshot;
    if (r.removed != nullptr) drop_subscriber(r.removed);
  }
}

std::size_t SubscriberList::size() const noexcept {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // N1
  return now == nullptr ? 0 : now->subscribers.size();
}

bool SubscriberList::any_wants_time() const noexcept {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // N1
  return now != nullptr && std::any_of(now->subscribers.begin(), now->subscribers.end(),
                                       [](const Subscriber* s) { return s->wants_time; });
}

void SubscriberList::add(Subscriber* subscriber) {
  auto next = std::make_unique<Snapshot>();
  const Snapshot* now = current_.load(std::memory_order_acquire);  // N1
  next->subscribers.reserve((now == nullptr ? 0 : now->subscribers.size()) + 1);
  if (now != nullptr) next->subscribers = now->subscribers;
  const auto after = std::upper_bound(
      next->subscribers.begin(), next->subscribers.end(), subscriber,
      [](const Subscriber* a, const Subscriber* b) { return a->priority > b->priority; });
  next->subscribers.insert(after, subscriber);
  retired_.reserve(retired_.size() + 1);
  replace(std::move(next), nullptr);
}

bool SubscriberList::remove(Subscriber* subscriber) {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // N1
  if (now == nullptr) return false;
  const auto at = std::find(now->subscribers.begin(), now->subscribers.end(), subscriber);
  if (at == now->subscribers.end()) return false;
  std::unique_ptr<Snapshot> next;
  if (now->subscribers.size() > 1) {
    next = std::make_unique<Snapshot>();
    next->subscribers.reserve(now->subscribers.size() - 1);
    for (Subscriber* s : now->subscribers) {
      if (s != subscriber) next->subscribers.push_back(s);
    }
  }
  retired_.reserve(retired_.size() + 1);
  replace(std::move(next), subscriber);
  return true;
}

void SubscriberList::replace(std::unique_ptr<Snapshot> next, Subscriber* removed) noexcept {
  const Snapshot* old =
      current_.load(std::memory_order_relaxed);               // relaxed: written under our lock
  current_.store(next.release(), std::memory_order_release);  // N1
  if (old != nullptr) retired_.push_back({old, removed});     // reserved by the caller
}

void SubscriberList::reclaim(const std::vector<const Reading*>& readings) {
  heavy();  // L4
  std::vector<const Snapshot*> seen;
  seen.reserve(readings.size());
  for (const Reading* r : readings) seen.push_back(r->load(std::memory_order_acquire));  // N2
  // A removed subscriber is named by its own snapshot and older ones: free the oldest run nobody
  // reads.
  std::size_t free_to = 0;
  while (free_to < retired_.size() &&
         std::find(seen.begin(), seen.end(), retired_[free_to].snapshot) == seen.end()) {
    ++free_to;
  }
  for (std::size_t i = 0; i < free_to; ++i) {
    delete retired_[i].snapshot;
    if (retired_[i].removed != nullptr) drop_subscriber(retired_[i].removed);
  }
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(free_to));
}

}  // namespace ringmain::engine
