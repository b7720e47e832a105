// How does an event get from a channel into a mailbox? It is copied into a lane there, with its
// stamp. Not for users of the library.
#pragma once
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "../../engine/channel/channel_core.hpp"
#include "../../engine/publish/push.hpp"
#include "../../engine/subscribe/subscriber.hpp"

#include "../callback.hpp"

namespace ringmain::detail {

/// How a feeder publishes: its events have their time already. Throws std::invalid_argument.
inline engine::LaneOptions feeding_options(std::uint32_t queue_events) {
  if (queue_events == 0) {
    throw std::invalid_argument(
        "ringmain: queue_events is 0: nothing could be heard; use 1 or more");
  }
  engine::LaneOptions options;
  options.capacity = queue_events;
  options.source_time = true;
  return options;
}

/// Event `i` of a run, on its way into a lane of a mailbox.
class Copied {
 public:
  Copied(const engine::Lane& to, const engine::Run& run, std::uint32_t i) noexcept
      : Copied(to, run, i, stamp_of(run, i)) {}
  [[nodiscard]] std::int64_t time_ns() const noexcept { return time_ns_; }
  /// Writes the payload of the Copied at `what`; the envelope lies right in front of it.
  static void build(void* there, void* what) noexcept {
    const auto& c = *static_cast<Copied*>(what);
    auto* bytes = static_cast<std::byte*>(there);
    std::memcpy(bytes - sizeof(engine::Envelope), &c.envelope_, sizeof(engine::Envelope));
    std::memcpy(bytes, c.payload_, c.bytes_);
  }

 private:
  Copied(const engine::Lane& to, const engine::Run& run, std::uint32_t i,
         const Stamp& stamp) noexcept
      : payload_(run.payload(i)),
        envelope_{stamp.sequence, stamp.publisher, static_cast<std::uint32_t>(stamp.time_from)},
        bytes_(to.source->options().payload_bytes),
        time_ns_(stamp.time_ns) {}

  const std::byte* payload_;
  engine::Envelope envelope_;
  std::uint32_t bytes_;
  std::int64_t time_ns_;
};

/// Copies event `i` of a run. Threads: the one that runs the feeder.
inline engine::PushResult feed_one(engine::Lane& to, const engine::Run& run, std::uint32_t i,
                                   std::uint64_t ticket = engine::kNoTicket) noexcept {
  Copied copied(to, run, i);
  return engine::push_slowly(to, &Copied::build, &copied, copied.time_ns(), ticket);
}

}  // namespace ringmain::detail
