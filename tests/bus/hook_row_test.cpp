// What becomes of hooks while their row ends, their bus ends, or rows and threads come and go?
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <malloc.h>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/bus/hook_rows.hpp"
#include "tests/bus/waiting_reset.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

using HookRowTest = HooksTest;

TEST_F(HookRowTest, ARowMayEndInsideAHookOfItself) {
  std::atomic<int> living{0};
  auto row = std::make_unique<Hooks<Tick>>(made<Tick>());
  int second = 0;
  Subscription a = row->add([&, c = Counted(living)](const Tick&) { row.reset(); });
  Subscription b = row->add([&](const Tick&) { ++second; });
  EXPECT_EQ(row->call({1}), PublishCode::closed);
  EXPECT_EQ(second, 1) << "a call that runs goes on";
  EXPECT_EQ(row, nullptr);
  EXPECT_EQ(living, 1) << "captures live until reset()";
  EXPECT_EQ(a.reset(), Detached::done);
  EXPECT_EQ(living, 0);
  EXPECT_EQ(b.reset(), Detached::done);
}

TEST_F(HookRowTest, ARowsEndWaitsForNoCallAndResetStillDoes) {
  Door door;
  std::atomic<int> living{0};
  auto row = std::make_unique<Hooks<Tick>>(made<Tick>());
  Subscription sub = row->add([&, c = Counted(living)](const Tick&) { door.pass(); });
  std::thread calling([&row = *row] { EXPECT_EQ(row.call({1}), PublishCode::closed); });
  ASSERT_TRUE(door.await_arrival());
  row.reset();
  expect_reset_waits(sub, door, living);
  calling.join();
}

TEST_F(HookRowTest, AReleasedHookStaysUntilItsRowEnds) {
  std::atomic<int> living{0};
  int calls = 0;
  row_.add([&](const Tick&) { ++calls; }).release();  // of another row
  auto row = std::make_unique<Hooks<Tick>>(made<Tick>());
  for (int i = 0; i < 3; ++i)
    row->add([&, c = Counted(living)](const Tick&) { ++calls; }).release();
  EXPECT_EQ(row->call({1}), PublishCode::accepted);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(living, 3);
  Subscription late = row->add([c = Counted(living)](const Tick&) {});
  row.reset();
  EXPECT_EQ(living, 1) << "of the one that was not released";
  late.release();
  EXPECT_EQ(living, 0) << "its row had ended";
  EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  EXPECT_EQ(calls, 4) << "another row keeps its own";
}

TEST_F(HookRowTest, AReleasedHookMayEndItsRow) {
  std::atomic<int> living{0};
  auto row = std::make_unique<Hooks<Tick>>(made<Tick>());
  row->add([&, c = Counted(living)](const Tick&) {
       row.reset();
       EXPECT_EQ(living, 1) << "its call runs";
     })
      .release();
  EXPECT_EQ(row->call({1}), PublishCode::closed);
  EXPECT_TRUE(eventually([&] { return living == 0; })) << "a thread of the bus destroys them";
}

