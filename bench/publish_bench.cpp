// Question: what does a publish cost the publishing thread — when nobody listens (row 1), and in a
// burst while a worker is awake (row 2a) — against a load and a branch, and against a raw enqueue?
#include <atomic>
#include <thread>

#include <benchmark/benchmark.h>

#include "ringmain/bus/bus.hpp"

#include "ringmain/bench/reference.hpp"

namespace ringmain::bench {
namespace {

enum : int { kBurst = 8192 };

/// Row 1's reference: a relaxed load and a predicted branch.
void BM_LoadAndBranch(benchmark::State& state) {
  std::atomic<std::uint32_t> line{0};
  auto* where = &line;
  benchmark::DoNotOptimize(where);
  std::uint64_t taken = 0;
  for (auto _ : state) {
    if (where->load(std::memory_order_relaxed) != 0) [[unlikely]]
      ++taken;
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(taken);
}
BENCHMARK(BM_LoadAndBranch);

void BM_PublishUnheard(benchmark::State& state) {
  Bus bus;
  auto publisher = bus.channel<Payload>("bench.unheard").publisher();
  std::uint64_t n = 0;
  for (auto _ : state) {
    auto result = publisher.publish_with([&n]() noexcept { return Payload{0, ++n, 0, 0}; });
    benchmark::DoNotOptimize(result);
    benchmark::ClobberMemory();
  }
  if (n != 0) state.SkipWithError("an event was built although nobody listens");
}
BENCHMARK(BM_PublishUnheard);

void BM_WantedUnheard(benchmark::State& state) {
  Bus bus;
  auto publisher = bus.channel<Payload>("bench.unheard").publisher();
  std::uint64_t heard = 0;
  for (auto _ : state) {
    if (publisher.wanted()) [[unlikely]]
      ++heard;
    benchmark::ClobberMemory();
  }
  if (heard != 0) state.SkipWithError("nobody listens");
}
BENCHMARK(BM_WantedUnheard);

/// Times bursts of kBurst calls of `push`; `settle` empties the queue between them, untimed.
template <class Push, class Settle>
void time_bursts(benchmark::State& state, Push push, Settle settle) {
  pin(0);
  for (auto _ : state) {
    const std::int64_t since = ticks_ns();
    for (int i = 0; i < kBurst; ++i) push(static_cast<std::uint64_t>(i));
    state.SetIterationTime(static_cast<double>(ticks_ns() - since) * 1e-9);
    settle();
  }
  state.counters["ns_per_publish"] = benchmark::Counter(
      static_cast<double>(kBurst) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Alone: nobody takes anything while the burst is timed; then core 1 does, so that the slots'
/// lines come back from there in both cases.
template <class Raw>
void BM_RawAlone(benchmark::State& state) {
  Raw raw;
  std::atomic<std::uint64_t> target{0}, heard{0};
  const std::jthread drainer([&](const std::stop_token& stop) {
    pin(1);
    std::uint64_t taken = 0;
    while (!stop.stop_requested()) {
      if (taken < target.load(std::memory_order_acquire)) {
        taken += raw.take([](const Payload& p) { benchmark::DoNotOptimize(&p); });
        heard.store(taken, std::memory_order_release);
      }
      engine::pause();
    }
  });
  std::uint64_t pushed = 0;
  time_bursts(
      state,
      [&](std::uint64_t i) {
        pushed += raw.push([i] { return Payload{i, i, i, i}; }) ? 1u : 0u;
      },
      [&] {
        target.store(pushed, std::memory_order_release);
        while (heard.load(std::memory_order_acquire) != pushed) engine::pause();
      });
}
BENCHMARK(BM_RawAlone<RawQueue>)->UseManualTime();
BENCHMARK(BM_RawAlone<RawRing>)->UseManualTime();

/// Alone: the worker that holds the lease is in a callback all the while, so only the publisher
/// runs.
void BM_PublishAlone(benchmark::State& state) {
  Bus bus({.workers = 1, .worker_cpus = "1"});
  auto& channel = bus.channel<Payload>("bench.alone");
  std::atomic<std::uint32_t> held{0}, inside{0};
  const Subscription sub = channel.subscribe([&](const Payload& p) {
    if (p.number != ~0ull) return;
    inside = 1;
    inside.notify_all();
    held.wait(1);
  });
  auto publisher =
      channel.publisher({.lane = state.range(0) == 0 ? LaneKind::moodycamel : LaneKind::ring})
          .value();
  const auto hold = [&] {
    held = 1;
    inside = 0;
    (void)publisher.publish({0, ~0ull, 0, 0});
    inside.wait(0);
  };
  hold();
  time_bursts(
      state,
      [&](std::uint64_t i) {
        (void)publisher.publish_with([i]() noexcept { return Payload{i, i, i, i}; });
      },
      [&] {
        held = 0;
        held.notify_all();
        if (!bus.flush(std::chrono::seconds(10))) state.SkipWithError("not delivered");
        hold();
      });
  held = 0;
  held.notify_all();
}
BENCHMARK(BM_PublishAlone)->ArgName("ring")->Arg(0)->Arg(1)->UseManualTime();

template <class Raw>
void BM_RawLive(benchmark::State& state) {
  Raw raw;
  std::atomic<std::uint64_t> heard{0};
  const auto hear = [&heard](const Payload&) {
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  };
  const RawWorker worker(raw, hear, 300);
  std::uint64_t pushed = 0;
  time_bursts(
      state,
      [&](std::uint64_t i) {
        pushed += raw.push([i] { return Payload{i, i, i, i}; }) ? 1u : 0u;
      },
      [&] {
        while (heard.load(std::memory_order_relaxed) != pushed) engine::pause();
      });
}
BENCHMARK(BM_RawLive<RawQueue>)->UseManualTime();
BENCHMARK(BM_RawLive<RawRing>)->UseManualTime();

void BM_PublishLive(benchmark::State& state) {
  Bus bus({.workers = 1, .worker_cpus = "1"});
  auto& channel = bus.channel<Payload>("bench.live");
  std::atomic<std::uint64_t> heard{0};
  const Subscription sub = channel.subscribe([&heard](const Payload&) {
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  });
  auto publisher =
      channel.publisher({.lane = state.range(0) == 0 ? LaneKind::moodycamel : LaneKind::ring})
          .value();
  std::uint64_t pushed = 0;
  time_bursts(
      state,
      [&](std::uint64_t i) {
        pushed += publisher.publish_with([i]() noexcept { return Payload{i, i, i, i}; }) ? 1u : 0u;
      },
      [&] {
        while (heard.load(std::memory_order_relaxed) != pushed) engine::pause();
      });
}
BENCHMARK(BM_PublishLive)->ArgName("ring")->Arg(0)->Arg(1)->UseManualTime();

}  // namespace
}  // namespace ringmain::bench
