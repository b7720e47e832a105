// May a subscriber with a thread of its own block for as long as it likes, and leave in every way?
#include <atomic>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <pthread.h>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/accounts.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

SubscribeOptions own_thread(std::string name = {}) {
  SubscribeOptions o;
  o.served = Served::own_thread;
  o.name = std::move(name);
  return o;
}

/// ThreadSanitizer starts a thread of its own beside the first one: it is to be counted from the
/// start. A joined thread stays in /proc for a moment more.
bool start_first_thread() {
  std::filesystem::path task = "/proc/self/task";
  std::thread([&task] { task /= std::to_string(::gettid()); }).join();
  return eventually([&task] { return !std::filesystem::exists(task); });
}

std::ptrdiff_t threads() {
  [[maybe_unused]] static const bool started = start_first_thread();
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(OwnThreadTest, ABlockingOneHoldsUpNobodyThoughThereIsOneWorker) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription a = ticks.subscribe([&](const Tick&) { door.pass(); }, own_thread());
  const Subscription b = ticks.subscribe([&](const Tick&) { door.pass(); }, own_thread());
  std::atomic<std::uint64_t> heard{0};
  const Subscription quick = ticks.subscribe([&](const Tick&) { ++heard; });
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival(2));
  for (std::uint64_t i = 2; i < 100; ++i) {
    ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    ASSERT_TRUE(eventually([&] { return heard == i; }));
  }
  EXPECT_EQ(a.stats().pending, 99u);
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(a.stats().delivered, 99u);
  EXPECT_EQ(b.stats().delivered, 99u);
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(OwnThreadTest, ItIsAThreadThatAnOperatorCanTell) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::vector<std::thread::id> ids;
  std::string name;
  bool blocked = true;
  const Subscription named = ticks.subscribe(
      [&](const Tick&) {
        ids.push_back(std::this_thread::get_id());
        char is[16];
        pthread_getname_np(pthread_self(), is, sizeof is);
        name = is;
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        for (const int s : {SIGINT, SIGTERM, SIGUSR1, SIGPROF, SIGCHLD})
          blocked = blocked && sigismember(&mask, s) == 1;
      },
      own_thread("checkpoint-writer-of-mine"));
  std::string unnamed;
  const Subscription other = ticks.subscribe(
      [&](const Tick&) {
        char is[16];
        pthread_getname_np(pthread_self(), is, sizeof is);
        unnamed = is;
      },
      own_thread());
  std::thread::id worker;
  const Subscription shared =
      ticks.subscribe([&](const Tick&) { worker = std::this_thread::get_id(); });
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ticks.publish({}), PublishCode::accepted);
    ASSERT_TRUE(bus.flush(kLong));
  }
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_NE(ids[0], worker);
  EXPECT_EQ(name, "checkpoint-writ");
  EXPECT_EQ(unnamed, "test.tick");
  EXPECT_TRUE(blocked);
}

TEST(OwnThreadTest, FlushWaitsForIt) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::uint64_t heard = 0;
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; }, own_thread());
  for (std::uint64_t i = 1; i <= 2000; ++i) {
    ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    if (i % 10 != 0) continue;
    ASSERT_TRUE(bus.flush(kLong));
    ASSERT_EQ(heard, i);
  }
  Door door;
  const Subscription stuck = ticks.subscribe([&](const Tick&) { door.pass(); }, own_thread());
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  EXPECT_FALSE(bus.flush(milliseconds(1)));
  door.open();
  EXPECT_TRUE(bus.flush(kLong));
}

TEST(OwnThreadTest, StopDrainsItAndJoinsIt) {
  const std::ptrdiff_t before = threads();
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::uint64_t heard = 0;
  const Subscription sub = ticks.subscribe([&](const Tick&) { ++heard; }, own_thread());
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  const Stopped s = bus.stop(StopMode::drain, kLong);
  EXPECT_EQ(s.left, 0u);
  EXPECT_TRUE(s.stuck.empty());
  EXPECT_EQ(heard, 1000u);
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
  expect_i3_coalesced(sub.stats());
}

TEST(OwnThreadTest, AnAbortDiscardsWhatItHasNotHeard) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  const Subscription sub = ticks.subscribe([&](const Tick&) { door.pass(); }, own_thread());
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return sub.stats().pending == 101; }));
  auto& tocks = bus.channel<Tock>();  // one made during a stop() is closed before the rest
  std::thread stopper([&] { EXPECT_EQ(bus.stop(StopMode::abort, kLong).left, 0u); });
  ASSERT_TRUE(eventually([&] { return tocks.publish({}) == PublishCode::closed; }));
  door.open();
  stopper.join();
  EXPECT_EQ(sub.stats().delivered, 1u);
  EXPECT_EQ(sub.stats().dropped, 100u);
  expect_i3_coalesced(sub.stats());
}

