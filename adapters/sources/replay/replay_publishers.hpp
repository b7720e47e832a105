// How does a recorded thread publish? Through publishers of its own, one per channel that it needs.
#pragma once
#include <cstdint>
#include <tuple>
#include <variant>

#include "bus/bus.hpp"

#include "adapters/sources/replay/kineto_map.hpp"

namespace ringmain::replay {

/// Threads: one at a time.
class Publishers {
 public:
  Publishers(Bus& bus, const PublisherOptions& options) : bus_(&bus), options_(options) {}

  /// Publishes one event at its recorded time. Waits while the channel's queue is full.
  void publish(const KinetoMapped& mapped) {
    std::visit([&](const auto& event) { publish_one(event, mapped.time_ns); }, mapped.event);
  }
  [[nodiscard]] std::uint64_t accepted() const noexcept { return accepted_; }
  [[nodiscard]] std::uint64_t unheard() const noexcept { return unheard_; }
  [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

 private:
  template <class Variant>
  struct PublishersOf;
  template <class... E>
  struct PublishersOf<std::variant<E...>> {
    using Type = std::tuple<Publisher<E>...>;
  };

  template <Described E>
  void publish_one(const E& event, std::int64_t time_ns) {
    auto& publisher = std::get<Publisher<E>>(publishers_);
    if (!publisher) {
      auto taken = bus_->channel<E>().publisher(options_);
      if (!taken) {
        ++refused_;
        return;
      }
      publisher = std::move(taken).value();
    }
    const PublishResult result = publisher.publish_at(event, time_ns);
    if (result == PublishCode::accepted) {
      ++accepted_;
    } else if (result == PublishCode::unheard) {
      ++unheard_;
    } else {
      ++refused_;
    }
  }

  Bus* bus_;
  PublisherOptions options_;
  PublishersOf<KinetoEvent>::Type publishers_;
  std::uint64_t accepted_ = 0;
  std::uint64_t unheard_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace ringmain::replay
