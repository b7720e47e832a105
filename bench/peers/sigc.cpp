// Peer: sigc++. It knows nothing of threads, so only one uses it.
#include <sigc++/sigc++.h>
#include <utility>

#include "bench/peers/sync_peer.hpp"

namespace ringmain::bench {
namespace {

class Sigc {
 public:
  class Subscribed {
   public:
    explicit Subscribed(sigc::connection connection) : connection_(std::move(connection)) {}
    Subscribed(Subscribed&& other) noexcept
        : connection_(std::exchange(other.connection_, sigc::connection())) {}
    Subscribed& operator=(Subscribed&&) = delete;
    ~Subscribed() { connection_.disconnect(); }

   private:
    sigc::connection connection_;
  };
  template <class F>
  Subscribed subscribe(F call) {
    return Subscribed(signal_.connect(std::move(call)));
  }
  void publish(const Payload& event) { signal_.emit(event); }

 private:
  sigc::signal<void(const Payload&)> signal_;
};

[[maybe_unused]] const bool kAdded = add_sync_peer<Sigc>("sigc++", false);

}  // namespace
}  // namespace ringmain::bench
