// How does a thread that drains a mailbox itself sleep without missing an event?
//
// A feeder publishes and then looks whether the reader is asleep (not leased; edge l.attended). The
// first feeder to set `told` moves the key and wakes the reader. A reader reads the key, clears
// `told`, says that it sleeps (leased = 0), calls asymmetric_fence_heavy(), looks again, and sleeps
// on the key. It reads the key before it clears `told`, because a feeder of the last sleep may be
// late: it then moves the key under the reader, which wakes once for nothing instead of never.
// Model: tests/model/pull_mailbox.pml.
#pragma once
#include <cstdint>

#include "../channel/reader.hpp"

namespace ringmain::engine {

class ChannelCore;

/// Reader: waits until an event is there, at most `limit_ns` (negative: for ever). False: there is
/// none; time ran out or the bus has stopped.
[[nodiscard]] bool wait_for_events(ChannelCore& channel, std::int64_t limit_ns) noexcept;
/// Reader: from here on feeders wake it. Returns the key to sleep on; look once more before you
/// sleep.
[[nodiscard]] std::uint32_t prepare_wait(ChannelCore& channel) noexcept;
/// Reader: a descriptor that polls readable while events are there. -1: the system gives none.
[[nodiscard]] int reader_fd(ChannelCore& channel) noexcept;
/// Reader, around each drain: clears the descriptor; afterwards makes it readable again if events
/// are left.
void before_drain(ChannelCore& channel) noexcept;
void after_drain(ChannelCore& channel) noexcept;

}  // namespace ringmain::engine
