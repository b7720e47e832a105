// Peer: a deque with a mutex and a condition variable, and a worker that takes all that is there.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

struct MutexCondvar {
  template <class E, class Hear>
  class System {
   public:
    enum : std::uint64_t { kPrime = 8192 };
    explicit System(Hear& hear) : call_(callback_of<E>(hear)), worker_([this] { run(); }) {}
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      {
        const std::lock_guard lock(mutex_);
        ended_ = true;
      }
      more_.notify_one();
      worker_.join();
    }
    template <class Make>
    bool push(Make&& make) {
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(make());
      }
      more_.notify_one();
      return true;
    }
    auto producer() { return shared_producer(*this); }

   private:
    void run() {
      pin_worker();
      std::deque<E> mine;
      for (;;) {
        {
          std::unique_lock lock(mutex_);
          more_.wait(lock, [this] { return ended_ || !queue_.empty(); });
          if (queue_.empty()) return;
          mine.swap(queue_);
        }
        for (const E& event : mine) call_(event);
        mine.clear();
      }
    }
    std::function<void(const E&)> call_;
    std::mutex mutex_;
    std::condition_variable more_;
    std::deque<E> queue_;
    bool ended_ = false;
    std::thread worker_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<MutexCondvar>("mutex_condvar");

}  // namespace
}  // namespace ringmain::bench
