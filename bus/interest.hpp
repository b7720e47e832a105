// Who listens? For sources that are costly to run, and need not run while nobody listens.
#pragma once
#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include "callback.hpp"

namespace ringmain {

/// What a channel's subscribers ask of its source, all of them taken together.
struct Interest {
  std::uint32_t subscribers = 0;
  bool inline_phase = false;  // some are called in the publishing thread
  bool workers = false;       // some on workers, or through mailboxes
  bool stamps = false;        // some want publishing times: publishers read the clock
  /// Progress: wait-free.
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return subscribers != 0; }
  friend constexpr bool operator==(const Interest&, const Interest&) = default;
};

namespace detail {

/// What is in the run with which a subscriber of interest is called.
struct InterestTold {
  Interest interest;
  std::string_view channel;
};

template <class F>
struct HearInterest {
  static constexpr bool wants_time() { return false; }
  F tell;
  void operator()(engine::Subscriber& s, const engine::Run& run) noexcept {
    for_each_event(s, run, [&](std::size_t i) {
      const auto& told = *reinterpret_cast<const InterestTold*>(run.payload(i));
      if constexpr (std::invocable<F&, std::string_view, Interest>) {
        tell(told.channel, told.interest);
      } else {
        tell(told.interest);
      }
      return true;
    });
  }
};

}  // namespace detail
}  // namespace ringmain
