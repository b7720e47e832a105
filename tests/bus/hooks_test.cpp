// Do hooks that belong to an object keep what inline subscribers promise, and is their row nowhere
// but with its owner?
#include <atomic>
#include <memory>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/bus/hook_rows.hpp"
#include "tests/bus/waiting_reset.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

/// What a collective shows to its hooks: good during the call only.
struct Asked {
  const std::string* op = nullptr;
  int* answers = nullptr;
};

TEST_F(HooksTest, AnEmptyRowHasNoneAndTakesNone) {
  Hooks<Tick> empty;
  EXPECT_FALSE(empty.any());
  EXPECT_EQ(empty.call({1}), PublishCode::unheard);
  EXPECT_FALSE(empty.add([](const Tick&) { FAIL(); }).attached());
  Hooks<Tick> other = std::move(row_);
  EXPECT_EQ(row_.call({1}), PublishCode::unheard);
  EXPECT_FALSE(other.any());
  EXPECT_EQ(other.call({1}), PublishCode::unheard);
  const Subscription sub = other.add([](const Tick&) {});
  EXPECT_TRUE(other.any());
  EXPECT_EQ(other.call({1}), PublishCode::accepted);
}

TEST_F(HooksTest, TheyAreAskedByPriorityThenInOrderUntilOneRefuses) {
  std::string order;
  SubscribeOptions first;
  first.priority = 5;
  const Name reason{"not while serving"};
  const Subscription a = row_.add([&](const Tick&) { order += 'a'; });
  const Subscription b = row_.add([&](const Tick& t) {
    order += 'b';
    return t.n == 2 ? Verdict::veto(reason) : Verdict::allow();
  });
  const Subscription c = row_.add([&](const Tick&) { order += 'c'; });
  const Subscription d = row_.add([&](const Tick&) { order += 'd'; }, first);
  EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  EXPECT_EQ(order, "dabc");
  order.clear();
  EXPECT_EQ(row_.call({2}), (PublishResult{PublishCode::vetoed, reason}));
  EXPECT_EQ(order, "dab");
}

TEST_F(HooksTest, WhatAnEventPointsToIsReadInTheCallOnly) {
  auto row = made<Asked>();
  std::thread::id in;
  const Subscription sub = row.add([&](const Asked& e) {
    in = std::this_thread::get_id();
    *e.answers += static_cast<int>(e.op->size());
  });
  for (int i = 0; i < 1000; ++i) {
    auto op = std::make_unique<std::string>("all_reduce of some length");
    auto answers = std::make_unique<int>(0);
    EXPECT_EQ(row.call({op.get(), answers.get()}), PublishCode::accepted);
    EXPECT_EQ(*answers, 25);
  }
  EXPECT_EQ(in, std::this_thread::get_id());
  EXPECT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(sub.stats().delivered, 1000u);
}

TEST_F(HooksTest, NobodyFindsARowByItsName) {
  // A described event's own name, twice, and that of a row that is there already.
  auto same = made<Tick>("test.tick");
  auto again = made<Tick>("test.tick");
  int viewed = 0;
  int told = 0;
  const Subscription views = bus_.subscribe(">", [&](const EventView&) { ++viewed; });
  const Subscription interest =
      bus_.on_interest("test.>", [&](std::string_view, Interest) { ++told; });
  int calls = 0;
  const Subscription sub = same.add([&](const Tick&) { ++calls; });
  ASSERT_TRUE(bus_.wait_told(kLong));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(same.call({1}), PublishCode::accepted);
  EXPECT_EQ(again.call({1}), PublishCode::unheard);
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(viewed, 0);
  EXPECT_EQ(calls, 1);
  for (const std::string& name : bus_.channel_names())
    EXPECT_TRUE(name.starts_with("bus.")) << name;
  for (const ChannelStats& c : bus_.stats().channels)
    EXPECT_TRUE(c.mailbox || c.name.starts_with("bus.")) << c.name;
  EXPECT_NE(&bus_.channel<Tock>("test.tick"), nullptr) << "of another type";
}

