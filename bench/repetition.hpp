// How is one thing measured once? Between two core-to-core probes, with its figures as counters.
//
// Names read question/contender/axis:value. What is compared stands under one question with the
// same axes and runs in the same process, in random order; bench/scripts/bench_run.py calls each
// question several times, groups by the probes and judges. A repetition builds what it needs, warms
// it up, measures for 5 to 50 ms and takes it down again.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/machine.hpp"

namespace ringmain::bench {

struct Axis {
  const char* name;
  std::int64_t value;
};

class Repetition {
 public:
  explicit Repetition(benchmark::State& state) : state_(state) {}
  /// The figure that is compared: nanoseconds, bytes or events per second, as the question says.
  void value(double v) { figure("value", v); }
  void figure(const char* name, double v) { state_.counters[name] = v; }
  /// The repetition is void, and the run fails: events were lost, a promise was broken.
  void fail(const char* why) { state_.SkipWithError(why); }

 private:
  benchmark::State& state_;
};

/// Registers one contender at one point of the axes. Call it before main().
bool add(const std::string& question, const std::string& contender, const std::vector<Axis>& axes,
         std::function<void(Repetition&)> run);

/// The value below which `share` of the sorted samples lie.
template <class T>
double quantile(const std::vector<T>& sorted, double share) {
  if (sorted.empty()) return 0;
  return static_cast<double>(
      sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))]);
}
template <class T>
double median(std::vector<T> samples) {
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}
/// Without the slowest twentieth, in which the host took the core away.
template <class T>
double trimmed_mean(std::vector<T> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const std::size_t kept = std::max<std::size_t>(1, samples.size() * 19 / 20);
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) sum += static_cast<double>(samples[i]);
  return sum / static_cast<double>(kept);
}

}  // namespace ringmain::bench