TEST(OwnThreadTest, AStuckOneIsNamedAndOutlivesItsBus) {
  const std::ptrdiff_t before = threads();
  std::atomic<int> living{0};
  Door door;
  Subscription sub;
  {
    Bus bus(with_workers(1));
    sub = bus.channel<Tick>().subscribe([&, c = Counted(living)](const Tick&) { door.pass(); },
                                        own_thread("stuck-one"));
    ASSERT_EQ(bus.channel<Tick>().publish({1}), PublishCode::accepted);
    ASSERT_TRUE(door.await_arrival());
    ASSERT_EQ(bus.channel<Tick>().publish({2}), PublishCode::accepted);
    ASSERT_TRUE(eventually([&] { return sub.stats().pending == 2; }));
    const Stopped s = bus.stop(StopMode::drain, milliseconds(1));
    EXPECT_EQ(s.stuck, std::vector<std::string>{"stuck-one"});
    EXPECT_EQ(s.left, 2u);
  }
  EXPECT_EQ(sub.reset_for(milliseconds(1)), Detached::timeout);
  EXPECT_EQ(living, 1);
  door.open();
  EXPECT_EQ(sub.reset(), Detached::done);
  EXPECT_EQ(living, 0);
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
}

TEST(OwnThreadTest, ResetOutsideWaitsForTheCallAndTheThread) {
  Bus bus(with_workers(1));
  const std::ptrdiff_t before = threads();
  auto& ticks = bus.channel<Tick>();
  for (int round = 0; round < 50; ++round) {
    auto mine = std::make_unique<int>(0);  // freed below: a late call would be a use after free
    Subscription sub = ticks.subscribe([p = mine.get()](const Tick&) { ++*p; }, own_thread());
    EXPECT_EQ(threads(), before + 1);
    for (std::uint64_t i = 0; i < 20; ++i) (void)ticks.publish({i});
    EXPECT_EQ(sub.reset(), Detached::done);
    mine.reset();
    ASSERT_TRUE(eventually([&] { return threads() == before; }));
  }
  EXPECT_EQ(ticks.stats().subscribers, 0u);
  EXPECT_TRUE(bus.flush(kLong));
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(OwnThreadTest, NothingOfItsThreadRunsAfterResetReturns) {
  // What the callback left to the thread's end runs on that thread, and takes its time.
  static std::atomic<int> running;
  struct Leaves {
    ~Leaves() {
      for (int i = 0; i < 2000; ++i) std::this_thread::yield();
      --running;
    }
  };
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  for (int round = 0; round < 5; ++round) {
    Subscription sub = ticks.subscribe(
        [](const Tick&) {
          thread_local Leaves leaves;
          ++running;
        },
        own_thread());
    ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
    ASSERT_TRUE(bus.flush(kLong));
    ASSERT_EQ(running, 1);
    EXPECT_EQ(sub.reset(), Detached::done);
    ASSERT_EQ(running, 0) << "its thread was not waited for";
  }
}

TEST(OwnThreadTest, ItsThreadEndsBehindItsLastFeeder) {
  Bus bus(with_workers(1));
  const std::ptrdiff_t before = threads();
  auto& ticks = bus.channel<Tick>();
  Door feeding;  // holds the feeder up in the middle of its work
  std::atomic<bool> deferred{false};
  std::atomic<long> own{0};
  Subscription sub;
  sub = ticks.subscribe_latest(
      [&](const Tick& t) {
        if (t.n == 2) feeding.pass();
        return t.n;
      },
      [&](const Tick&) {
        own = ::gettid();
        if (feeding.await_arrival()) deferred = sub.reset() == Detached::deferred;
      },
      own_thread());
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  ASSERT_EQ(ticks.publish({2}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return deferred.load(); }));
  // By then it has looked whether it is to end.
  EXPECT_TRUE(eventually([&] { return is_asleep(own) || threads() == before; }));
  EXPECT_EQ(threads(), before + 1) << "a feeder may still bring something";
  feeding.open();
  EXPECT_TRUE(bus.flush(kLong));
  expect_i3_coalesced(sub.stats());
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
}

TEST(OwnThreadTest, ResetInItsOwnCallbackIsDeferredAndItsThreadEnds) {
  Bus bus(with_workers(1));
  const std::ptrdiff_t before = threads();
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  std::atomic<int> calls{0};
  Detached said = Detached::done;
  Door made;
  auto sub = std::make_unique<Subscription>();
  *sub = ticks.subscribe(
      [&, c = Counted(living)](const Tick&) {
        made.pass();
        ++calls;
        said = sub->reset();
      },
      own_thread());
  made.open();
  for (std::uint64_t i = 0; i < 20; ++i) (void)ticks.publish({i});
  // Nobody waits for it: it ends by itself, and takes its captures along.
  EXPECT_TRUE(eventually([&] { return living == 0 && threads() == before; }));
  EXPECT_EQ(said, Detached::deferred);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(bus.flush(kLong)) << "what it had not heard is accounted for as skipped";
  expect_i3_coalesced(sub->stats());
  EXPECT_EQ(sub->wait_quiescent(kLong), Detached::done);
}

