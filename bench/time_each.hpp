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

/// The same for what must not go on for long: the median of stretches of `kEach`, with `between()`
/// after each.
template <int kEach, class What, class Between>
double time_stretches(What what, Between between) {
  std::vector<double> ns;
  for (int stretch = 0; stretch < 40; ++stretch) {
    const std::int64_t since = ticks();
    for (int i = 0; i < kEach; ++i) what();
    ns.push_back(ns_since(since) / kEach);
    between();
  }
  return median(ns);
}

/// What one cycle takes: a third of a multiplication in a chain of them, where each waits for the
/// one before, which is three cycles on x86-64. Additions will not do: newer processors merge
/// several of a chain into one.
inline double cycle_ns() {
  std::uint64_t chain = 3;
  return time_each([&chain] {
           asm volatile("" : "+r"(chain));
           chain *= 0x9e3779b97f4a7c15ull;
           asm volatile("" : "+r"(chain));
         }) /
         3;
}

}  // namespace ringmain::bench
