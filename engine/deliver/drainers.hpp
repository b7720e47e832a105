// Which threads call subscribers? Those are watched, and what they show as read is not freed.
#pragma once
#include <mutex>
#include <vector>

#include "drain.hpp"

namespace ringmain::engine {

/// Threads: any.
class Drainers {
 public:
  /// Room for so many, so that watch() of the first `count` never fails. Throws std::bad_alloc.
  explicit Drainers(std::size_t count) { drainers_.reserve(count); }
  Drainers(const Drainers&) = delete;
  Drainers& operator=(const Drainers&) = delete;

  /// A thread that calls subscribers is watched from here to unwatch(). Throws std::bad_alloc.
  void watch(Drainer& drainer) {
    const std::lock_guard lock(mutex_);
    drainers_.push_back(&drainer);
  }
  void unwatch(Drainer& drainer) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(drainers_, &drainer);
  }
  /// Under the lock: none of them ends meanwhile.
  template <class F>
  void for_each(F f) const {
    const std::lock_guard lock(mutex_);
    for (Drainer* d : drainers_) f(*d);
  }
  /// Frees the snapshots of `list` that none of them reads, nor any of `others`. Throws
  /// std::bad_alloc.
  void reclaim(SubscriberList& list, std::vector<const Reading*> others) const {
    const std::lock_guard lock(mutex_);  // a drainer may end: not while it is looked at
    for (const Drainer* d : drainers_) others.push_back(&d->reading);  // some of them twice
    list.reclaim(others);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Drainer*> drainers_;
};

}  // namespace ringmain::engine
