// How does the registry say what it did, in the order in which it did it, and with no lock held
// that a subscriber could want? Not for users of the registry.
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

class Voice {
 public:
  using Said = std::variant<Registered, Loaded, LoadFailed, Unregistered>;

  Result<bool> tell(Bus* bus) {
    const std::lock_guard speaking(speaking_);
    std::optional<Publishers> made;
    if (bus != nullptr) {
      made.emplace();
      if (auto taken = take<0>(*bus, *made); !taken) return taken;
    }
    publishers_ = std::move(made);
    return true;
  }
  /// Under the lock of what is said; speak() follows without it.
  void queue(const Said& event) {
    const std::lock_guard lock(queued_mutex_);
    queued_.push_back(event);
  }
  void speak() {
    const std::lock_guard speaking(speaking_);
    while (const std::optional<Said> next = take_next()) {
      if (!publishers_) continue;
      std::visit(
          [this]<class E>(const E& event) {
            (void)std::get<Publisher<E>>(*publishers_).publish(event);  // its ledger knows
          },
          *next);
    }
  }

 private:
  using Publishers = std::tuple<Publisher<Registered>, Publisher<Loaded>, Publisher<LoadFailed>,
                                Publisher<Unregistered>>;

  template <std::size_t kIndex>
  static Result<bool> take(Bus& bus, Publishers& publishers) {
    if constexpr (kIndex < std::tuple_size_v<Publishers>) {
      auto lane =
          bus.channel<std::variant_alternative_t<kIndex, Said>>().publisher(PublisherOptions{});
      if (!lane) return lane.error();
      std::get<kIndex>(publishers) = std::move(lane).value();
      return take<kIndex + 1>(bus, publishers);
    }
    return true;
  }
  std::optional<Said> take_next() {
    const std::lock_guard lock(queued_mutex_);
    if (queued_.empty()) return std::nullopt;
    Said next = queued_.front();
    queued_.pop_front();
    return next;
  }

  // Recursive: an inline subscriber may ask the registry for something.
  std::recursive_mutex speaking_;
  std::mutex queued_mutex_;
  std::deque<Said> queued_;
  std::optional<Publishers> publishers_;
};

}  // namespace ringmain::registry
