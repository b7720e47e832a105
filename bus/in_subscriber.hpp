// Does this thread act for a subscriber? What a subscriber does may itself be an event: one that
// calls CUDA, on a bus that hears CUDA's calls, would hear itself, and so for ever.
#pragma once
#include "../engine/subscribe/subscriber.hpp"

namespace ringmain {

/// Is this thread inside a subscriber of any bus? True in each call of a callback, wherever it runs
/// (on a worker, inline, on a thread of its own, in Mailbox::drain(), in C, in Python), in
/// hear() and idle() of a sink, and in what an on_interest() calls; also in all that these call,
/// and in destructors of captures that a thread of the bus runs. False again once the outermost of
/// them has returned or thrown. For sources, which leave out what their subscribers cause. Threads:
/// any. Progress: wait-free, one load.
[[nodiscard]] inline bool in_subscriber() noexcept {
  return engine::in_callback();
}

}  // namespace ringmain
