// How are calls at one time for one thing done once? The first does it, and those who come
// meanwhile wait for it and get what it got.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <unistd.h>
#include <utility>

#include "engine/system/fork.hpp"

namespace ringmain::collective::detail {

/// Threads: any; not inside of what it runs. In a child that was forked while it ran, nothing runs.
template <class Key, class Result>
class SingleFlight {
 public:
  /// What `make()` returns, or what it returned to who runs it for an equal key. What it throws
  /// goes to its own caller; those who waited then run their own. Allocates only for who waits.
  template <class Make>
  Result run(Key key, const Make& make) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (process_ != ::getpid()) begin_anew();
      if (!runs_ && readers_ == 0) break;
      if (!runs_ || !(key_ == key)) {
        wait(lock);
        continue;
      }
      ++readers_;
      while (runs_) wait(lock);
      const Reader reads{*this};
      if (made_) return *made_;
    }
    runs_ = true;
    key_ = std::move(key);
    made_.reset();
    lock.unlock();
    const Ended ended{*this, lock};
    Result made = make();
    lock.lock();
    if (readers_ != 0) keep(made);
    return made;
  }
  /// How many wait for what another one runs.
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return readers_;
  }

 private:
  using Lock = std::unique_lock<engine::FreshMutex>;
  struct Ended {
    SingleFlight& flight;
    Lock& lock;
    ~Ended() {
      if (!lock.owns_lock()) lock.lock();
      flight.runs_ = false;
      flight.notify();
    }
  };
  struct Reader {
    SingleFlight& flight;
    ~Reader() {
      if (--flight.readers_ == 0) flight.notify();
    }
  };
  /// Who waits runs its own, where there is no memory for it.
  void keep(const Result& made) noexcept {
    try {
      made_ = made;
    } catch (const std::bad_alloc&) {
      made_.reset();
    }
  }
  void begin_anew() noexcept {
    process_ = ::getpid();
    runs_ = false;
    readers_ = 0;
  }
  void wait(Lock& lock) noexcept {
    const std::uint32_t seen = changes_.load();
    lock.unlock();
    changes_.wait(seen);
    lock.lock();
  }
  void notify() noexcept {
    changes_.fetch_add(1);
    changes_.notify_all();
  }

  mutable engine::FreshMutex mutex_{engine::kForkFlight};
  std::atomic<std::uint32_t> changes_{0};  // under the mutex: no condition variable outlives a fork
  pid_t process_ = ::getpid();
  bool runs_ = false;
  std::size_t readers_ = 0;  // who wait for it, and who have not read it yet
  Key key_{};
  std::optional<Result> made_;
};

}  // namespace ringmain::collective::detail
