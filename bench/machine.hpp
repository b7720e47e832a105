// What does this machine do to a measurement, and how is that kept visible?
//
// A virtual machine's cores are moved by its host: for seconds they are neighbours, then far apart,
// and nothing in the guest shows it but the time a line takes from one to the other. So every
// repetition stands between two probes of that time, and repetitions are compared within one class
// of it (docs/performance.md).
#pragma once
#include <cstdint>
#include <ctime>
#include <sched.h>
#include <string>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ringmain::bench {

/// The two cores that measurements run on: where there is a choice, not two threads of one core.
struct Cores {
  int publisher = -1;  // -1: this machine has one core, nothing is pinned
  int worker = -1;
};
/// RINGMAIN_BENCH_CORES="2,3" chooses them.
[[nodiscard]] const Cores& cores();
/// How many this process was given.
[[nodiscard]] unsigned cores_here() noexcept;
void pin(int core) noexcept;
/// Back to all the cores that the process was given.
void unpin() noexcept;
/// "1": where the bus's worker shall run.
[[nodiscard]] std::string worker_cpus();

/// What the worker thread of a raw loop or a peer calls first: its core, unless a repetition lets
/// threads run anywhere.
void pin_worker() noexcept;
/// While it lives, this thread and the workers that are made run on any core.
class AnyCore {
 public:
  AnyCore() noexcept;
  AnyCore(const AnyCore&) = delete;
  AnyCore& operator=(const AnyCore&) = delete;
  ~AnyCore();
};

/// Ticks of the processor's own clock; elsewhere nanoseconds. The read waits for earlier loads: a
/// plain one is speculated before the load that saw the event, which gives negative latencies.
inline std::int64_t ticks() noexcept {
#if defined(__x86_64__)
  unsigned core;
  return static_cast<std::int64_t>(__rdtscp(&core));
#else
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
#endif
}
/// Calibrated once, over 20 ms.
[[nodiscard]] double ns_per_tick();
inline double ns_since(std::int64_t begin_ticks) {
  return static_cast<double>(ticks() - begin_ticks) * ns_per_tick();
}
inline std::int64_t ticks_of(double ns) {
  return static_cast<std::int64_t>(ns / ns_per_tick());
}

/// One way, from the publisher's core to the worker's, in nanoseconds: half a round trip, the best
/// of eight stretches. 0 on a machine with one core.
[[nodiscard]] double core_to_core_ns();

/// CPU time in nanoseconds, CLOCK_THREAD_CPUTIME_ID or CLOCK_PROCESS_CPUTIME_ID.
[[nodiscard]] std::int64_t cpu_ns(clockid_t clock) noexcept;

/// What the whole process has seen so far: pages touched for the first time, threads that went to
/// sleep, and threads that lost their core.
[[nodiscard]] std::int64_t page_faults() noexcept;
[[nodiscard]] std::int64_t sleeps() noexcept;
[[nodiscard]] std::int64_t preemptions() noexcept;

/// Spins; the thread stays awake, as a training thread would be.
void spin_for(double ns) noexcept;

}  // namespace ringmain::bench
