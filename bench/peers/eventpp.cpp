// Peer: eventpp's EventQueue with a worker that waits and processes what is there.
#include <eventpp/eventqueue.h>

#include "bench/peers/async_peer.hpp"

namespace ringmain::bench {
namespace {

struct Eventpp {
  template <class E, class Hear>
  class System {
   public:
    enum : std::uint64_t { kPrime = 8192 };
    explicit System(Hear& hear) {
      queue_.appendListener(0, callback_of<E>(hear));
      queue_.appendListener(1, [this](const E&) { ended_ = true; });
      worker_ = std::thread([this] {
        pin_worker();
        while (!ended_) {
          queue_.wait();
          queue_.process();
        }
      });
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    ~System() {
      queue_.enqueue(1, make_event<E>(kEnd, 0));
      worker_.join();
    }
    template <class Make>
    bool push(Make&& make) {
      queue_.enqueue(0, make());
      return true;
    }
    auto producer() { return shared_producer(*this); }

   private:
    eventpp::EventQueue<int, void(const E&)> queue_;
    bool ended_ = false;  // the worker's own
    std::thread worker_;
  };
};

[[maybe_unused]] const bool kAdded = add_async_peer<Eventpp>("eventpp");

}  // namespace
}  // namespace ringmain::bench
