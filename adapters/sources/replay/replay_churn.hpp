// Do subscribers that come and go under load get what was promised? They watch it themselves.
//
// One thread keeps a few short-lived subscribers on the busiest channels: one per event, one with a
// filter, one per batch, in turn. Each callback is poisoned: it knows its stay's number, and a
// call that comes when the stay is over is counted as late. After each reset() the captures must
// be gone.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "bus/bus.hpp"

#include "adapters/sources/replay/replay_recording.hpp"

namespace ringmain::replay {

struct ChurnFigures {
  std::uint64_t came = 0;
  std::uint64_t went = 0;
  std::uint64_t heard = 0;          // events, by all of them together
  std::uint64_t called_late = 0;    // after reset() had returned
  std::uint64_t kept_captures = 0;  // not destroyed when reset() returned
};

/// Runs from its construction to stop(). The bus must outlive it.
class SubscriberChurn {
 public:
  SubscriberChurn(Bus& bus, const Recording& recording);
  /// All go. Called again, or by the destructor, it does nothing.
  void stop() { thread_ = {}; }
  [[nodiscard]] ChurnFigures figures() const noexcept;

 private:
  static constexpr std::size_t kAtATime = 4;
  static constexpr std::size_t kChannels = 3;
  struct Place {
    std::atomic<std::uint64_t> stay{0};  // 0: nobody is here
    std::uint64_t heard = 0;  // the callback's while the stay lasts: reset() hands it over
    Subscription said;
    std::weak_ptr<int> captured;
  };

  void run(const std::stop_token& stop);
  void come(Place& place, std::uint64_t number);
  void go(Place& place);
  template <Described E>
  void subscribe(Place& place, std::uint64_t number, std::shared_ptr<int> held);

  Bus* bus_;
  std::vector<std::size_t> busiest_;  // kinds
  std::array<Place, kAtATime> places_;
  std::atomic<std::uint64_t> came_{0}, went_{0}, heard_{0}, late_{0}, kept_{0};
  std::jthread thread_;
};

}  // namespace ringmain::replay
