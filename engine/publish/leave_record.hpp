// What does a publish leave in the recordings of its channel? For push.cpp, which knows how it
// ended.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../channel/channel_core.hpp"
#include "../flight/recording.hpp"
#include "lane.hpp"

namespace ringmain::engine {

/// Opens what the event says is issued, in each recording of its channel: before it is shown to
/// anybody, and not while it is, as a recording's end waits for who is inside.
[[gnu::noinline]] inline void open_operation(const Lane& lane, flight::RecordHead& head,
                                             const std::byte* event) noexcept {
  if (!flight::Recording::enter()) return;
  const ChannelCore& channel = *lane.channel;
  for (std::size_t place = 0; place < flight::kRecordingsMax; ++place) {
    const flight::Recorded* const as = channel.recorded(place);
    if (as == nullptr) continue;
    head.source = lane.sources[place].load(std::memory_order_relaxed);  // relaxed: z.recorded
    as->in->open_operation(*as, head, event);
  }
  flight::Recording::leave();
}

/// Leaves a record in each recording of its channel.
[[gnu::always_inline]] inline void leave_record(const Lane& lane, flight::RecordHead& head,
                                                const std::byte* event,
                                                std::size_t bytes) noexcept {
  if (!flight::Recording::enter()) return;
  const ChannelCore& channel = *lane.channel;
#pragma GCC unroll 4
  for (std::size_t place = 0; place < flight::kRecordingsMax; ++place) {
    const flight::Recorded* const as = channel.recorded(place);
    if (as == nullptr) continue;
    head.source = lane.sources[place].load(std::memory_order_relaxed);  // relaxed: z.recorded
    head.schema = as->schema;
    as->in->record(*as, head, event, bytes);
  }
  flight::Recording::leave();
}

/// Which number a record gives an event that was not queued: only what is queued shows others its
/// number; that of these is this one or, after a signal handler's publish, a later one.
inline std::uint64_t number_unqueued(const Lane& lane) noexcept {
  return (lane.word.load(std::memory_order_relaxed) >> 1) +  // relaxed: our own
         lane.refused.load(std::memory_order_relaxed);       // relaxed: our own
}
inline std::uint64_t sequence_of(const Lane& lane, std::uint64_t number) noexcept {
  return number - lane.tenure.first_sequence.load(std::memory_order_relaxed);  // relaxed: ours
}

}  // namespace ringmain::engine
