// Do hooks come and go safely while operations run, and does each group end once?
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/collective/communicator.hpp"

#include "tests/adapters/collective/coming_and_going.hpp"
#include "tests/adapters/collective/communicator_parts.hpp"
#include "tests/adapters/collective/heard.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

using collective::Aborted;
using collective::AbortHookArgs;
using collective::Barrier;
using collective::Communicator;
using collective::Completed;
using collective::CompletionHookArgs;
using collective::Failed;
using collective::Group;
using collective::GroupChange;
using collective::Issued;
using collective::Operation;
using collective::PostHookArgs;
using collective::PreHookArgs;

enum : int { kThreads = 2, kOperations = 4'000 };

TEST(CommunicatorStressTest, HooksComeAndGoWhileOperationsRun) {
  Bus bus;
  const auto comm = Communicator::make(bus, world()).value();
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  std::atomic<std::uint64_t> pre_calls{0}, post_calls{0}, ends{0};
  const auto pre = comm.pre_hook([&](const PreHookArgs&) {
    ++pre_calls;
    return Verdict::allow();
  });
  const auto post = comm.post_hook([&](const PostHookArgs&) { ++post_calls; });
  const auto end = comm.completion_hook([&](const CompletionHookArgs&) { ++ends; });
  std::atomic<int> issuing{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kOperations; ++i) {
        EXPECT_TRUE(
            comm.run(all_reduced(), [](const Operation& one) { EXPECT_TRUE(one.completed()); }));
      }
      --issuing;
    });
  }
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      while (issuing != 0) come_and_go(comm, random);
    });
  }
  for (auto& thread : threads) thread.join();
  const std::uint64_t all = std::uint64_t{kThreads} * kOperations;
  EXPECT_EQ(pre_calls, all);
  EXPECT_EQ(post_calls, all);
  EXPECT_EQ(ends, all);
  EXPECT_EQ(issued.all().size(), all);
  EXPECT_EQ(completed.all().size(), all);
}

TEST(CommunicatorStressTest, PartsComeAndGoWithTheirHooksAndEachOperationEndsOnce) {
  Bus bus;
  Heard<Issued> issued(bus);
  Heard<Completed> completed(bus);
  Heard<Failed> failed(bus);
  const auto comm = Communicator::make(bus, world()).value();
  std::atomic<bool> working{true};
  std::atomic<std::uint64_t> calls{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (working) {
      auto hook = comm.post_hook([&](const PostHookArgs&) { ++calls; });
      ASSERT_TRUE(hook);
      std::this_thread::yield();
    }
  });
  threads.emplace_back([&] {
    while (working) (void)Communicator::find(bus, "half");
  });
  for (int i = 0; i < 200; ++i) {
    auto options = world();
    options.name = "half";
    const auto part = comm.part(options).value();
    std::thread ender([part] { part.end(); });
    for (int n = 0; n < 10; ++n) {
      (void)part.run(Barrier{}, [n](const Operation& one) {
        if (n % 2 == 0) (void)one.completed();
      });
    }
    ender.join();
    EXPECT_TRUE(part.ended());
  }
  working = false;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(issued.all().size(), completed.all().size() + failed.all().size());
}

/// Who looks for one may hold another for a moment, as the last, and so end it.
TEST(CommunicatorStressTest, OneMayEndWhereItIsLookedFor) {
  Bus bus;
  std::atomic<int> ends{0};
  const auto heard = bus.channel<Group>().subscribe_inline([&](const Group& said) {
    if (said.change != GroupChange::ended) return;
    (void)Communicator::find(bus, "short");
    ++ends;
  });
  std::atomic<bool> working{true};
  std::thread finder([&] {
    while (working) (void)Communicator::find(bus, "short", 2);
  });
  auto options = world();
  options.name = "short";
  const int rounds = is_sanitized() ? 2'000 : 20'000;  // each end looks through the open operations
  for (int i = 0; i < rounds; ++i) (void)Communicator::make(bus, options).value();
  working = false;
  finder.join();
  EXPECT_EQ(ends, rounds);
}

TEST(CommunicatorStressTest, ManyAbortAtOnceAndItHappensOnce) {
  for (int round = 0; round < 100; ++round) {
    Bus bus;
    std::atomic<int> given_up{0}, hooks{0}, done{0};
    auto options = world();
    options.abort = [&](Name) { ++given_up; };
    const auto comm = Communicator::make(bus, options).value();
    (void)comm.register_abort_hook([&](const AbortHookArgs&) { ++hooks; });
    (void)comm.register_abort_hook([&](const AbortHookArgs&) { ++hooks; });
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        if (comm.abort("x", "test", std::chrono::hours(1)).how == Aborted::How::done) ++done;
      });
    }
    threads.emplace_back([&] { (void)comm.run(Barrier{}, [](const Operation&) {}); });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(hooks, 2);
    EXPECT_EQ(given_up, 1);
  }
}

// More threads than have a word of their own to count in.
TEST(CommunicatorStressTest, EachCollectiveIsCountedOnceWhileListenersComeAndGo) {
  enum : int { kCounting = 6 };
  Bus bus;
  const auto comm = Communicator::make(bus, world()).value();
  std::mutex mutex;
  std::set<std::uint64_t> numbers;
  const auto hear = [&] {
    return bus.channel<Issued>().subscribe_inline([&](const Issued& said) {
      thread_local std::uint64_t last = 0;  // of this thread, which issues on nothing else
      EXPECT_GT(said.sequence, last);
      last = said.sequence;
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(numbers.insert(said.sequence).second) << said.sequence;
    });
  };
  std::atomic<int> issuing{kCounting};
  std::vector<std::thread> threads;
  for (int t = 0; t < kCounting; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kOperations; ++i) (void)comm.run(Barrier{}, [](const Operation&) {});
      --issuing;
    });
  }
  while (issuing != 0) {
    const auto heard = hear();
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  Heard<Issued> next(bus);
  (void)comm.run(Barrier{}, [](const Operation&) {});
  ASSERT_EQ(next.all().size(), 1u);
  EXPECT_EQ(next.all()[0].sequence, std::uint64_t{kCounting} * kOperations + 1);
}

/// Odd while somebody listens for sure: what begins and ends at the same odd number was heard.
TEST(CommunicatorStressTest, WhatIsIssuedAfterSubscribeReturnedIsNeverPassedOver) {
  Bus bus;
  const auto comm = Communicator::make(bus, world()).value();
  std::atomic<std::uint64_t> visit{0}, overlooked{0}, heard{0};
  std::atomic<bool> working{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (working) {
        const std::uint64_t before = visit;
        std::uint64_t id = 0;
        (void)comm.run(Barrier{}, [&id](const Operation& one) {
          id = one.id();
          (void)one.completed();
        });
        if (before % 2 == 0 || visit != before) continue;
        ++(id == 0 ? overlooked : heard);
      }
    });
  }
  const std::uint64_t visits = is_sanitized() ? 500 : 5'000;
  for (std::uint64_t i = 0; i < visits; ++i) {
    const auto hears = bus.channel<Completed>().subscribe([](const Completed&) {});
    const std::uint64_t before = heard;
    ++visit;
    while (heard == before && overlooked == 0) std::this_thread::yield();
    ++visit;
  }
  working = false;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(overlooked, 0u);
}

}  // namespace
}  // namespace ringmain::tests
