// How many events do forked children publish on their parent's bus, where they are not heard?
//
// The parent shares a count with them. In the child the channels' lines of that bus say "heard", so
// that a publish reaches the code that refuses and counts it. Publishes in other processes do not
// come there, and pay nothing.
#pragma once
#include <cstdint>

namespace ringmain::engine {

class ChannelHost;

/// Names the bus on whose channels they are counted. Call it before there is a channel.
void count_missed_of(const ChannelHost& host) noexcept;
/// Counts from now on, in the children of this process. Once in each process; without memory
/// nothing is counted.
void begin_counting_missed() noexcept;
/// How many there were so far, in all children.
[[nodiscard]] std::uint64_t missed() noexcept;

/// In the child: the state of the line of a channel of its parent's bus.
[[nodiscard]] std::uint32_t forked_state(const ChannelHost& host, bool named) noexcept;
/// Counts an event that was refused as forked on a line with that state. Async-signal-safe.
void miss(std::uint32_t state) noexcept;

}  // namespace ringmain::engine
