// Question: how long from publish to callback on a hot worker (row 3), and how many events a second
// (row 5a) — against the same raw queue in the same minute?
#include <algorithm>
#include <atomic>
#include <vector>

#include <benchmark/benchmark.h>

#include "ringmain/bus/bus.hpp"

#include "ringmain/bench/reference.hpp"

namespace ringmain::bench {
namespace {

enum : std::uint64_t { kStream = 1'000'000 };

/// Publishes at a fixed rate for a while; open loop: a late sender stamps the intended time.
template <class Push>
void pace(std::int64_t period_ns, std::uint64_t events, Push push) {
  std::int64_t due = ticks_ns() + 1000;
  for (std::uint64_t i = 0; i < events; ++i, due += period_ns) {
    std::int64_t now = ticks_ns();
    while (now < due) now = ticks_ns();
    push(static_cast<std::uint64_t>(now > due + 1000 ? due : now), i);
  }
}

struct Latencies {
  explicit Latencies(std::size_t n) { ns.reserve(n); }
  void operator()(const Payload& p) {
    if (ns.size() < ns.capacity()) ns.push_back(ticks_ns() - static_cast<std::int64_t>(p.sent_ns));
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void report(benchmark::State& state, double core_to_core) {
    std::sort(ns.begin(), ns.end());
    const auto at = [this](double q) {
      return static_cast<double>(
          ns[static_cast<std::size_t>(q * static_cast<double>(ns.size() - 1))]);
    };
    state.counters["p50_ns"] = at(0.5);
    state.counters["p90_ns"] = at(0.9);
    state.counters["p99_ns"] = at(0.99);
    state.counters["p999_ns"] = at(0.999);
    state.counters["c2c_ns"] = core_to_core;
    state.counters["p50_c2c"] = at(0.5) / core_to_core;
  }
  std::vector<std::int64_t> ns;
  std::atomic<std::uint64_t> heard{0};
};

template <class Push>
void time_latency(benchmark::State& state, Latencies& latencies, Push push) {
  const std::int64_t period = 1'000'000'000 / state.range(0);
  const auto events = static_cast<std::uint64_t>(state.range(0) / 5);  // 200 ms
  const double before = core_to_core_ns();
  pin(0);
  for (auto _ : state) {
    pace(period, events, push);
    while (latencies.heard.load(std::memory_order_relaxed) < events * state.iterations())
      engine::pause();
  }
  latencies.report(state, (before + core_to_core_ns()) / 2);
}

template <class Raw>
void BM_RawLatency(benchmark::State& state) {
  Raw raw;
  Latencies latencies(4'000'000);
  const RawWorker worker(
      raw, [&latencies](const Payload& p) { latencies(p); }, 0);
  time_latency(state, latencies, [&raw](std::uint64_t sent, std::uint64_t i) {
    (void)raw.push([=] { return Payload{sent, i, 0, 0}; });
  });
}
BENCHMARK(BM_RawLatency<RawQueue>)
    ->ArgName("per_second")
    ->Arg(1'000'000)
    ->Arg(100'000)
    ->Iterations(1)
    ->UseRealTime();
BENCHMARK(BM_RawLatency<RawRing>)
    ->ArgName("per_second")
    ->Arg(1'000'000)
    ->Arg(100'000)
    ->Iterations(1)
    ->UseRealTime();

void BM_DispatchLatency(benchmark::State& state) {
  Bus bus({.workers = 1,
           .worker_cpus = "1",
           .spin_us = std::chrono::seconds(1),
           .linger_ns = nanoseconds(0)});
  auto& channel = bus.channel<Payload>("bench.latency");
  Latencies latencies(4'000'000);
  const Subscription sub = channel.subscribe([&latencies](const Payload& p) { latencies(p); });
  auto publisher =
      channel.publisher({.lane = state.range(1) == 0 ? LaneKind::moodycamel : LaneKind::ring})
          .value();
  time_latency(state, latencies, [&publisher](std::uint64_t sent, std::uint64_t i) {
    (void)publisher.publish_with([=]() noexcept { return Payload{sent, i, 0, 0}; });
  });
}
BENCHMARK(BM_DispatchLatency)
    ->ArgNames({"per_second", "ring"})
    ->ArgsProduct({{1'000'000, 100'000}, {0, 1}})
    ->Iterations(1)
    ->UseRealTime();

template <class Push>
void time_stream(benchmark::State& state, std::atomic<std::uint64_t>& heard, Push push) {
  pin(0);
  std::uint64_t pushed = 0;
  for (auto _ : state) {
    const std::int64_t since = ticks_ns();
    for (std::uint64_t i = 0; i < kStream; ++i) {
      while (!push(i)) engine::pause();
    }
    pushed += kStream;
    while (heard.load(std::memory_order_relaxed) < pushed) engine::pause();
    state.SetIterationTime(static_cast<double>(ticks_ns() - since) * 1e-9);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(pushed));
}

template <class Raw>
void BM_RawThroughput(benchmark::State& state) {
  Raw raw;
  std::atomic<std::uint64_t> heard{0};
  std::uint64_t sum = 0;
  const RawWorker worker(
      raw,
      [&](const Payload& p) {
        sum += p.number;
        heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      },
      300);
  time_stream(state, heard, [&raw](std::uint64_t i) {
    return raw.push([i] { return Payload{i, i, i, i}; });
  });
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(BM_RawThroughput<RawQueue>)->UseManualTime();
BENCHMARK(BM_RawThroughput<RawRing>)->UseManualTime();

void BM_Throughput(benchmark::State& state) {
  Bus bus({.workers = 1, .worker_cpus = "1"});
  auto& channel = bus.channel<Payload>("bench.throughput");
  std::atomic<std::uint64_t> heard{0};
  std::uint64_t sum = 0;
  const Subscription sub = channel.subscribe([&](const Payload& p) {
    sum += p.number;
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  });
  auto publisher =
      channel
          .publisher({.capacity_events = state.range(0) == 0 ? 1u << 20 : 65536u,
                      .lane = state.range(0) == 0 ? LaneKind::moodycamel : LaneKind::ring})
          .value();
  time_stream(state, heard, [&publisher](std::uint64_t i) {
    return static_cast<bool>(publisher.publish_with([i]() noexcept {
      return Payload{i, i, i, i};
    }));
  });
  benchmark::DoNotOptimize(sum);
}
BENCHMARK(BM_Throughput)->ArgName("ring")->Arg(0)->Arg(1)->UseManualTime();

}  // namespace
}  // namespace ringmain::bench
