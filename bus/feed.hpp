// How does an event get from a channel into a mailbox? Copied into a lane there, with its stamp.
// Not for users of the library.
#pragma once
#include <cstdint>
#include <cstring>

#include "ringmain/engine/channel_core.hpp"
#include "ringmain/engine/lane.hpp"
#include "ringmain/engine/subscriber.hpp"

#include "ringmain/bus/hear.hpp"

namespace ringmain::detail {

/// How a feeder publishes: its events bring their time along.
inline engine::LaneOptions feeding_options(std::uint32_t queue_events) noexcept {
  engine::LaneOptions options;
  options.capacity = queue_events;
  options.source_time = true;
  return options;
}

/// Copies event `i` of a run. Threads: the one that runs the feeder.
inline engine::PushResult feed_one(engine::Lane& to, const engine::Run& run, std::uint32_t i,
                                   std::uint64_t ticket = engine::kNoTicket) noexcept {
  struct From {
    const std::byte* payload;
    engine::Envelope envelope;
    std::uint32_t bytes;
  };
  const Stamp stamp = stamp_of(run, i);
  From from{run.payload(i),
            {stamp.sequence, stamp.publisher, static_cast<std::uint32_t>(stamp.time_from)},
            to.source->options().payload_bytes};
  // The build writes the payload; the envelope lies right in front of it.
  return engine::push_slowly(
      to,
      [](void* there, void* what) noexcept {
        const auto& f = *static_cast<From*>(what);
        auto* bytes = static_cast<std::byte*>(there);
        std::memcpy(bytes - sizeof(engine::Envelope), &f.envelope, sizeof(engine::Envelope));
        std::memcpy(bytes, f.payload, f.bytes);
      },
      &from, stamp.time_ns, ticket);
}

}  // namespace ringmain::detail
