// Peer: Rigtorp's two bounded queues, SPSCQueue with its indices apart and MPMCQueue with a turn in
// each slot, which has a line of its own.
#include <rigtorp/MPMCQueue.h>
#include <rigtorp/SPSCQueue.h>

#include "bench/peers/bare_queue.hpp"

namespace ringmain::bench {
namespace {

template <class E, std::uint64_t kRoom>
class Many {
 public:
  template <class Make>
  [[gnu::always_inline]] bool push(Make&& make) {
    return queue_.try_emplace(make());
  }
  template <class Hear>
  std::size_t take(Hear& hear) {
    std::size_t n = 0;
    E event;
    for (; n < kRun && queue_.try_pop(event); ++n) hear(event);
    return n;
  }

 private:
  rigtorp::MPMCQueue<E> queue_{kRoom};
};
template <class E>
using Whole = Many<E, kInFlight>;
/// 64 KiB, which stay in the cache: the quickest that it gets where nothing waits.
template <class E>
using Small = Many<E, 1024>;

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

[[maybe_unused]] const bool kAdded = add_bare_queue<Single>("rigtorp_spsc") &&
                                     add_shared_bare_queue<Whole>("rigtorp_mpmc") &&
                                     add_paced<Small>("rigtorp_mpmc_1024");

}  // namespace
}  // namespace ringmain::bench
