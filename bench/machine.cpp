#include "bench/machine.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <pthread.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "engine/system/atomics.hpp"
#include "engine/system/cache_line.hpp"

namespace ringmain::bench {
namespace {

/// What the process was started with; read before anything is pinned.
cpu_set_t read_affinity() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::pthread_getaffinity_np(::pthread_self(), sizeof set, &set);
  return set;
}
const cpu_set_t kGiven = read_affinity();

std::atomic<bool> any_core{false};

bool same_core(int a, int b) {
  const auto core_of = [](int cpu) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                       "/topology/thread_siblings_list");
    std::string text;
    std::getline(file, text);
    return text;
  };
  const std::string first = core_of(a);
  return !first.empty() && first == core_of(b);
}

Cores choose() {
  Cores chosen;
  if (const char* asked = std::getenv("RINGMAIN_BENCH_CORES")) {
    if (std::sscanf(asked, "%d,%d", &chosen.publisher, &chosen.worker) == 2) return chosen;
    std::fprintf(stderr, "RINGMAIN_BENCH_CORES is '%s'; give two cores, such as 0,1.\n", asked);
    std::exit(2);
  }
  std::vector<int> given;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &kGiven)) given.push_back(cpu);
  }
  if (given.size() < 2) return {};
  const auto other = std::find_if(given.begin() + 1, given.end(),
                                  [&](int cpu) { return !same_core(given.front(), cpu); });
  return {given.front(), other == given.end() ? given[1] : *other};
}

}  // namespace

const Cores& cores() {
  static const Cores chosen = choose();
  return chosen;
}

unsigned cores_here() noexcept {
  // Read here, not from kGiven: cases are added while that may not be there yet.
  static const cpu_set_t given = read_affinity();
  return static_cast<unsigned>(CPU_COUNT(&given));
}

void pin(int core) noexcept {
  if (core < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

void unpin() noexcept {
  ::pthread_setaffinity_np(::pthread_self(), sizeof kGiven, &kGiven);
}

void pin_worker() noexcept {
  if (!any_core) pin(cores().worker);
}
AnyCore::AnyCore() noexcept {
  any_core = true;
  unpin();
}
AnyCore::~AnyCore() {
  any_core = false;
}

std::string worker_cpus() {
  return cores().worker < 0 ? "" : std::to_string(cores().worker);
}

double ns_per_tick() {
  static const double calibrated = [] {
    const auto clock = [] {
      timespec t{};
      ::clock_gettime(CLOCK_MONOTONIC, &t);
      return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    };
    const double since = clock();
    const std::int64_t ticked = ticks();
    while (clock() < since + 20e6) engine::pause();
    return (clock() - since) / static_cast<double>(ticks() - ticked);
  }();
  return calibrated;
}

double core_to_core_ns() {
  if (cores().worker < 0) return 0;
  enum : std::uint32_t { kTrips = 4000, kStretch = 500 };
  struct alignas(engine::kLineBytes) Line {
    std::atomic<std::uint32_t> word{0};
  } line;
  std::thread other([&line] {
    pin(cores().worker);
    for (std::uint32_t i = 0; i < kTrips; ++i) {
      while (line.word.load(std::memory_order_acquire) != 2 * i + 1) engine::pause();
      line.word.store(2 * i + 2, std::memory_order_release);
    }
  });
  pin(cores().publisher);
  std::int64_t best = INT64_MAX;
  std::int64_t since = ticks();
  for (std::uint32_t i = 0; i < kTrips; ++i) {
    line.word.store(2 * i + 1, std::memory_order_release);
    while (line.word.load(std::memory_order_acquire) != 2 * i + 2) engine::pause();
    if (i % kStretch == kStretch - 1) {
      const std::int64_t now = ticks();
      best = std::min(best, now - since);
      since = now;
    }
  }
  other.join();
  return static_cast<double>(best) * ns_per_tick() / (2.0 * static_cast<double>(kStretch));
}

std::int64_t cpu_ns(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

namespace {
rusage used() noexcept {
  rusage so_far{};
  ::getrusage(RUSAGE_SELF, &so_far);
  return so_far;
}
}  // namespace

std::int64_t page_faults() noexcept {
  return used().ru_minflt;
}
std::int64_t sleeps() noexcept {
  return used().ru_nvcsw;
}
std::int64_t preemptions() noexcept {
  return used().ru_nivcsw;
}

void spin_for(double ns) noexcept {
  const std::int64_t until = ticks() + ticks_of(ns);
  while (ticks() < until) engine::pause();
}

}  // namespace ringmain::bench
