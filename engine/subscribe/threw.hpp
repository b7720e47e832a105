// What becomes of a subscriber whose callback threw? It is counted, and closed or barred if it
// asked for that; the housekeeper is told.
#pragma once
#include "subscriber.hpp"

namespace ringmain::engine {

/// Counts and, if wished, closes or bars: called by the thunk in its catch. Does not return where
/// the thread is being ended (pthread_exit): a worker may not die in a callback.
void subscriber_threw(Subscriber& subscriber) noexcept;

/// The same for one that is called inline, and what its throwing says of the event.
[[nodiscard]] Judgement inline_threw(Subscriber& subscriber) noexcept;

}  // namespace ringmain::engine
