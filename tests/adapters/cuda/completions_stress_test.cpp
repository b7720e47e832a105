// Eight threads, many streams that come and go, work that is slow and work that never ends: each
// ticket that was given is heard once.
#include <atomic>
#include <random>
#include <thread>

#include "tests/adapters/cuda/completions_fixture.hpp"

namespace ringmain::cuda {
namespace {

using std::chrono::minutes;

class CompletionsStressTest : public CompletionsFixture,
                              public testing::WithParamInterface<Strategy> {
 protected:
  static constexpr unsigned kThreads = 8;
  static constexpr int kTurns = 1500;

  /// One thread's: arms on streams of its own and on shared ones, holds and lets go, destroys.
  void arm_along(Completions& completions, unsigned me, std::atomic<std::uint64_t>& given) {
    (void)cudaSetDevice(0);
    std::mt19937 random(me);
    std::vector<cudaStream_t> own(4);
    for (cudaStream_t& each : own) (void)cudaStreamCreate(&each);
    std::vector<std::uint64_t> held;
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto which = static_cast<unsigned>(random() % 5);
      cudaStream_t on = which == 4 ? stream : own[which];
      if (random() % 8 == 0) held.push_back(fake_cuda_hold(on));
      given += completions.arm(on, me) ? 1 : 0;
      if (random() % 4 == 0 && !held.empty()) {
        fake_cuda_finish(held.back());
        held.pop_back();
      }
      if (which != 4 && random() % 16 == 0) {
        (void)cudaStreamDestroy(own[which]);
        (void)cudaStreamCreate(&own[which]);
      }
    }
    for (const std::uint64_t each : held) fake_cuda_finish(each);
    for (cudaStream_t each : own) (void)cudaStreamDestroy(each);
  }
  std::uint64_t arm_in_all(Completions& completions) {
    std::atomic<std::uint64_t> given{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] { arm_along(completions, i, given); });
    for (auto& thread : threads) thread.join();
    return given;
  }
};
INSTANTIATE_TEST_SUITE_P(, CompletionsStressTest,
                         testing::Values(Strategy::memory_writes, Strategy::event_queries,
                                         Strategy::host_functions),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(CompletionsStressTest, EveryTicketIsHeardOnce) {
  const Heard heard(bus);
  Completions completions = made({.strategy = GetParam(), .lanes_max = 48, .lane_tickets = 8});
  const std::uint64_t given = arm_in_all(completions);
  ASSERT_TRUE(heard.await(given));
  EXPECT_EQ(completions.end(minutes(10)), Detached::done);
  EXPECT_EQ(completions.figures().armed, given);
  EXPECT_EQ(completions.figures().completed, given);
  expect_balanced(completions, heard);
}

TEST_P(CompletionsStressTest, EveryTicketIsHeardOnceThoughTheEndComesInTheMiddle) {
  for (unsigned round = 0; round < 10; ++round) {
    const Heard heard(bus);
    Completions completions = made({.strategy = GetParam(), .lane_tickets = 8});
    std::thread ends([&] {
      (void)tests::eventually([&] { return completions.figures().armed > 100 * round; });
      EXPECT_EQ(completions.end(milliseconds(1)), Detached::done);
    });
    const std::uint64_t given = arm_in_all(completions);
    ends.join();
    EXPECT_EQ(completions.figures().armed, given);
    expect_balanced(completions, heard);
    EXPECT_EQ(heard.size(), given);
    fake_cuda_settle();
  }
}

TEST_P(CompletionsStressTest, EveryTicketIsHeardOnceThoughTheGpuBreaksInTheMiddle) {
  for (unsigned round = 0; round < 10; ++round) {
    const Heard heard(bus);
    Completions completions = made({.strategy = GetParam(), .lane_tickets = 8});
    std::thread breaks([&] {
      (void)tests::eventually([&] { return completions.figures().armed > 100 * round; });
      fake_cuda_break(719);
    });
    const std::uint64_t given = arm_in_all(completions);
    breaks.join();
    ASSERT_TRUE(heard.await(given));
    EXPECT_EQ(completions.end(minutes(10)), Detached::done);
    EXPECT_EQ(completions.figures().armed, given);
    expect_balanced(completions, heard);
    fake_cuda_settle();
    reset_device();
    (void)cudaStreamCreate(&stream);
  }
}

}  // namespace
}  // namespace ringmain::cuda