TEST(OwnThreadTest, ItMayDropItsOwnHandleInItsCallback) {
  Bus bus(with_workers(1));
  const std::ptrdiff_t before = threads();
  auto& ticks = bus.channel<Tick>();
  std::atomic<int> living{0};
  auto sub = std::make_unique<Subscription>();
  *sub = ticks.subscribe([&, c = Counted(living)](const Tick&) { sub.reset(); }, own_thread());
  (void)ticks.publish({1});
  (void)ticks.publish({2});
  EXPECT_TRUE(eventually([&] { return living == 0 && threads() == before; }));
  EXPECT_EQ(sub, nullptr);
  EXPECT_TRUE(bus.flush(kLong));
}

TEST(OwnThreadTest, SeveralByPatternHearEverything) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  Subscription one = bus.subscribe(
      "test.*", [&](const EventView&) { ++a; }, own_thread("one"));
  Subscription two = bus.subscribe(
      ">", [&](const EventView&) { ++b; }, own_thread("two"));
  auto& tocks = bus.channel<Tock>();
  for (std::uint64_t i = 0; i < 500; ++i) {
    ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
    ASSERT_EQ(tocks.publish({}), PublishCode::accepted);
  }
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(a, 1000u);
  EXPECT_EQ(b, 1000u);
  EXPECT_EQ(one.reset(), Detached::done);
  ASSERT_EQ(ticks.publish({}), PublishCode::accepted);
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(a, 1000u);
  EXPECT_EQ(b, 1001u);
}

TEST(OwnThreadTest, ItsMailboxMayDropTheOldest) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  Door door;
  std::vector<std::uint64_t> got;
  SubscribeOptions o = own_thread();
  o.queue_events = 4;
  o.overflow = Overflow::drop_oldest;
  const Subscription sub = ticks.subscribe(
      [&](const Tick& t) {
        door.pass();
        got.push_back(t.n);
      },
      o);
  ASSERT_EQ(ticks.publish({0}), PublishCode::accepted);
  ASSERT_TRUE(door.await_arrival());
  for (std::uint64_t i = 1; i < 10; ++i) ASSERT_EQ(ticks.publish({i}), PublishCode::accepted);
  ASSERT_TRUE(eventually([&] { return sub.stats().offered == 10; }));
  door.open();
  ASSERT_TRUE(bus.flush(kLong));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 4, 5, 6, 7}));
  EXPECT_EQ(sub.stats().dropped, 5u) << "1 to 3 pushed out; 8 and 9 came twice the queue ahead";
  expect_i3_coalesced(sub.stats());
  EXPECT_TRUE(bus.verify_accounting());
}

TEST(OwnThreadTest, WithoutAThreadToBeHadNothingIsLeftHalfAttached) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  const Subscription beside = ticks.subscribe([](const Tick&) {});
  std::atomic<int> living{0};
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_t huge;
  pthread_attr_init(&huge);
  // A stack larger than any address space: the next thread cannot be made.
  ASSERT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 50), 0);
  if (pthread_setattr_default_np(&huge) != 0) GTEST_SKIP() << "no default for stack sizes here";
  std::string message;
  try {
    (void)ticks.subscribe([c = Counted(living)](const Tick&) {}, own_thread("greedy"));
  } catch (const std::system_error& e) {
    message = e.what();
  }
  EXPECT_THROW((void)bus.subscribe(
                   ">", [c = Counted(living)](const EventView&) {}, own_thread("greedy")),
               std::system_error);
  pthread_setattr_default_np(&usual);
  EXPECT_NE(message.find("greedy"), std::string::npos) << message;
  EXPECT_NE(message.find("Served::isolated"), std::string::npos) << message;
  EXPECT_EQ(living, 0);
  EXPECT_EQ(ticks.stats().subscribers, 1u);
  EXPECT_TRUE(eventually([&] { return bus.stats().channels.size() == 1; }));  // no mailbox is left
  ASSERT_EQ(ticks.publish({1}), PublishCode::accepted);
  EXPECT_TRUE(bus.flush(kLong));
  const Subscription now = ticks.subscribe([c = Counted(living)](const Tick&) {}, own_thread());
  EXPECT_EQ(living, 1);
}

TEST(OwnThreadTest, ABusWithoutThreadsServesItByHand) {
  const std::ptrdiff_t before = threads();
  TestBus bus;
  std::uint64_t heard = 0;
  const Subscription sub =
      bus.channel<Tick>().subscribe([&](const Tick&) { ++heard; }, own_thread());
  EXPECT_EQ(threads(), before);
  bus.channel<Tick>().post({1});
  bus.deliver();
  EXPECT_EQ(heard, 1u);
}

}  // namespace
}  // namespace ringmain::tests
