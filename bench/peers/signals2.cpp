// Peer: Boost.Signals2.
#include <boost/signals2.hpp>

#include "bench/peers/sync_peer.hpp"

namespace ringmain::bench {
namespace {

class Signals2 {
 public:
  template <class F>
  boost::signals2::scoped_connection subscribe(F call) {
    return signal_.connect(std::move(call));
  }
  void publish(const Payload& event) { signal_(event); }

 private:
  boost::signals2::signal<void(const Payload&)> signal_;
};

[[maybe_unused]] const bool kAdded = add_sync_peer<Signals2>("boost_signals2");

}  // namespace
}  // namespace ringmain::bench
