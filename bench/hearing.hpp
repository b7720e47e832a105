// The callbacks of the benchmarks: they count, can be held inside a call, and keep latencies.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/system/atomics.hpp"
#include "engine/system/cache_line.hpp"

#include "bench/events.hpp"
#include "bench/machine.hpp"

namespace ringmain::bench {

/// Counts what it hears. An event numbered kHold keeps it inside the call until go_on(): spinning,
/// or asleep if another thread needs its core meanwhile.
struct alignas(engine::kLineBytes) Counter {
  template <class E>
  void operator()(const E& event) noexcept {
    if (event.number == kHold) [[unlikely]]
      wait_inside();
    sum += event.number;
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void wait_inside() noexcept {
    inside.store(true, std::memory_order_release);
    if (sleeps) inside.wait(true, std::memory_order_acquire);
    while (inside.load(std::memory_order_acquire)) engine::pause();
    began = ticks();
  }
  void wait_until_inside() const noexcept {
    while (!inside.load(std::memory_order_acquire)) engine::pause();
  }
  void go_on() noexcept {
    inside.store(false, std::memory_order_release);
    if (sleeps) inside.notify_all();
  }
  void wait_for(std::uint64_t events) const noexcept {
    while (heard.load(std::memory_order_acquire) < events) engine::pause();
  }

  std::atomic<std::uint64_t> heard{0};
  std::uint64_t sum = 0;
  std::int64_t began = 0;  // when the last hold ended
  bool sleeps = false;
  alignas(engine::kLineBytes) std::atomic<bool> inside{false};
};

/// Counts, and takes the time at the event numbered `last`: a whole backlog, on the worker.
struct Stopwatch : Counter {
  template <class E>
  void operator()(const E& event) noexcept {
    if (event.number == last.load(std::memory_order_relaxed)) [[unlikely]]
      ended = ticks();
    Counter::operator()(event);
  }
  std::atomic<std::uint64_t> last{0};
  std::int64_t ended = 0;
};

/// Keeps how long each event was under way.
struct alignas(engine::kLineBytes) Latencies {
  explicit Latencies(std::size_t room) { samples.reserve(room); }
  template <class E>
  void operator()(const E& event) noexcept {
    const std::int64_t now = ticks();
    if (samples.size() < samples.capacity()) samples.push_back(now - event.sent);
    heard.store(heard.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void wait_for(std::uint64_t events) const noexcept {
    while (heard.load(std::memory_order_acquire) < events) engine::pause();
  }
  std::vector<std::int64_t> samples;
  alignas(engine::kLineBytes) std::atomic<std::uint64_t> heard{0};
};

}  // namespace ringmain::bench
