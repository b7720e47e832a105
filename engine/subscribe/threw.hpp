// What becomes of a subscriber whose callback threw? It is counted, and closed or barred if it
// asked for that; the housekeeper is told.
#pragma once
#include "subscriber.hpp"

namespace ringmain::engine {

/// Called by the thunk in its catch: counts the throw and, as the subscriber's options say, closes
/// or bars its gate. Aborts where the thread is being ended (pthread_exit): a callback must not end
/// a worker.
void subscriber_threw(Subscriber& subscriber) noexcept;

/// The same for an inline subscriber. Returns what its throwing means for the event.
[[nodiscard]] Judgement inline_threw(Subscriber& subscriber) noexcept;

}  // namespace ringmain::engine
