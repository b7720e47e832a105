#include "engine/subscribe/shown.hpp"

namespace ringmain::engine {

bool close_deferred(Subscriber& subscriber) noexcept {
  if (subscriber.judge == nullptr || subscriber.shown_by == nullptr)
    return subscriber.gate.close_deferred(&subscriber);
  subscriber.gate.close_shown_deferred();
  return subscriber.gate.claim_unshown(*subscriber.shown_by, subscriber);
}

Gate::Waited wait_uncalled(Subscriber& subscriber, std::int64_t limit_ns) noexcept {
  // A realtime publisher that leaves a call makes no system call, so look now and then.
  enum : std::int64_t { kLookNs = 1'000'000 };
  if (subscriber.judge == nullptr || subscriber.shown_by == nullptr)
    return subscriber.gate.wait(limit_ns, &subscriber);
  return subscriber.gate.wait_unshown(*subscriber.shown_by, subscriber, limit_ns, kLookNs);
}

}  // namespace ringmain::engine
