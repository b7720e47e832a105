// In which step was an event said? Who wants to know hears events and steps in one order.
//
//   auto seen = step::subscribe_with_step<cuda::MemoryAllocation>(
//       bus, [](const cuda::MemoryAllocation& a, const step::Place& in) { … });
//
// An event belongs to the innermost scope that had begun before it was published and had not ended:
// exactly, for an event whose publish() was called after the scope's begin had returned and
// returned before its end was called, on whichever threads. For one beside an edge, with nothing
// that orders the two, either side is true.
//
// Publishers pay while somebody has joined, and then only on the channels that are joined: a ticket
// of a counter that all share (docs/adr/0008-steps-by-joining.md). Otherwise nothing.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ringmain/bus/bus.hpp"

#include "ringmain/adapters/sources/step/events.hpp"

namespace ringmain::step {

/// Where the training loop was.
struct Place {
  bool inside = false;  // false: in no step, or in one that had begun before the subscription
  std::uint64_t step = 0;
  Name phase;  // Name{}: in none
  std::uint32_t micro_batch = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Follows the edges of one source of steps. Threads: one at a time.
class Follower {
 public:
  enum : std::size_t { kDeepest = 32 };

  void follow(const Step& edge) noexcept {
    const bool whole = edge.phase == Name{} && edge.micro_batch == 0;
    if (edge.edge == Edge::begin) {
      if (whole) depth_ = 0;  // whatever was lost before: a step is in no other
      if (depth_ > 0 || whole) push({true, edge.step, edge.phase, edge.micro_batch});
    } else if (whole) {
      depth_ = 0;
    } else if (depth_ > 0) {
      --depth_;
    }
  }
  [[nodiscard]] Place here() const noexcept {
    return depth_ == 0 ? Place{} : places_[(depth_ < kDeepest ? depth_ : kDeepest) - 1];
  }

 private:
  void push(const Place& place) noexcept {
    if (depth_ < kDeepest) places_[depth_] = place;
    ++depth_;  // deeper ones are counted, and stand for the last that had room
  }

  std::array<Place, kDeepest> places_{};
  std::size_t depth_ = 0;
};

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
