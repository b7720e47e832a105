// How does code that knows its event types at run time only reach a bus? For the bindings of other
// languages; bindings/c/ has all that they need. Not for users of the library, who have types.
#pragma once
#include <string_view>

#include "../bus.hpp"
#include "bus_core.hpp"
#include "subscription_core.hpp"

namespace ringmain::detail {

struct Erased {
  [[nodiscard]] static BusCore& core(Bus& bus) noexcept { return *bus.core_; }
  /// Finds or makes the channel, as Bus::channel<E>(), but a conflict is an Error. Throws
  /// std::bad_alloc.
  [[nodiscard]] static Result<engine::ChannelCore*> channel(Bus& bus, const Schema& schema) {
    return bus.core_->channel(schema.name, schema, nullptr);
  }
  /// As Bus::subscribe(). Takes `subscriber` over, also if it throws.
  [[nodiscard]] static Subscription subscribe(Bus& bus, std::string_view pattern,
                                              engine::Subscriber* subscriber,
                                              SubscribeOptions options) {
    return bus.subscribe_core(pattern, subscriber, std::move(options));
  }
  /// As Bus::on_interest(), by the bus's core: also while the bus ends and after it, when nothing
  /// is told. `again`: it is told also about every second, and in each wait_told(), though nothing
  /// has changed; for sources that must look after something. Throws std::bad_alloc.
  template <std::invocable<Interest> F>
  [[nodiscard]] static Subscription on_interest(BusCore& core, engine::ChannelCore& channel, F tell,
                                                bool again = false) {
    Orphan orphan{make_subscriber(HearInterest<F>{std::move(tell)})};
    const engine::Ref<SubscriptionCore> made = new SubscriptionCore(orphan.subscriber, {}, {});
    orphan.subscriber = nullptr;
    made->set_host(&core);
    made->watch(&channel, {}, again);
    return handle_of(*made);
  }
};

/// As schema_hash<E>(), for fields that are known at run time only.
[[nodiscard]] inline std::uint64_t schema_hash_of(const Schema& schema) noexcept {
  return hash_of(schema.name, schema.fields, schema.bytes);
}

}  // namespace ringmain::detail
