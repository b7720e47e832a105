// How is something timed that takes a cycle or two?
#pragma once
#include <cstdint>
#include <vector>

#include "bench/repetition.hpp"

namespace ringmain::bench {

/// Nanoseconds for one `what()`, the median of stretches; eight in a row, so that the loop around
/// them and its alignment weigh little.
template <class What>
double time_each(What what) {
  std::vector<double> ns;
  for (int stretch = 0; stretch < 40; ++stretch) {
    const std::int64_t since = ticks();
    for (int i = 0; i < 10'000; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) what();
    }
    ns.push_back(ns_since(since) / 80'000);
  }
  return median(ns);
}

}  // namespace ringmain::bench
