// How does the registry publish what it did, in the right order, and with no lock held that a
// subscriber could want? Not for users of the registry.
#pragma once
#include <deque>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "bus/bus.hpp"

#include "adapters/registry_events.hpp"

namespace ringmain::registry {

class Publishers {
 public:
  using AnyEvent = std::variant<Registered, Loaded, LoadFailed, Unregistered>;

  Result<bool> publish_on(Bus* bus) {
    const std::lock_guard publishing(publishing_);
    std::optional<OfEach> made;
    if (bus != nullptr) {
      made.emplace();
      if (auto taken = take<0>(*bus, *made); !taken) return taken;
    }
    publishers_ = std::move(made);
    return true;
  }
  /// Call it under the lock that guards what is published, and publish_queued() after that lock is
  /// released.
  void queue(const AnyEvent& event) {
    const std::lock_guard lock(queued_mutex_);
    queued_.push_back(event);
  }
  void publish_queued() {
    const std::lock_guard publishing(publishing_);
    while (const std::optional<AnyEvent> next = take_next()) {
      if (!publishers_) continue;
      std::visit(
          [this]<class E>(const E& event) {
            (void)std::get<Publisher<E>>(*publishers_).publish(event);  // its ledger knows
          },
          *next);
    }
  }

 private:
  using OfEach = std::tuple<Publisher<Registered>, Publisher<Loaded>, Publisher<LoadFailed>,
                            Publisher<Unregistered>>;

  template <std::size_t kIndex>
  static Result<bool> take(Bus& bus, OfEach& publishers) {
    if constexpr (kIndex < std::tuple_size_v<OfEach>) {
      auto lane =
          bus.channel<std::variant_alternative_t<kIndex, AnyEvent>>().publisher(PublisherOptions{});
      if (!lane) return lane.error();
      std::get<kIndex>(publishers) = std::move(lane).value();
      return take<kIndex + 1>(bus, publishers);
    }
    return true;
  }
  std::optional<AnyEvent> take_next() {
    const std::lock_guard lock(queued_mutex_);
    if (queued_.empty()) return std::nullopt;
    AnyEvent next = queued_.front();
    queued_.pop_front();
    return next;
  }

  // Recursive: an inline subscriber may call the registry.
  std::recursive_mutex publishing_;
  std::mutex queued_mutex_;
  std::deque<AnyEvent> queued_;
  std::optional<OfEach> publishers_;
};

}  // namespace ringmain::registry
