// Do pairs, spans and removals hold when many threads compile, register and leave at once?
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/compile/scope.hpp"
#include "adapters/sources/compile/trace_tap.hpp"

namespace ringmain::compile {
namespace {

constexpr int kThreads = 4;
constexpr int kCompiles = 1500;

TEST(RegistryStressTest, OutermostPairsCloseAndSpansAreWholeHoweverCompilesOverlap) {
  Bus bus;
  Registry compiles(bus);
  std::atomic<std::int64_t> starts{0};
  std::atomic<std::int64_t> ends{0};
  std::atomic<std::int64_t> opened{0};
  std::atomic<std::int64_t> closed{0};
  std::atomic<std::uint64_t> pairs_opened{0};
  std::atomic<std::uint64_t> pairs_closed{0};
  const CallOptions each{.every = true, .here = true};
  (void)compiles.on_start([&](const Start&) { ++starts; }, each);
  (void)compiles.on_end([&](const End&) { ++ends; }, each);
  (void)compiles.on_start(
      [&](const Start& s) {
        ++opened;
        pairs_opened += s.pair;
      },
      {.here = true});
  (void)compiles.on_end(
      [&](const End& e) {
        ++closed;
        pairs_closed += e.pair;
      },
      {.here = true});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&compiles] {
      for (int i = 0; i < kCompiles; ++i) {
        const Scope outer(compiles, {.trigger = Trigger::dynamo});
        if (i % 3 == 0) const Scope inner(compiles, {.trigger = Trigger::lazy_backward});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(starts, kThreads * kCompiles * 4 / 3);
  EXPECT_EQ(ends, starts);
  EXPECT_GE(opened, 1);
  EXPECT_EQ(opened, closed);
  EXPECT_EQ(pairs_opened, pairs_closed);  // the same ones
  EXPECT_EQ(compiles.active(), 0u);
}

TEST(RegistryStressTest, NoCallbackIsCalledAfterItsRemovalWhileOthersCompile) {
  Bus bus;
  Registry compiles(bus);
  std::atomic<bool> stop{false};
  std::vector<std::thread> compiling;
  for (int t = 0; t < 2; ++t) {
    compiling.emplace_back([&] {
      while (!stop) const Scope scope(compiles, {.trigger = Trigger::dynamo});
    });
  }
  std::vector<std::thread> registering;
  std::atomic<std::uint64_t> called{0};
  for (int t = 0; t < 2; ++t) {
    registering.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 400; ++i) {
        auto alive =
            std::make_unique<int>(7);  // freed below: a late call would be a use after free
        const CallOptions options{.every = true, .here = random() % 2 == 0};
        const auto handle = compiles.on_start(
            [&called, alive = alive.get()](const Start&) { called += *alive == 7 ? 1 : 0; },
            options);
        if (random() % 4 == 0) (void)compiles.figures(handle);
        EXPECT_EQ(compiles.remove(handle), Detached::done);
        alive.reset();
      }
    });
  }
  for (std::thread& thread : registering) thread.join();
  (void)compiles.on_start([&called](const Start&) { ++called; }, {.here = true});
  (void)compiles.on_start([&called](const Start&) { ++called; });
  compiles.clear();
  EXPECT_EQ(compiles.size(), 0u);
  const std::uint64_t before = called;
  { const Scope scope(compiles, {.trigger = Trigger::dynamo}); }
  EXPECT_TRUE(bus.flush(std::chrono::seconds(30)));
  EXPECT_EQ(called, before);
  stop = true;
  for (std::thread& thread : compiling) thread.join();
}

TEST(TapStressTest, RecordsAndCallbacksOfManyThreadsAreAllCounted) {
  Bus bus;
  TraceTap tap(bus);
  std::atomic<std::uint64_t> starts{0};
  std::atomic<std::uint64_t> ends{0};
  auto starting = bus.channel<Start>().subscribe_inline([&](const Start&) { ++starts; });
  auto ending = bus.channel<End>().subscribe_inline([&](const End&) { ++ends; });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&tap, t] {
      for (int i = 0; i < 300; ++i) {
        const std::string keys =
            ", \"frame_id\": " + std::to_string(i * kThreads + t) + ", \"frame_compile_id\": 1}";
        tap.record("{\"dynamo_start\": {}" + keys, "");
        (void)tap.started(Trigger::lazy_backward, std::to_string(i) + "/7");
        tap.guard_checked(i % 2 == 0);
        tap.ended(Trigger::lazy_backward, "None");
        tap.record("{\"compilation_metrics\": {}" + keys, "");
        (void)tap.counts();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  tap.finish();
  EXPECT_EQ(tap.counts().read, kThreads * 300u * 2);
  EXPECT_EQ(tap.counts().mapped, tap.counts().read);
  EXPECT_EQ(starts, ends);
  EXPECT_GE(starts, kThreads * 300u);
}

}  // namespace
}  // namespace ringmain::compile
