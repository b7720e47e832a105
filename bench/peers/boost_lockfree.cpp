// Peer: Boost.Lockfree's bounded queue. It has no way to sleep, so its worker looks and yields.
#include <boost/lockfree/queue.hpp>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

struct BoostLockfree {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear)
        : call_(callback_of<E>(hear)),
          worker_([this](const std::stop_token& stop) { run(stop); }) {}
    template <class Make>
    bool push(Make&& make) {
      return queue_.bounded_push(make());
    }
    auto producer() { return shared_producer(*this); }

   private:
    void run(const std::stop_token& stop) {
      pin_worker();
      E event;
      while (!stop.stop_requested()) {
        if (queue_.pop(event)) {
          call_(event);
        } else {
          std::this_thread::yield();
        }
      }
    }
    std::function<void(const E&)> call_;
    boost::lockfree::queue<E> queue_{65534};
    std::jthread worker_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<BoostLockfree>("boost_lockfree", false);

}  // namespace
}  // namespace ringmain::bench
