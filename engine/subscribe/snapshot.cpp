#include "engine/subscribe/snapshot.hpp"

#include <algorithm>
#include <utility>

namespace ringmain::engine {

SubscriberList::~SubscriberList() {
  if (const Snapshot* last = current_.load(std::memory_order_acquire)) {  // n.snapshot
    for (Subscriber* s : last->subscribers) drop_subscriber(s);
    delete last;
  }
  for (const Retired& r : retired_) {
    delete r.snapshot;
    if (r.removed != nullptr) drop_subscriber(r.removed);
  }
}

std::size_t SubscriberList::size() const noexcept {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // n.snapshot
  return now == nullptr ? 0 : now->subscribers.size();
}

bool SubscriberList::any_wants_time() const noexcept {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // n.snapshot
  return now != nullptr && std::any_of(now->subscribers.begin(), now->subscribers.end(),
                                       [](const Subscriber* s) { return s->wants_time; });
}

bool SubscriberList::all_patient() const noexcept {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // n.snapshot
  return now != nullptr && !now->subscribers.empty() &&
         std::all_of(now->subscribers.begin(), now->subscribers.end(),
                     [](const Subscriber* s) { return s->patient; });
}

void SubscriberList::add(Subscriber* subscriber) {
  auto next = std::make_unique<Snapshot>();
  const Snapshot* now = current_.load(std::memory_order_acquire);  // n.snapshot
  next->subscribers.reserve((now == nullptr ? 0 : now->subscribers.size()) + 1);
  if (now != nullptr) next->subscribers = now->subscribers;
  const auto after = std::upper_bound(
      next->subscribers.begin(), next->subscribers.end(), subscriber,
      [](const Subscriber* a, const Subscriber* b) { return a->priority > b->priority; });
  next->subscribers.insert(after, subscriber);
  make_room();
  replace(std::move(next), nullptr);
}

bool SubscriberList::remove(Subscriber* subscriber) {
  const Snapshot* now = current_.load(std::memory_order_acquire);  // n.snapshot
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
  make_room();
  replace(std::move(next), subscriber);
  return true;
}

void SubscriberList::make_room() {
  if (retired_.size() == retired_.capacity())
    retired_.reserve(std::max<std::size_t>(kRoomMin, 2 * retired_.size()));
}

void SubscriberList::replace(std::unique_ptr<Snapshot> next, Subscriber* removed) noexcept {
  const Snapshot* old =
      current_.load(std::memory_order_relaxed);               // relaxed: written under our lock
  current_.store(next.release(), std::memory_order_release);  // n.snapshot
  if (old != nullptr) retired_.push_back({old, removed});     // reserved by the caller
}

void SubscriberList::reclaim(const std::vector<const Reading*>& readings) {
  asymmetric_fence_heavy();  // l.reading
  std::vector<const Snapshot*> read;
  read.reserve(readings.size());
  for (const Reading* r : readings) {
    const Snapshot* one = r->load(std::memory_order_acquire);               // n.unread
    if (one != nullptr && one != current_.load(std::memory_order_relaxed))  // relaxed: our lock
      read.push_back(one);
  }
  const auto is_read = [&read](const Snapshot* s) {
    return std::find(read.begin(), read.end(), s) != read.end();
  };
  // A word may name a snapshot that was freed before its thread looked again, so only snapshots
  // that are kept here are dereferenced.
  std::vector<const Snapshot*> held;
  held.reserve(read.size());
  for (const Retired& r : retired_) {
    if (r.snapshot != nullptr && is_read(r.snapshot)) held.push_back(r.snapshot);
  }
  const auto is_named = [&held](const Subscriber* s) {
    return std::any_of(held.begin(), held.end(), [s](const Snapshot* h) {
      return std::find(h->subscribers.begin(), h->subscribers.end(), s) != h->subscribers.end();
    });
  };
  auto kept = retired_.begin();
  for (Retired& r : retired_) {
    if (r.snapshot != nullptr && !is_read(r.snapshot)) delete std::exchange(r.snapshot, nullptr);
    if (r.removed != nullptr && !is_named(r.removed))
      drop_subscriber(std::exchange(r.removed, nullptr));
    if (r.snapshot != nullptr || r.removed != nullptr) *kept++ = r;
  }
  retired_.erase(kept, retired_.end());
  due_at_ = std::max<std::size_t>(kDueAt, 2 * retired_.size());
}

bool SubscriberList::keeps(const Snapshot* snapshot) const noexcept {
  return snapshot == current_.load(std::memory_order_relaxed) ||  // relaxed: under our lock
         std::any_of(retired_.begin(), retired_.end(),
                     [snapshot](const Retired& r) { return r.snapshot == snapshot; });
}

}  // namespace ringmain::engine
