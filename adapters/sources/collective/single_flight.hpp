// How are calls at one time for one thing done once? The first does it, and those who come
// meanwhile wait for it and get what it got.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <unistd.h>
#include <utility>

namespace ringmain::collective::detail {

/// Threads: any; not inside of what it runs. In a child that was forked while it ran, nothing runs.
template <class Key, class Result>
class SingleFlight {
 public:
  /// What `make()` returns, or what it returned to who runs it for an equal key. What it throws
  /// goes to its own caller; those who waited then run their own.
  template <class Make>
  Result run(const Key& key, const Make& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (process_ != ::getpid()) begin_anew();
      if (!runs_ && readers_ == 0) break;
      if (!runs_ || !(key_ == key)) {
        changed_.wait(lock);
        continue;
      }
      ++readers_;
      changed_.wait(lock, [this] { return !runs_; });
      const std::optional<Result> made = made_;
      if (--readers_ == 0) changed_.notify_all();
      if (made) return *made;
    }
    runs_ = true;
    key_ = key;
    made_.reset();
    lock.unlock();
    const Ended ended{*this, lock};
    Result made = make();
    lock.lock();
    made_ = made;
    return made;
  }
  /// How many wait for what another one runs.
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return readers_;
  }

 private:
  struct Ended {
    SingleFlight& flight;
    std::unique_lock<std::mutex>& lock;
    ~Ended() {
      if (!lock.owns_lock()) lock.lock();
      flight.runs_ = false;
      flight.changed_.notify_all();
    }
  };
  void begin_anew() noexcept {
    process_ = ::getpid();
    runs_ = false;
    readers_ = 0;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  pid_t process_ = ::getpid();
  bool runs_ = false;
  std::size_t readers_ = 0;  // who wait for it, and who have not read it yet
  Key key_{};
  std::optional<Result> made_;
};

}  // namespace ringmain::collective::detail
