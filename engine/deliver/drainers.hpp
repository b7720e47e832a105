// Which threads call subscribers? The watchdog looks at them, and a snapshot that one of them reads
// is not freed.
#pragma once
#include <algorithm>
#include <mutex>
#include <vector>

#include "drain.hpp"

namespace ringmain::engine {

/// Threads: any.
class Drainers {
 public:
  /// Sets room aside, so that the first `count` calls of watch() cannot fail. Throws
  /// std::bad_alloc.
  explicit Drainers(std::size_t count) { drainers_.reserve(count); }
  Drainers(const Drainers&) = delete;
  Drainers& operator=(const Drainers&) = delete;

  /// The drainer is watched from here to unwatch(). Throws std::bad_alloc.
  void watch(Drainer& drainer) {
    const std::lock_guard lock(mutex_);
    drainers_.push_back(&drainer);
  }
  void unwatch(Drainer& drainer) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(drainers_, &drainer);
  }
  /// Calls `f` under the lock, so no drainer ends meanwhile.
  template <class F>
  void for_each(F f) const {
    const std::lock_guard lock(mutex_);
    for (Drainer* d : drainers_) f(*d);
  }
  /// Does one of them show a call of it? What a call that is over has written is seen.
  [[nodiscard]] bool calling(const Subscriber& subscriber) const noexcept {
    const std::lock_guard lock(mutex_);
    return std::any_of(drainers_.begin(), drainers_.end(),
                       [&subscriber](const Drainer* d) { return d->shows(subscriber); });
  }
  /// Frees the snapshots of `list` that no drainer and none of `others` reads. Throws
  /// std::bad_alloc.
  void reclaim(SubscriberList& list, std::vector<const Reading*> others) const {
    const std::lock_guard lock(mutex_);  // no drainer may end while it is looked at
    for (const Drainer* d : drainers_) others.push_back(&d->reading);  // some of them twice
    list.reclaim(others);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Drainer*> drainers_;
};

}  // namespace ringmain::engine
