// A loop that computes and publishes what it does, as a training loop would: the same for each
// contender.
#pragma once
#include <cstdint>
#include <vector>

#include "bench/events.hpp"
#include "bench/repetition.hpp"

namespace ringmain::bench {

/// 40 us of arithmetic on 96 x 96 floats, then 20 events; nanoseconds for each such step.
template <class Say>
void training_loop(Repetition& repetition, Say say) {
  enum : std::size_t { kSide = 96, kEvents = 20 };
  std::vector<float> a(kSide * kSide, 0.5f), b(kSide * kSide, 0.25f), c(kSide * kSide, 0.0f);
  const auto multiply_rows = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      for (std::size_t k = 0; k < kSide; ++k)
        for (std::size_t j = 0; j < kSide; ++j)
          c[i * kSide + j] += a[i * kSide + k] * b[k * kSide + j];
    benchmark::DoNotOptimize(c.data());
  };
  std::vector<double> ns;
  std::uint64_t number = 0;
  const std::int64_t until = ticks() + ticks_of(25e6);
  do {
    const std::int64_t since = ticks();
    for (std::size_t part = 0; part < kEvents; ++part) {
      multiply_rows(part * kSide / kEvents, (part + 1) * kSide / kEvents);
      say(make_event<Payload>(number++, 0));
    }
    ns.push_back(ns_since(since));
  } while (ticks() < until);
  repetition.value(trimmed_mean(ns));
  repetition.figure("p99_ns", [&ns] {
    std::sort(ns.begin(), ns.end());
    return quantile(ns, 0.99);
  }());
}

}  // namespace ringmain::bench
