// Peer: atomic_queue's AtomicQueue2, a bounded ring whose slots have a state beside them; for one
// writer and one reader, and for many of both.
#include <atomic_queue/atomic_queue.h>
#include <memory>

#include "bench/peers/bare_queue.hpp"

namespace ringmain::bench {
namespace {

template <class E, bool kSingle>
class AtomicQueue {
 public:
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    return queue_->try_push(make());
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    std::size_t n = 0;
    E event;
    for (; n < kRun && queue_->try_pop(event); ++n) hear(event);
    return n;
  }

 private:
  using Queue = atomic_queue::AtomicQueue2<E, kInFlight, true, true, false, kSingle>;
  std::unique_ptr<Queue> queue_{new Queue};
};
template <class E>
using Single = AtomicQueue<E, true>;
template <class E>
using Many = AtomicQueue<E, false>;

[[maybe_unused]] const bool kAdded =
    add_bare_queue<Single>("atomic_queue_spsc") && add_shared_bare_queue<Many>("atomic_queue");

}  // namespace
}  // namespace ringmain::bench
