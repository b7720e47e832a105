// How does code that learns its event types at run time reach a bus? For other languages: c/ has
// all that it takes. Not for users of the library, who have types.
#pragma once
#include <string_view>

#include "bus.hpp"
#include "bus_core.hpp"

namespace ringmain::detail {

struct Erased {
  [[nodiscard]] static BusCore& core(Bus& bus) noexcept { return *bus.core_; }
  /// Finds or makes, as Bus::channel<E>(), but a conflict is an error. Throws std::bad_alloc.
  [[nodiscard]] static Result<engine::ChannelCore*> channel(Bus& bus, const Schema& schema) {
    return bus.core_->channel(schema.name, schema, nullptr);
  }
  /// As Bus::subscribe(). Takes `subscriber` over, also when it throws.
  [[nodiscard]] static Subscription subscribe(Bus& bus, std::string_view pattern,
                                              engine::Subscriber* subscriber,
                                              SubscribeOptions options) {
    return bus.subscribe_core(pattern, subscriber, std::move(options));
  }
};

/// As schema_hash<E>(), of fields that are known at run time only.
[[nodiscard]] inline std::uint64_t schema_hash_of(const Schema& schema) noexcept {
  return hash_of(schema.name, schema.fields, schema.bytes);
}

}  // namespace ringmain::detail
