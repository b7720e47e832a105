// What do the opaque pointers of ringmain.h point to?
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bus/core/erased.hpp"
#include "bus/subscription.hpp"

#include "bindings/c/errors.hpp"

struct ringmain_channel {
  ringmain::engine::ChannelCore* core;  // kept alive by its bus
  const ringmain::Schema* schema;
};

struct ringmain_bus {
  explicit ringmain_bus(ringmain::Bus& process) : bus(&process) {}
  explicit ringmain_bus(std::unique_ptr<ringmain::Bus> made)
      : bus(made.get()), own(std::move(made)) {}

  /// The same handle for the same channel. Throws std::bad_alloc.
  ringmain_channel* handle(ringmain::engine::ChannelCore& core) {
    const std::lock_guard lock(mutex);
    for (const auto& c : channels) {
      if (c->core == &core) return c.get();
    }
    channels.push_back(std::make_unique<ringmain_channel>(
        ringmain_channel{&core, static_cast<const ringmain::Schema*>(core.options().schema)}));
    return channels.back().get();
  }

  ringmain::Bus* bus;
  std::unique_ptr<ringmain::Bus> own;  // nullptr: this is the process's bus
  std::mutex mutex;
  std::vector<std::unique_ptr<ringmain_channel>> channels;
};

struct ringmain_publisher {
  ringmain::engine::Lane* lane;  // keeps its channel alive
  std::uint32_t event_bytes;
};

struct ringmain_subscription {
  ringmain::Subscription held;
};

struct ringmain_mailbox {
  ringmain::detail::PullMailbox* box;
  std::uint32_t event_bytes;
};

namespace ringmain::c {

/// A field as C knows it. Its strings end with a zero: a schema owns them.
[[nodiscard]] ringmain_field field_of(const FieldSchema& field) noexcept;
/// The field of that number, or RINGMAIN_NOT_FOUND.
ringmain_code give_field(const Schema& schema, std::uint32_t number, ringmain_field* field);

/// A sentence for each code of a publish that is not accepted or unheard.
ringmain_code published(PublishResult result) noexcept;

/// A limit in nanoseconds as the bus takes it: below 0 means no limit.
[[nodiscard]] constexpr nanoseconds limit_of(std::int64_t limit_ns) noexcept {
  return nanoseconds(limit_ns < 0 ? -1 : limit_ns);
}

}  // namespace ringmain::c
