// Do hooks come and go at random while all operations run, and is each outcome everybody's?
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/loopback.hpp"

#include "tests/adapters/collective/coming_and_going.hpp"
#include "tests/adapters/collective/heard.hpp"
#include "tests/adapters/collective/loopback_operations.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using collective::Communicator;
using collective::Completed;
using collective::CompletionHookArgs;
using collective::Failed;
using collective::Hook;
using collective::How;
using collective::Issued;
using collective::PostHookArgs;
using collective::PreHookArgs;
using loopback::Rank;
using loopback::State;
using loopback::Work;
using loopback::World;

enum : int { kRanks = 4, kRounds = 12 };

/// Hooks that stay, and count.
struct Counts {
  explicit Counts(const Communicator& comm)
      : hooks{std::move(comm.pre_hook([this](const PreHookArgs&) {
                              ++pre;
                              return Verdict::allow();
                            })
                            .value()),
              std::move(comm.post_hook([this](const PostHookArgs&) { ++post; }).value()),
              std::move(
                  comm.completion_hook([this](const CompletionHookArgs&) { ++ends; }).value())} {}
  std::atomic<std::uint64_t> pre{0}, post{0}, ends{0};
  Hook hooks[3];
};

TEST(LoopbackStressTest, HooksComeAndGoAtRandomWhileAllOperationsRun) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  const World world = World::make(bus, {.ranks = kRanks}).value();
  std::vector<std::unique_ptr<Counts>> counts;
  for (int rank = 0; rank < kRanks; ++rank)
    counts.push_back(std::make_unique<Counts>(world.rank(rank).comm()));
  std::atomic<bool> working{true};
  std::vector<std::thread> others;
  for (unsigned t = 0; t < 2; ++t) {
    others.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      while (working)
        come_and_go(world.rank(static_cast<std::int32_t>(random() % kRanks)).comm(), random);
    });
  }
  world.run([](Rank& rank) {
    for (int round = 0; round < kRounds; ++round) {
      for (const NamedCheck& one : kChecks) {
        one.check(rank, static_cast<std::uint64_t>(round % 4) * 3, round % 2 == 0);
      }
    }
  });
  working = false;
  for (auto& thread : others) thread.join();

  std::uint64_t all = 0;
  for (const NamedCheck& one : kChecks) all += static_cast<std::uint64_t>(kRounds * one.operations);
  for (const auto& one : counts) {
    EXPECT_EQ(one->pre, all);
    EXPECT_EQ(one->post, all);
    EXPECT_EQ(one->ends, all);
  }
  EXPECT_TRUE(failed.all().empty());
  std::map<std::uint64_t, int> ends;
  for (const auto& end : completed.all()) ++ends[end.op_id];
  for (const auto& begin : issued.all()) EXPECT_EQ(ends[begin.op_id], 1);
  EXPECT_EQ(ends.size(), all * kRanks);
}

TEST(LoopbackStressTest, AnAbortAtAnyMomentIsOneOutcomeForAllAndEndsEachOnce) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  for (unsigned turn = 0; turn < 40; ++turn) {
    const World world = World::make(bus, {.ranks = 3}).value();
    std::minstd_rand random(turn + 1);
    const int after = static_cast<int>(random() % 60);
    std::atomic<int> calls{0};
    std::vector<std::vector<State>> states(3);
    std::thread aborts([&] {
      EXPECT_TRUE(eventually([&] { return calls >= after; }));
      (void)world.rank(static_cast<std::int32_t>(turn % 3)).comm().abort("at random");
    });
    world.run([&](Rank& rank) {
      auto& mine = states[static_cast<std::size_t>(rank.rank())];
      std::vector<std::int64_t> data(50), more(50);
      const loopback::Values values(data), others(more);
      for (bool going = true; going;) {
        const Work first = rank.all_reduce({.tensor = values, .async_op = true});
        const Work second = rank.broadcast({.tensor = others, .root = 0});
        ++calls;
        mine.push_back(first.wait());
        mine.push_back(second.state());
        going = first && second;
        if (!going) {
          EXPECT_EQ((first ? second : first).how(), How::aborted);
        }
      }
    });
    aborts.join();
    EXPECT_EQ(states[1], states[0]);
    EXPECT_EQ(states[2], states[0]);
  }
  std::map<std::uint64_t, int> ends;
  for (const auto& end : completed.all()) ++ends[end.op_id];
  for (const auto& end : failed.all()) ++ends[end.op_id];
  for (const auto& begin : issued.all()) EXPECT_EQ(ends[begin.op_id], 1);
  EXPECT_EQ(ends.size(), issued.all().size());
}

}  // namespace
}  // namespace ringmain::tests
