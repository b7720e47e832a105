// The benchmark program: Google Benchmark's options, and what was built how.
#include <string>
#include <thread>

#include <benchmark/benchmark.h>

#include "engine/system/atomics.hpp"

#include "bench/repetition.hpp"

namespace ringmain::bench {
namespace {

struct Case {
  std::string name;
  std::function<void(Repetition&)> run;
};
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

void repeat_once(benchmark::State& state, const Case& what) {
  for (auto _ : state) {
    Repetition repetition(state);
    const double before = core_to_core_ns();
    const std::int64_t preempted = preemptions();
    const std::int64_t since = ticks();
    pin(cores().publisher);
    what.run(repetition);
    state.SetIterationTime(ns_since(since) * 1e-9);
    repetition.figure("preempted", static_cast<double>(preemptions() - preempted));
    repetition.figure("c2c_before_ns", before);
    repetition.figure("c2c_after_ns", core_to_core_ns());
    unpin();
  }
}

void say_what_was_built() {
  benchmark::AddCustomContext("compiler", __VERSION__);
  benchmark::AddCustomContext("flags", RINGMAIN_BENCH_FLAGS);
  benchmark::AddCustomContext("barrier", engine::barrier_is_fence() ? "fence" : "membarrier");
  benchmark::AddCustomContext(
      "cores", std::to_string(cores().publisher) + "," + std::to_string(cores().worker));
  benchmark::AddCustomContext("peers_left_out", RINGMAIN_BENCH_LEFT_OUT);
}

}  // namespace

bool add(const std::string& question, const std::string& contender, const std::vector<Axis>& axes,
         std::function<void(Repetition&)> run) {
  std::string name = question + "/" + contender;
  for (const Axis& axis : axes)
    name += "/" + std::string(axis.name) + ":" + std::to_string(axis.value);
  cases().push_back({std::move(name), std::move(run)});
  return true;
}

}  // namespace ringmain::bench

int main(int count, char** words) {
  using namespace ringmain::bench;
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  (void)ns_per_tick();
  // Until a process has a second thread, the C library's locks and shared_ptr's counts make no
  // read-modify-write: on one CPU, where no probe of two cores begins one, all of it would be
  // measured as no program with an accelerator has it.
  std::thread([] {}).join();
  say_what_was_built();
  for (const Case& one : cases()) {
    benchmark::RegisterBenchmark(one.name.c_str(),
                                 [&one](benchmark::State& state) { repeat_once(state, one); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