TEST_F(HooksTest, NoHookRunsAfterResetReturns) {
  std::atomic<bool> over{false};
  std::thread calling([&] {
    while (!over) (void)row_.call({1});
  });
  for (int i = 0; i < 200; ++i) {
    auto counter = std::make_unique<std::atomic<int>>(0);  // freed below
    Subscription sub = row_.add([p = counter.get()](const Tick&) { ++*p; });
    EXPECT_TRUE(eventually([&] { return *counter > 0; }));
    EXPECT_EQ(sub.reset(), Detached::done);
  }
  over = true;
  calling.join();
}

TEST_F(HooksTest, ResetWaitsForACallInAnotherThread) {
  Door door;
  std::atomic<int> living{0};
  Subscription sub = row_.add([&, c = Counted(living)](const Tick&) { door.pass(); });
  std::thread calling([&] { EXPECT_EQ(row_.call({1}), PublishCode::accepted); });
  expect_reset_waits(sub, door, living);
  calling.join();
}

TEST_F(HooksTest, AHookMayResetItselfAndAddAnother) {
  std::atomic<int> living{0};
  Subscription own;
  std::vector<Subscription> added;
  int later = 0;
  own = row_.add([&, c = Counted(living)](const Tick&) {
    added.push_back(row_.add([&](const Tick&) { ++later; }));
    EXPECT_EQ(own.reset(), Detached::deferred);
  });
  EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  EXPECT_EQ(later, 0) << "it is shown the next one";
  EXPECT_EQ(row_.call({2}), PublishCode::accepted);
  EXPECT_EQ(later, 1);
  EXPECT_EQ(added.size(), 1u);
  EXPECT_EQ(own.wait_quiescent(kLong), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(HooksTest, ItMayCallTheRowAgainEightLevelsDeep) {
  std::uint64_t calls = 0;
  PublishResult innermost;
  const Subscription sub = row_.add([&](const Tick& t) {
    ++calls;
    const PublishResult r = row_.call({t.n + 1});
    if (r != PublishCode::accepted) innermost = r;
  });
  EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  EXPECT_EQ(calls, 8u);
  EXPECT_EQ(innermost, PublishCode::too_deep);
}

TEST_F(HooksTest, OneThatThrowsAllowsUnlessItsThrowIsAVeto) {
  Subscription sub = row_.add([](const Tick&) { throw 1; });
  EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  EXPECT_EQ(sub.stats().threw, 1u);
  EXPECT_EQ(sub.reset(), Detached::done);
  SubscribeOptions o;
  o.on_throw = OnThrow::veto;
  sub = row_.add([](const Tick&) { throw 1; }, o);
  EXPECT_EQ(row_.call({1}), PublishCode::vetoed);
}

TEST_F(HooksTest, MoreThan1024ThreadsMayCallAtOnce) {
  enum : int { kThreads = 1100 };
  std::atomic<int> calls{0};
  std::atomic<bool> over{false};
  const Subscription sub = row_.add([&](const Tick&) { ++calls; });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(row_.call({1}), PublishCode::accepted);
      EXPECT_TRUE(eventually([&] { return over.load(); }));  // it keeps its lane
    });
  }
  EXPECT_TRUE(eventually([&] { return calls == kThreads; }));
  over = true;
  for (auto& t : threads) t.join();
}

/// Calls when its thread ends, also after the thread's lanes were given back.
/// Called at the end of a thread, before and after the library's own: keys end in rounds.
struct AtThreadExit {
  Hooks<Tick>* row;
  pthread_key_t key;
  int calls = 0;
};
void call_at_exit(void* arg) {
  auto& at_exit = *static_cast<AtThreadExit*>(arg);
  EXPECT_EQ(at_exit.row->call({2}), PublishCode::accepted);
  if (++at_exit.calls < 3) ::pthread_setspecific(at_exit.key, arg);
}

TEST_F(HooksTest, AThreadMayCallAtItsEnd) {
  int calls = 0;
  const Subscription sub = row_.add([&](const Tick&) { ++calls; });
  AtThreadExit at_exit{&row_, {}};
  ASSERT_EQ(::pthread_key_create(&at_exit.key, &call_at_exit), 0);
  std::thread([&] {
    ASSERT_EQ(::pthread_setspecific(at_exit.key, &at_exit), 0);
    EXPECT_EQ(row_.call({1}), PublishCode::accepted);
  }).join();
  EXPECT_EQ(::pthread_key_delete(at_exit.key), 0);
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace ringmain::tests
