// Which subscribers does a batch go to, while they come and go? Those of a snapshot: an immutable
// row of pointers that is replaced whole. A worker shows which snapshot it reads, so that the
// others can be freed.
//
// Worker:   reading = current; l.reading; current unchanged? use it, else again
// Changer:  current = new one; the old one is retired; when enough are: asymmetric_fence_heavy();
// free those that no worker reads. A subscriber that was removed is freed with the last snapshot
// that names it. A worker that stays in a callback keeps that one snapshot from being freed, and
// none that came later. Model: tests/model/snapshot_hazard.pml.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "../system/atomics.hpp"
#include "subscriber.hpp"

namespace ringmain::engine {

struct Snapshot {
  std::vector<Subscriber*> subscribers;  // by priority, then in order of subscription
};

/// A worker's word that says which snapshot it reads. On a line of the worker's own.
using Reading = Atomic<const Snapshot*>;

/// Protects and returns the current snapshot; nullptr when there is none. Progress: lock-free.
inline const Snapshot* protect(const Atomic<const Snapshot*>& current, Reading& reading) noexcept {
  const Snapshot* seen = current.load(std::memory_order_acquire);  // n.snapshot
  for (;;) {
    reading.store(seen, std::memory_order_release);  // n.unread: the last one's use is over
    asymmetric_fence_light_or_full();                // l.reading
    const Snapshot* again = current.load(std::memory_order_acquire);  // n.snapshot
    if (again == seen) return seen;
    seen = again;
  }
}

/// The subscribers of one channel. All members but current() are called under the channel's lock.
class SubscriberList {
 public:
  SubscriberList() = default;
  SubscriberList(const SubscriberList&) = delete;
  SubscriberList& operator=(const SubscriberList&) = delete;
  ~SubscriberList();

  [[nodiscard]] const Atomic<const Snapshot*>& current() const noexcept { return current_; }
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool any_wants_time() const noexcept;
  /// There are subscribers, and all of them are patient.
  [[nodiscard]] bool all_patient() const noexcept;
  /// Takes over one reference to `subscriber`. Throws std::bad_alloc; then nothing has changed.
  void add(Subscriber* subscriber);
  /// False: it is not on the list. Its reference is dropped once no worker can see it. Throws
  /// std::bad_alloc.
  bool remove(Subscriber* subscriber);
  /// Frees the retired snapshots that no word in `readings` names. Cost: one
  /// asymmetric_fence_heavy(). Throws std::bad_alloc; then nothing is freed.
  void reclaim(const std::vector<const Reading*>& readings);
  [[nodiscard]] std::size_t retired() const noexcept { return retired_.size(); }
  /// Is enough retired that reclaim() is worth its cost?
  [[nodiscard]] bool due() const noexcept { return retired_.size() >= due_at_; }
  /// Is it the current snapshot, or one that is retired and not yet freed?
  [[nodiscard]] bool keeps(const Snapshot* snapshot) const noexcept;
  /// `f(subscriber)` for those on the list and those that a worker may still be calling.
  template <class F>
  void for_each(F f) const {
    if (const Snapshot* now = current_.load(std::memory_order_acquire)) {  // n.snapshot
      for (Subscriber* s : now->subscribers) f(*s);
    }
    for (const Retired& r : retired_) {
      if (r.removed != nullptr) f(*r.removed);
    }
  }

  /// One asymmetric_fence_heavy() for as many changes: on a virtual machine it takes as long as
  /// some eighty of them.
  enum : std::size_t { kDueAt = 128 };

 private:
  enum : std::size_t { kRoomMin = 8 };
  struct Retired {
    const Snapshot* snapshot;  // nullptr: freed
    Subscriber* removed;       // nullptr: none, or dropped already
  };
  void make_room();
  void replace(std::unique_ptr<Snapshot> next, Subscriber* removed) noexcept;

  Atomic<const Snapshot*> current_{nullptr};
  std::vector<Retired> retired_;
  std::size_t due_at_ = kDueAt;
};

}  // namespace ringmain::engine
