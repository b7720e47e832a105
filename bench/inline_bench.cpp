// Question: what does a publish cost that calls its subscribers itself, in the publishing thread?
#include <utility>
#include <vector>

#include "bench/on_bus.hpp"
#include "bench/peers/sync_peer.hpp"

namespace ringmain::bench {
namespace {

/// The floor: pointers to functions in a vector, one thread, no way to come or go meanwhile.
class BareLoop {
 public:
  template <class F>
  int subscribe(F call) {
    rows_.push_back(
        {[](void* captures, const Payload& event) { (*static_cast<F*>(captures))(event); },
         new F(call)});
    return 0;
  }
  void publish(const Payload& event) {
    for (const Row& row : rows_) row.call(row.captures, event);
  }

 private:
  struct Row {
    void (*call)(void*, const Payload&);
    void* captures;  // lives as long as the process
  };
  std::vector<Row> rows_;
};

/// ringmain's own, with quiescent removal: on a publisher, as a source would have one.
class OnBusInline {
 public:
  OnBusInline() : channel_(bus_.channel<Payload>("bench.inline")) {
    publisher_ = channel_.publisher();
  }
  template <class F>
  Subscription subscribe(F see) {
    return channel_.subscribe_inline(std::move(see));
  }
  void publish(const Payload& event) { (void)publisher_.publish(event); }

 private:
  Bus bus_{bus_options(Worker::standard)};
  Channel<Payload>& channel_;
  Publisher<Payload> publisher_;
};

[[maybe_unused]] const bool kAdded[] = {add_sync_peer<BareLoop>("bare_loop", false),
                                        add_sync_peer<OnBusInline>("bus_inline")};

}  // namespace
}  // namespace ringmain::bench
