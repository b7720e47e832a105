// How does a thread that drains a mailbox itself sleep without missing an event?
//
// Feeder: publishes; l.attended; reader asleep (not leased)? then the first to set `told` moves the
// key and wakes. Reader: reads the key, clears `told`, says that it sleeps (leased = 0),
// asymmetric_fence_heavy(), looks again, sleeps on the key. The key is read before `told` is
// cleared: a late feeder of the last sleep then moves it under the reader, which wakes once for
// nothing instead of never. Model: tests/model/pull_mailbox.pml.
#pragma once
#include <cstdint>

#include "../channel/reader.hpp"

namespace ringmain::engine {

class ChannelCore;

/// Reader: waits until something is there, at most `limit_ns` (negative: for ever). False: nothing
/// is, time ran out or the bus has stopped.
[[nodiscard]] bool wait_for_events(ChannelCore& channel, std::int64_t limit_ns) noexcept;
/// Reader: from here on feeders tell. Returns the key to sleep on; look again before.
[[nodiscard]] std::uint32_t prepare_wait(ChannelCore& channel) noexcept;
/// Reader: a descriptor that polls readable while events are there. -1: the system gives none.
[[nodiscard]] int reader_fd(ChannelCore& channel) noexcept;
/// Reader, around each drain: clears the descriptor; afterwards makes it readable again if events
/// are left.
void before_drain(ChannelCore& channel) noexcept;
void after_drain(ChannelCore& channel) noexcept;

}  // namespace ringmain::engine