TEST_F(HookRowTest, ARowOutlivesItsBus) {
  std::atomic<int> living{0};
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto row = Hooks<Tick>::make(*bus, "test.row").value();
  Subscription sub = row.add([c = Counted(living)](const Tick&) {});
  EXPECT_EQ(row.call({1}), PublishCode::accepted);
  bus.reset();
  EXPECT_EQ(row.call({1}), PublishCode::closed);
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
  Subscription late = row.add([c = Counted(living)](const Tick&) {});
  EXPECT_EQ(row.call({1}), PublishCode::closed);
  EXPECT_EQ(late.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(HookRowTest, AStoppedBusClosesRowsAndMakesNone) {
  Bus bus(with_workers(1));
  auto row = Hooks<Tick>::make(bus, "test.row").value();
  const Subscription sub = row.add([](const Tick&) {});
  EXPECT_EQ(row.call({1}), PublishCode::accepted);
  (void)bus.stop();
  EXPECT_EQ(row.call({1}), PublishCode::closed);
  const auto late = Hooks<Tick>::make(bus, "test.row");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Error::Code::refused);
}

TEST_F(HookRowTest, ABusHolds4096AndAnEndedRowMakesRoomAtOnce) {
  std::vector<Hooks<Tick>> rows;
  for (;;) {
    auto one = Hooks<Tick>::make(bus_, "test.row");
    if (!one) {
      EXPECT_EQ(one.error().code, Error::Code::no_memory);
      break;
    }
    rows.push_back(std::move(one).value());
  }
  EXPECT_EQ(rows.size(), 4095u);
  for (int i = 0; i < 10'000; ++i) {
    rows.pop_back();
    rows.push_back(made<Tick>());
  }
}

/// 100,000 rows are some 300 MB if nobody lets go of them.
TEST_F(HookRowTest, ThreadsThatLiveLongKeepFewOfTheRowsThatEnded) {
  enum : std::size_t { kRounds = 1000, kRows = 100, kThreads = 3, kKeptBytesMax = 8u << 20 };
  std::vector<Hooks<Tick>> rows;
  std::barrier<> turn(kThreads + 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        turn.arrive_and_wait();
        for (auto& row : rows) EXPECT_EQ(row.call({1}), PublishCode::accepted);
        turn.arrive_and_wait();
      }
    });
  }
  std::size_t before = 0;  // once each thread's table has its size
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<Subscription> subs;
    for (std::size_t i = 0; i < kRows; ++i) {
      rows.push_back(made<Tick>());
      subs.push_back(rows.back().add([](const Tick&) {}));
    }
    turn.arrive_and_wait();
    turn.arrive_and_wait();
    rows.clear();
    if (round == kRounds / 10) before = ::mallinfo2().uordblks;
  }
  const std::size_t after = ::mallinfo2().uordblks;
  for (auto& t : threads) t.join();
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's malloc has no figures";
  EXPECT_LT(after, before + kKeptBytesMax);
}

TEST_F(HookRowTest, HooksAndRowsComeAndGoWhileEightThreadsCall) {
  enum : int { kCallers = 8, kRounds = 100 };
  std::atomic<int> living{0};
  for (int again = 0; again < 3; ++again) {
    auto row = made<Tick>();
    std::atomic<bool> over{false};
    std::vector<std::thread> callers;
    for (int t = 0; t < kCallers; ++t) {
      callers.emplace_back([&, t] {
        auto own = made<Tick>();  // comes and goes
        for (int n = 0; !over; ++n) {
          if (n % 50 == 0) own = made<Tick>();
          const Subscription sub = own.add([&, c = Counted(living)](const Tick& e) {
            EXPECT_NE(row.call(e), PublishCode::vetoed);  // nested
          });
          EXPECT_EQ(own.call({static_cast<std::uint64_t>(t)}), PublishCode::accepted);
          const PublishResult r = row.call({1});
          EXPECT_TRUE(r) << to_string(r.code);
        }
      });
    }
    std::vector<std::thread> changers;
    for (int t = 0; t < 2; ++t) {
      changers.emplace_back([&] {
        for (int n = 0; n < kRounds; ++n) {
          auto counter = std::make_unique<std::atomic<int>>(0);  // freed below
          Subscription sub =
              row.add([p = counter.get(), c = Counted(living)](const Tick&) { ++*p; });
          if (n % 3 == 0) {
            EXPECT_TRUE(eventually([&] { return *counter != 0; }));
          }
          EXPECT_EQ(sub.reset(), Detached::done);
        }
      });
    }
    for (auto& t : changers) t.join();
    over = true;
    for (auto& t : callers) t.join();
  }
  EXPECT_TRUE(eventually([&] { return living == 0; }));
}

TEST_F(HookRowTest, ItsLanesHaveNoQueue) {
  enum : std::int64_t { kRows = 1000, kBytesMax = 2048 };
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's malloc has no figures";
  const auto allocated = [] { return static_cast<std::int64_t>(::mallinfo2().uordblks); };
  std::vector<Hooks<Tick>> rows;
  std::vector<Subscription> subs;
  for (int i = 0; i < kRows; ++i) {
    rows.push_back(made<Tick>());
    subs.push_back(rows.back().add([](const Tick&) {}));
  }
  std::int64_t taken = 0;
  std::thread([&] {  // a new one has lanes of nothing else, which it could give back meanwhile
    const std::int64_t before = allocated();
    for (auto& row : rows) EXPECT_EQ(row.call({1}), PublishCode::accepted);
    taken = allocated() - before;
  })
      .join();
  EXPECT_GT(taken, 0);
  EXPECT_LT(taken, kRows * kBytesMax);
}

}  // namespace
}  // namespace ringmain::tests
