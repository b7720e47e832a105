// In which step was an event published? A subscriber that hears events and steps in one order
// knows.
//
//   auto seen = step::subscribe_with_step<cuda::MemoryAllocation>(
//       bus, [](const cuda::MemoryAllocation& a, const step::Place& in) { … });
//
// An event belongs to the innermost scope that had begun before it was published and had not ended:
// exactly, for an event whose publish() was called after the scope's begin had returned and
// returned before its end was called, on whichever threads. For an event that nothing orders before
// or after an edge, either side of the edge is true.
//
// Publishers pay only while somebody has joined, on the channels that are joined: a ticket of a
// counter that all share (docs/adr/0008-steps-by-joining.md). A subscriber by pattern joins by
// time: log.hpp.
#pragma once
#include <concepts>
#include <utility>

#include "../../bus/bus.hpp"

#include "../step.hpp"
#include "follower.hpp"

namespace ringmain::step {

namespace detail {
template <class F, class... E>
struct Joined {
  F hear;
  Follower follower{};

  void operator()(const Step& edge) noexcept { follower.follow(edge); }
  template <class One>
  requires(std::same_as<One, E> || ...) void operator()(const One& event) {
    hear(event, follower.here());
  }
};
}  // namespace detail

/// `hear(event, Place)` for each of the channels of E. As Bus::subscribe_ordered(), with its costs,
/// its options and what it throws.
template <Described... E, class F>
requires(sizeof...(E) > 0 && (std::invocable<F&, const E&, const Place&> && ...))
    [[nodiscard]] Subscription subscribe_with_step(Bus& bus, F hear, OrderOptions options = {}) {
  return bus.subscribe_ordered<Step, E...>(detail::Joined<F, E...>{std::move(hear)},
                                           std::move(options));
}

}  // namespace ringmain::step
