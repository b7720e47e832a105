// Peer: Rigtorp's two bounded queues, SPSCQueue with its indices apart and MPMCQueue with a turn in
// each slot, which has a line of its own.
#include <rigtorp/MPMCQueue.h>
#include <rigtorp/SPSCQueue.h>

#include "bench/peers/bare_queue.hpp"

namespace ringmain::bench {
namespace {

template <class E>
class Many {
 public:
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    return queue_.try_emplace(make());
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    std::size_t n = 0;
    E event;  // by try_consume(), without the copy, it takes twice as long to the callback
    for (; n < kRun && queue_.try_pop(event); ++n) hear(event);
    return n;
  }

 private:
  rigtorp::MPMCQueue<E> queue_{kInFlight};
};

template <class E>
class Single {
 public:
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    return queue_.try_emplace(make());
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    std::size_t n = 0;
    for (; n < kRun; ++n) {
      E* event = queue_.front();
      if (event == nullptr) break;
      hear(*event);
      queue_.pop();
    }
    return n;
  }

 private:
  rigtorp::SPSCQueue<E> queue_{kInFlight};
};

[[maybe_unused]] const bool kAdded =
    add_bare_queue<Single>("rigtorp_spsc") && add_shared_bare_queue<Many>("rigtorp_mpmc");

}  // namespace
}  // namespace ringmain::bench
