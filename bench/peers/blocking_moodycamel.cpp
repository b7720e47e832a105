// Peer: moodycamel's blocking queue with tokens, a worker that takes up to 256 at once.
#if __has_include(<concurrentqueue/moodycamel/blockingconcurrentqueue.h>)
#include <concurrentqueue/moodycamel/blockingconcurrentqueue.h>
#elif __has_include(<concurrentqueue/blockingconcurrentqueue.h>)
#include <concurrentqueue/blockingconcurrentqueue.h>
#elif __has_include(<moodycamel/blockingconcurrentqueue.h>)
#include <moodycamel/blockingconcurrentqueue.h>
#else
#include <blockingconcurrentqueue.h>
#endif
#include <memory>
#include <vector>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

struct BlockingMoodycamel {
  template <class E, class Hear>
  class System {
   public:
    enum : std::uint64_t { kPrime = 16384 };
    explicit System(Hear& hear)
        : call_(callback_of<E>(hear)), token_(queue_), worker_([this] { run(); }) {}
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      queue_.enqueue(make_event<E>(kEnd, 0));
      worker_.join();
    }
    template <class Make>
    bool push(Make&& make) {
      return queue_.enqueue(token_, make());
    }
    auto producer() {
      auto token = std::make_shared<moodycamel::ProducerToken>(queue_);
      return [this, token](auto make) { return queue_.enqueue(*token, make()); };
    }

   private:
    void run() {
      pin_worker();
      moodycamel::ConsumerToken token(queue_);
      std::vector<E> room(256);
      for (bool ended = false; !ended;) {
        const std::size_t n = queue_.wait_dequeue_bulk(token, room.begin(), room.size());
        for (std::size_t i = 0; i < n; ++i) {
          if (room[i].number == kEnd) {
            ended = true;
          } else {
            call_(room[i]);
          }
        }
      }
    }
    std::function<void(const E&)> call_;
    moodycamel::BlockingConcurrentQueue<E> queue_;
    moodycamel::ProducerToken token_;
    std::thread worker_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<BlockingMoodycamel>("blocking_moodycamel");

}  // namespace
}  // namespace ringmain::bench
