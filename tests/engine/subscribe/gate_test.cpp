// May a call still start, is one running, and does exactly one thread destroy the captures?
#include "engine/subscribe/gate.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"

namespace ringmain::engine {
namespace {

using tests::eventually;

TEST(GateTest, NoCallStartsOnceItIsClosed) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.leave());
  EXPECT_TRUE(gate.close());
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(gate.enter());
  EXPECT_FALSE(gate.leave());
}

TEST(GateTest, OnlyTheFirstCloseClosesIt) {
  Gate gate;
  EXPECT_TRUE(gate.close());
  EXPECT_FALSE(gate.close());
}

TEST(GateTest, WhoeverWaitsOnAnIdleGateDestroysOnce) {
  Gate gate;
  gate.close();
  EXPECT_EQ(gate.wait(-1), Gate::Waited::claimed);
  gate.gone();
  EXPECT_EQ(gate.wait(-1), Gate::Waited::gone);
}

TEST(GateTest, AWaitGivesUpWhileACallRunsAndSucceedsAfterwards) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  gate.close();
  EXPECT_EQ(gate.wait(0), Gate::Waited::timeout);
  EXPECT_EQ(gate.wait(1'000'000), Gate::Waited::timeout);
  EXPECT_FALSE(gate.leave());
  EXPECT_EQ(gate.wait(-1), Gate::Waited::claimed);
}

TEST(GateTest, ADeferredCloseOfAnIdleGateDestroysAtOnce) {
  Gate gate;
  EXPECT_TRUE(gate.close_deferred());
  EXPECT_FALSE(gate.close_deferred());
}

TEST(GateTest, TheLastCallOutDestroysAfterADeferredClose) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.close_deferred());
  EXPECT_FALSE(gate.leave());
  EXPECT_TRUE(gate.leave());
}

TEST(GateTest, AWorkerThatBouncesLateDoesNotDestroyAgain) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.close_deferred());
  EXPECT_TRUE(gate.leave());
  gate.gone();
  EXPECT_FALSE(gate.enter());
  EXPECT_FALSE(gate.leave());
  EXPECT_EQ(gate.wait(-1), Gate::Waited::gone);
}

TEST(GateTest, AClosedGateThatBecomesDeferredIsDestroyedByItsLastCall) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  gate.close();
  EXPECT_FALSE(gate.close_deferred());
  EXPECT_TRUE(gate.leave());
}

TEST(GateTest, AWaitAfterADeferredCloseReturnsOnceTheCapturesAreDestroyed) {
  Gate gate;
  ASSERT_TRUE(gate.enter());
  EXPECT_FALSE(gate.close_deferred());
  EXPECT_EQ(gate.wait(0), Gate::Waited::timeout);
  // No thread waits yet: one that does may find no call running before leave() looks, and destroy.
  ASSERT_TRUE(gate.leave());
  EXPECT_EQ(gate.wait(0), Gate::Waited::timeout);
  std::atomic<bool> destroyed{false};
  std::thread waiter([&] {
    EXPECT_EQ(gate.wait(-1), Gate::Waited::gone);
    EXPECT_TRUE(destroyed);
  });
  destroyed = true;
  gate.gone();
  waiter.join();
}

TEST(GateTest, AThreadThatWaitsAndTheLastCallOutDestroyOnceBetweenThem) {
  for (int round = 0; round < 300; ++round) {
    Gate gate;
    ASSERT_TRUE(gate.enter());
    EXPECT_FALSE(gate.close_deferred());
    std::atomic<int> destroyed{0};
    std::thread waiter([&] {
      if (gate.wait(-1) == Gate::Waited::claimed) {
        ++destroyed;
        gate.gone();
      }
      EXPECT_EQ(destroyed, 1);
    });
    if (round % 2 == 0) {
      EXPECT_EQ(gate.wait(0), Gate::Waited::timeout);
    }
    if (gate.leave()) {
      ++destroyed;
      gate.gone();
    }
    waiter.join();
  }
}

TEST(GateTest, TwoCallsThatCloseEachOtherBothEnd) {
  Gate a;
  Gate b;
  std::atomic<int> inside{0};
  std::atomic<int> destroyed{0};
  const auto run = [&](Gate& mine, Gate& other) {
    ASSERT_TRUE(mine.enter());
    ++inside;
    ASSERT_TRUE(eventually([&] { return inside == 2; }));
    if (other.close_deferred()) ++destroyed;
    if (mine.leave()) ++destroyed;
  };
  std::thread first([&] { run(a, b); });
  std::thread second([&] { run(b, a); });
  first.join();
  second.join();
  EXPECT_EQ(destroyed, 2);
}

TEST(GateTest, ExactlyOneOfManyDestroysAndNoCallOutlivesTheWait) {
  for (int round = 0; round < 300; ++round) {
    Gate gate;
    std::atomic<int> destroyed{0};
    std::atomic<int> running{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          if (gate.enter()) {
            ++running;
            EXPECT_EQ(destroyed, 0);
            --running;
            if (t == 0 && i == 25 && round % 2 == 0 && gate.close_deferred()) ++destroyed;
          }
          if (gate.leave()) {
            ++destroyed;
            gate.gone();
          }
        }
      });
    }
    gate.close();
    if (gate.wait(-1) == Gate::Waited::claimed) {
      EXPECT_EQ(running, 0);
      ++destroyed;
      gate.gone();
    }
    EXPECT_EQ(destroyed, 1);
    for (auto& t : threads) t.join();
    EXPECT_EQ(destroyed, 1);
  }
}

}  // namespace
}  // namespace ringmain::engine
