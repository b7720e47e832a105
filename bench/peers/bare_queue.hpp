// A bare bounded queue as a peer: what takes from it spins, and calls back from the loop.
//
// It goes through the same loops as the raw queues of bench/reference.hpp. It keeps no account of
// who lost what, no subscriber can leave it, it cannot sleep and cannot be stopped: the fastest
// that somebody gets who gives these up.
#pragma once
#include <thread>

#include "bench/peers/async_peer.hpp"
#include "bench/reference.hpp"

namespace ringmain::bench {

/// Any thread may push; what takes yields where it finds nothing, as it shares a core with them.
template <template <class> class Queue>
struct SharedBare {
  template <class E, class Hear>
  class System {
   public:
    explicit System(Hear& hear)
        : worker_([this, &hear](const std::stop_token& stop) {
            pin_worker();
            while (!stop.stop_requested()) {
              if (queue_.take(hear) == 0) std::this_thread::yield();
            }
          }) {}
    template <class Make>
    bool push(Make&& make) {
      return queue_.push(make);
    }
    auto producer() { return shared_producer(*this); }

   private:
    Queue<E> queue_;
    std::jthread worker_;
  };
};

/// `Queue` has push(make) and take(hear), as those of bench/reference.hpp.
template <template <class> class Queue>
bool add_paced(const char* name) {
  for (const std::int64_t rate : {100'000, 1'000'000}) {
    add("publish_paced", name, {{"per_second", rate}},
        [rate](Repetition& r) { publish_paced<Raw<Queue, 0>>(r, rate); });
    add("latency", name, {{"per_second", rate}},
        [rate](Repetition& r) { latency<Raw<Queue, 0>>(r, rate); });
  }
  return true;
}
template <template <class> class Queue>
bool add_bare_queue(const char* name) {
  add("publish_alone", name, {{"payload_bytes", 32}}, publish_alone<Raw<Queue, 300>, Payload>);
  add("publish_live", name, {}, publish_live<Raw<Queue, 300>, Payload>);
  add("throughput", name, {{"payload_bytes", 32}}, throughput<Raw<Queue, 300>, Payload>);
  return add_paced<Queue>(name);
}
template <template <class> class Queue>
bool add_shared_bare_queue(const char* name) {
  return add_bare_queue<Queue>(name) && add_publishers<SharedBare<Queue>>(name, {1, 4, 16});
}

}  // namespace ringmain::bench
