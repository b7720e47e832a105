// In which step, phase and micro-batch is a training loop that publishes its edges?
#pragma once
#include <array>
#include <cstddef>

#include "../../bus/event.hpp"

#include "../step.hpp"

namespace ringmain::step {

using Place = StepPlace;

/// Follows the edges of one source of steps. Threads: one at a time.
class Follower {
 public:
  enum : std::size_t { kDeepest = 32 };

  void follow(const Step& edge) noexcept {
    const bool whole = edge.phase == Name{} && edge.micro_batch == 0;
    if (edge.edge == Edge::begin) {
      if (whole) depth_ = 0;  // a step is in no other, so what was lost before does not matter
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
    ++depth_;  // deeper scopes are counted, and take the place of the last that had room
  }

  std::array<Place, kDeepest> places_{};
  std::size_t depth_ = 0;
};

}  // namespace ringmain::step
