// How does a worker wait, where a seed decides all that depends on time? It looks again some few
// times, and then parks: in place of the real strategy, whose figures are of no interest here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine/system/atomics.hpp"
#include "engine/system/clock.hpp"

namespace ringmain::engine {

struct WaitOptions {
  std::int64_t spin_ns = 0;
  std::int64_t linger_ns = 0;
  std::int64_t realtime_ns_max = 20'000'000;
  bool yields = false;
};

class WaitStrategy {
 public:
  explicit WaitStrategy(const WaitOptions&) noexcept {}
  void worked(std::size_t, std::size_t, std::size_t) noexcept {}
  [[nodiscard]] bool look_again(std::size_t) noexcept {
    if (interleave::choose(3) != 0) return false;
    pause();
    return true;
  }
};

}  // namespace ringmain::engine
