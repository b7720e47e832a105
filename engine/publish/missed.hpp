// How many events do forked children publish on their parent's bus, where nobody hears them?
//
// The parent shares a count with them. In the child the lines of that bus say that they are heard,
// so that a publish comes to where it is refused and counted: others do not pass there, and pay
// nothing.
#pragma once
#include <cstdint>

namespace ringmain::engine {

class ChannelHost;

/// It is of this bus's channels that they are counted. Before there is a channel.
void count_missed_of(const ChannelHost& host) noexcept;
/// From now on, in this process and in what it forks. Once in each process; without memory nothing
/// is counted.
void begin_counting_missed() noexcept;
/// So far, by all of them.
[[nodiscard]] std::uint64_t missed() noexcept;

/// In the child: of a channel of its parent's bus.
[[nodiscard]] std::uint32_t forked_state(const ChannelHost& host, bool mailbox) noexcept;
/// An event was refused as forked on a line that looks like that. Async-signal-safe.
void miss(std::uint32_t state) noexcept;

}  // namespace ringmain::engine
