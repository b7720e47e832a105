// Did a call do what was asked of it? For those that follow what a program has.
#pragma once
#include "events/cuda.hpp"

namespace ringmain::cuda {

/// A call that is told before it is done has no result yet, and is taken back by another event
/// where it fails.
template <class Call>
[[nodiscard]] bool succeeded(const Call& call) noexcept {
  return call.phase != Phase::failed && call.result <= 0;
}

}  // namespace ringmain::cuda
