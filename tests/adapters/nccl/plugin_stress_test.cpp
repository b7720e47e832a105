// Do the counts add up while threads begin, end, and end again what others began, communicators
// come and go, and listeners as well?
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/adapters/nccl/plugin_driver.hpp"

namespace ringmain::nccl {
namespace {

constexpr int kThreads = 3;
constexpr int kRounds = 2000;

/// Handles that threads take from each other: most are stale when they come back.
using Shared = std::array<std::atomic<void*>, 64>;

class Threads {
 public:
  Threads(const PluginTable& table, std::uint64_t seed) : table_(table), seed_(seed) {
    for (auto& driver : drivers_) driver = std::make_unique<Driver>(table);
  }
  /// One thread's stream.
  void play(int thread) {
    std::mt19937_64 random(seed_ + static_cast<std::uint64_t>(thread));
    for (int i = 0; i < kRounds; ++i) {
      const Driver& nccl = *drivers_[random() % drivers_.size()];
      auto& place = shared_[random() % shared_.size()];
      switch (random() % 8) {
        case 0:
          (void)place.exchange(nccl.plan());  // whoever had it never stops it
          break;
        case 1:
          nccl.stop(place.load());  // perhaps again
          break;
        case 2: {
          void* const operation = nccl.enqueue(2);
          nccl.kernel_stop(nccl.kernel(operation, 0, random()), random());
          nccl.kernel_stop(nccl.kernel(operation, 1, random()), random());
          break;
        }
        case 3: {
          void* const op = nccl.proxy_op(place.load(), 0);
          void* const step = nccl.step(op, static_cast<int>(random() % 4));
          nccl.record(step, abi::kSendWait);
          if (random() % 2 == 0) nccl.stop(step);
          (void)place.exchange(op);
          break;
        }
        case 4:
          nccl.record(place.load(), abi::kRecvGpuWait);
          break;
        case 5:
          (void)place.exchange(nccl.step(place.load(), static_cast<int>(random() % 4)));
          break;
        case 6:
          (void)nccl.enqueue(4);  // of which nothing more is heard
          break;
        default: {
          if (random() % 8 != 0) break;  // its end looks at all that is open
          Driver shortly(table_, "shortly");
          (void)shortly.enqueue(2);
          (void)shortly.plan();
        }
      }
    }
  }
  void finish() {
    for (auto& driver : drivers_) driver->finalize();
  }

 private:
  const PluginTable& table_;
  const std::uint64_t seed_;
  std::array<std::unique_ptr<Driver>, 3> drivers_;
  Shared shared_{};
};

TEST(PluginStressTest, WhatBeganIsStoppedStaleOrAbortedWhateverComesBackTooLate) {
  const std::uint64_t seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  Bus bus;
  std::atomic<std::uint64_t> heard{0};
  const auto count = [&](const EventView&) { ++heard; };
  auto all = bus.subscribe("nccl.*", count);
  Options with;
  with.kernel_channels = KernelChannels::always;
  const Counts before = Source::counts();
  auto source = Source::attach(bus, with).value();
  PluginTable table(7);
  Threads threads(table, seed);
  std::vector<std::thread> running;
  std::atomic<bool> over{false};
  for (int i = 0; i < kThreads; ++i) running.emplace_back([&, i] { threads.play(i); });
  std::thread listener([&] {
    for (int looks = 0; !over && looks < 20; ++looks) {
      auto more = bus.channel<Stalled>().subscribe([](const Stalled&) {});
      if (looks < 2) (void)source.tell_stalled();
      auto ends = bus.channel<collective::Completed>().subscribe([](const auto&) {});
    }
  });
  for (auto& thread : running) thread.join();
  over = true;
  listener.join();
  threads.finish();
  EXPECT_EQ(source.detach(), Detached::done);
  // Of detached proxies and their steps no communicator is known: what is open of those stays so.
  const Counts now = since(before);
  EXPECT_GE(now.started, now.stopped + now.stale + now.aborted);
  EXPECT_GT(now.stopped, 0);
  EXPECT_GT(now.stale_stops, 0);
  EXPECT_GT(now.aborted, 0);
  ASSERT_TRUE(bus.flush(nanoseconds(-1)));
  const auto balanced = bus.verify_accounting();
  EXPECT_TRUE(balanced) << balanced.error().message;
}

}  // namespace
}  // namespace ringmain::nccl
