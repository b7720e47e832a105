// What becomes of a bus in the child of a fork()? It says `forked`, waits for nobody, destroys
// nothing, and a new one works.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/publish/missed.hpp"
#include "engine/system/presence.hpp"

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"
#include "tests/process/child.hpp"

namespace ringmain::tests {
namespace {

void make_a_bus_and_use_it(Findings& findings) {
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> viewed{0};
  Subscription all = ticks.subscribe([&sum](const Tick& t) { sum += t.n; });
  Subscription views = bus.subscribe("test.*", [&viewed](const EventView&) { ++viewed; });
  auto mailbox = ticks.mailbox();
  auto publisher = ticks.publisher();
  for (std::uint64_t n = 1; n <= 1000; ++n) {
    findings.expect(publisher.publish({n}) == PublishCode::accepted, "a new bus refuses");
  }
  findings.expect(bus.flush(kLong), "a new bus does not flush");
  findings.expect(sum == 500500, "a new bus loses events");
  findings.expect(viewed == 1000, "a pattern of a new bus loses events");
  findings.expect(mailbox.drain([](const Tick&) {}, 2000) == 1000, "a new mailbox loses events");
  findings.expect(all.reset() == Detached::done, "a subscription of a new bus does not end");
  findings.expect(bus.verify_accounting().has_value(), "a new bus does not balance");
  findings.expect(bus.stop().left == 0, "a new bus does not stop clean");
}

class ForkTest : public ::testing::Test {
 protected:
  Bus bus_{with_workers(2)};
  Channel<Tick>& ticks_ = bus_.channel<Tick>();
  std::atomic<std::uint64_t> heard_{0};
  Subscription seen_ = ticks_.subscribe([this](const Tick&) { ++heard_; });
};

TEST_F(ForkTest, EveryPublishInTheChildSaysForked) {
  auto publisher = ticks_.publisher();
  PublisherOptions fast;
  fast.realtime = true;
  auto realtime = ticks_.publisher(fast).value();
  ASSERT_TRUE(publisher.publish({1}));
  ASSERT_TRUE(ticks_.publish({2}));
  EXPECT_EQ(in_child([&](Findings& f) {
              const std::array<Tick, 3> three{};
              f.expect(publisher.publish({3}) == PublishCode::forked, "Publisher::publish");
              f.expect(realtime.publish({3}) == PublishCode::forked, "of a realtime publisher");
              f.expect(publisher.publish_at({3}, 7) == PublishCode::forked, "publish_at");
              f.expect(ticks_.publish({3}) == PublishCode::forked, "Channel::publish");
              f.expect(publisher.publish_all(three).last == PublishCode::forked, "publish_all");
              f.expect(ticks_.publish_all(three).refused == 3, "publish_all of the channel");
              f.expect(!publisher.wanted() && !ticks_.wanted(), "wanted");
              std::thread([&] {
                f.expect(ticks_.publish({4}) == PublishCode::forked, "from a new thread");
              }).join();
              auto late = ticks_.publisher();
              f.expect(!late && late.publish({5}) == PublishCode::forked, "a new publisher");
              f.expect(!ticks_.publisher(PublisherOptions{}).has_value(), "a lane for a child");
              auto& tocks = bus_.channel<Tock>();
              f.expect(tocks.publish({}) == PublishCode::forked, "a new channel of the old bus");
              f.expect(&bus_.channel<Tick>() == &ticks_, "the channel is another one");
            }),
            kFine);
  EXPECT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard_, 2u);
  EXPECT_TRUE(bus_.verify_accounting().has_value());
}

TEST_F(ForkTest, WhatIsAttachedInTheChildIsNeverCalledAndEndsAtOnce) {
  std::atomic<int> living{0};
  EXPECT_EQ(in_child([&](Findings& f) {
              Subscription s = ticks_.subscribe([c = Counted(living)](const Tick&) { (void)c; });
              f.expect(!s.attached() && living == 0, "subscribe");
              Subscription p = bus_.subscribe(">", [c = Counted(living)](const EventView&) {});
              f.expect(!p.attached() && living == 0, "subscribe by pattern");
              f.expect(!ticks_.mailbox().attached(), "mailbox");
              f.expect(!bus_.mailbox("test.>").attached(), "mailbox by pattern");
            }),
            kFine);
}

TEST_F(ForkTest, NothingInTheChildWaitsForACallThatIsRunningInTheParent) {
  Door door;
  std::atomic<int> living{0};
  auto gone = std::make_unique<Bus>(with_workers(1));
  auto& ticks = gone->channel<Tick>();
  Subscription stuck =
      ticks.subscribe([&, c = Counted(living)](const Tick&) { EXPECT_TRUE(door.pass()); });
  auto mailbox = std::make_unique<Mailbox<Tick>>(ticks.mailbox());
  Publisher<Tick> publisher = ticks.publisher();
  ASSERT_TRUE(publisher.publish({1}));
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(in_child([&](Findings& f) {
              f.expect(!gone->flush(kForEver), "flush");
              f.expect(!mailbox->wait_for(kForEver), "a mailbox's wait");
              f.expect(mailbox->fd() == -1, "a mailbox's descriptor");
              f.expect(mailbox->drain([](const Tick&) {}) == 0, "a mailbox's events");
              mailbox.reset();
              f.expect(!stuck.attached(), "attached");
              f.expect(stuck.reset() == Detached::was_not_attached, "reset");
              f.expect(gone->stop(StopMode::drain, kForEver).left == 0, "stop");
              f.expect(gone->stats().channels.empty(), "stats");
              f.expect(gone->verify_accounting().has_value(), "verify_accounting");
              gone.reset();
              f.expect(publisher.publish({2}) == PublishCode::forked, "after the bus's end");
              publisher = {};
              f.expect(living == 1, "captures were destroyed that the parent still uses");
            }),
            kFine);
  door.open();
  EXPECT_EQ(stuck.reset(), Detached::done);
  EXPECT_EQ(living, 0);
}

TEST_F(ForkTest, WhatCapturesWriteAtTheirEndIsWrittenOnce) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  struct Buffered {  // as a sink with a file: what is left goes out at the end
    int fd;
    explicit Buffered(int to) : fd(to) {}
    Buffered(Buffered&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    ~Buffered() {
      if (fd < 0) return;
      EXPECT_EQ(::write(fd, "x", 1), 1);
    }
  };
  auto bus = std::make_unique<Bus>(with_workers(1));
  auto sink = std::make_unique<Subscription>(
      bus->channel<Tick>().subscribe([b = Buffered(pipe[1])](const Tick&) {}));
  bus->channel<Tock>().subscribe([b = Buffered(pipe[1])](const Tock&) {}).release();
  EXPECT_EQ(in_child([&](Findings&) {
              sink.reset();
              bus.reset();
            }),
            kFine);
  sink.reset();
  bus.reset();
  std::array<char, 8> read{};
  EXPECT_EQ(::read(pipe[0], read.data(), read.size()), 2);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(ForkTest, ABusMadeInTheChildWorks) {
  EXPECT_EQ(in_child(make_a_bus_and_use_it), kFine);
  EXPECT_EQ(in_child([](Findings& f) {  // and so it goes on, from child to child
              Bus bus(with_workers(1));
              auto& ticks = bus.channel<Tick>();
              const Subscription seen = ticks.subscribe([](const Tick&) {});
              f.expect(ticks.publish({1}) == PublishCode::accepted, "the child's bus");
              const std::string grandchild = in_child([&](Findings& g) {
                g.expect(ticks.publish({1}) == PublishCode::forked, "the child's bus");
                make_a_bus_and_use_it(g);
              });
              f.expect(grandchild == kFine, grandchild.c_str());
              f.expect(ticks.publish({1}) == PublishCode::accepted, "the child's bus, later");
            }),
            kFine);
}

TEST_F(ForkTest, TheProcessBusOfTheChildIsTheParentsOne) {
  Bus& bus = Bus::process();
  const Subscription seen = bus.channel<Tick>().subscribe([](const Tick&) {});
  EXPECT_EQ(in_child([&](Findings& f) {
              f.expect(&Bus::process() == &bus, "another one");
              f.expect(bus.channel<Tick>().publish({1}) == PublishCode::forked, "not forked");
            }),
            kFine);
}

TEST_F(ForkTest, WhatChildrenPublishOnTheProcessBusIsCounted) {
  engine::begin_counting_missed();
  Channel<Tick>& ticks = Bus::process().channel<Tick>();
  auto publisher = ticks.publisher();
  const std::array<Tick, 5> five{};
  const auto publish_each_way = [&] {
    (void)ticks.publish({1});
    (void)publisher.publish({2});
    (void)publisher.publish_at({3}, 3);
    (void)ticks.publish_all(five);
    (void)publisher.publish_all(five);
  };
  publish_each_way();  // nobody listens: that is no loss
  EXPECT_EQ(engine::missed(), 0u);
  const Subscription seen = ticks.subscribe([](const Tick&) {});
  publish_each_way();
  EXPECT_EQ(engine::missed(), 0u);
  EXPECT_EQ(in_child([&](Findings& f) {
              publish_each_way();
              f.expect(engine::missed() == 13, "in the child");
              auto later = ticks.publisher();
              f.expect(later.publish({4}) == PublishCode::forked, "not forked");
              (void)Bus::process().channel<Tick>("tick.new").publish({5});
              (void)ticks_.publish({6});  // of another bus
            }),
            kFine);
  EXPECT_EQ(engine::missed(), 14u);
}

/// Numbers that parent and child both see.
struct Shared {
  Shared()
      : counts(static_cast<std::atomic<std::uint64_t>*>(
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { ::munmap(counts, 4096); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  std::atomic<std::uint64_t>* const counts;
};

TEST_F(ForkTest, AChildThatACallbackForkedHearsNothingMore) {
  // All signals are blocked in its only thread: no alarm would end it if it waited for such a lock.
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's malloc keeps its locks across fork()";
  const Shared shared;
  std::atomic<std::uint64_t>& calls = shared.counts[0];
  std::atomic<std::uint64_t>& later = shared.counts[1];
  std::atomic<pid_t> child{-1};
  Subscription forks = ticks_.subscribe([&](const Tick& t) {
    ++calls;
    if (t.n != 100) return;
    std::fflush(nullptr);
    const pid_t pid = ::fork();  // the child returns from here into the worker's loop
    if (pid == 0) {
      ::alarm(kChildSecondsMax);
    } else {
      child = pid;
    }
  });
  const Subscription last = ticks_.subscribe([&](const Tick&) { ++later; });
  auto publisher = ticks_.publisher();
  for (std::uint64_t n = 1; n <= 1000; ++n) ASSERT_TRUE(publisher.publish({n}));
  ASSERT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(ended(child), kFine);  // its only thread ended
  EXPECT_EQ(calls, 1000u);
  EXPECT_EQ(later, 1000u);
}

TEST_F(ForkTest, AForkWhileAnEventIsBuiltHarmsNeither) {
  auto publisher = ticks_.publisher();
  pid_t child = -1;
  const auto result = publisher.publish_with([&]() noexcept {
    std::fflush(nullptr);
    if (is_sanitized()) wait_until_alone_awake();
    child = ::fork();
    return Tick{1};
  });
  if (child == 0) {
    ::alarm(kChildSecondsMax);
    std::exit(publisher.publish({2}) == PublishCode::forked ? 0 : 1);
  }
  EXPECT_EQ(result, PublishCode::accepted);
  EXPECT_EQ(ended(child), kFine);
  EXPECT_TRUE(bus_.flush(kLong));
  EXPECT_EQ(heard_, 1u);
}

/// All that may hold a lock or be halfway through something while another thread forks.
class Traffic {
 public:
  Traffic() {
    threads_.emplace_back([this] {
      auto mine = ticks->publisher();
      for (std::uint64_t n = 1; !over_; ++n) count(mine.publish({n}));
    });
    threads_.emplace_back([this] {
      for (std::uint64_t n = 1; !over_; ++n) count(ticks->publish({n}));
    });
    threads_.emplace_back([this] {
      while (!over_) {
        Subscription s = ticks->subscribe([this](const Tick&) { ++heard; });
        Subscription p = bus->subscribe("test.*", [this](const EventView&) { ++heard; });
        auto box = bus->mailbox(">");
        (void)box.drain([this](const EventView&) { ++heard; });
      }
    });
    threads_.emplace_back([this] {
      for (std::uint64_t n = 0; !over_; ++n) {
        EXPECT_EQ(Name("name " + std::to_string(n % 1000)).view().substr(0, 4), "name");
        (void)bus->channel<Plain>("test.plain" + std::to_string(n % 200)).publish({n});
        (void)bus->stats();
        if (n % 64 == 0) (void)bus->flush(kLong);
      }
    });
    threads_.emplace_back([this] {
      while (!over_) {
        std::thread([this] { count(ticks->publish({1})); }).join();
        Bus short_lived(with_workers(1));
        count(short_lived.channel<Tick>().publish({1}));
      }
    });
  }
  ~Traffic() { end(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  void end() {
    over_ = true;
    for (auto& t : threads_) {
      if (t.joinable()) t.join();
    }
  }

  std::unique_ptr<Bus> bus = std::make_unique<Bus>(with_workers(2));
  Channel<Tick>* ticks = &bus->channel<Tick>();
  std::atomic<std::uint64_t> heard{0};
  std::atomic<std::uint64_t> forked{0};
  Subscription kept = ticks->subscribe([this](const Tick&) { ++heard; });
  Publisher<Tick> publisher = ticks->publisher();

 private:
  void count(PublishResult r) { forked += r == PublishCode::forked ? 1u : 0u; }
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

constinit engine::Presence presence;  // never destroyed, as its users' are

TEST(PresenceForkTest, NobodyIsInsideInTheChildAndItsEntriesAreItsOwn) {
  using Waited = engine::Presence::Waited;
  const Bus bus(with_workers(1));  // forks are seen from the first bus on
  Door door;
  std::thread other([&door] {
    ASSERT_TRUE(presence.enter());
    EXPECT_TRUE(door.pass());
    presence.leave();
  });
  ASSERT_TRUE(door.await_arrival());
  ASSERT_TRUE(presence.enter());
  EXPECT_EQ(in_child([](Findings& f) {
              f.expect(!presence.inside(), "the child is inside");
              f.expect(presence.wait_until_none(-1) == Waited::none_inside, "it waits");
              f.expect(presence.enter() && presence.inside(), "it cannot enter");
              f.expect(presence.wait_until_none(-1) == Waited::itself, "it waits for itself");
              presence.leave();
              f.expect(!presence.inside(), "it cannot leave");
              presence.leave();  // the end of the parent's entry
              f.expect(!presence.inside(), "the parent's end is an entry");
              f.expect(presence.wait_until_none(-1) == Waited::none_inside, "somebody is inside");
            }),
            kFine);
  presence.leave();
  EXPECT_EQ(presence.wait_until_none(0), Waited::timeout);
  door.open();
  other.join();
  EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
}

TEST(ForkStormTest, NoChildHangsWhateverTheOtherThreadsAreAt) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's malloc keeps its locks across fork()";
  const unsigned forks = rounds("RINGMAIN_FORKS", 200);
  Traffic traffic;
  for (unsigned i = 0; i < forks && !HasFailure(); ++i) {
    const auto in = [&](Findings& f) {
      f.expect(traffic.publisher.publish({1}) == PublishCode::forked, "publisher");
      f.expect(traffic.ticks->publish({1}) == PublishCode::forked, "channel");
      auto& plain = traffic.bus->channel<Plain>("test.plain" + std::to_string(i % 300));
      f.expect(plain.publish({1}) == PublishCode::forked, "another channel");
      f.expect(Name("child " + std::to_string(i % 10)).view().substr(0, 5) == "child", "Name");
      (void)schema<Tock>();
      f.expect(!traffic.bus->flush(kForEver), "flush");
      f.expect(traffic.kept.reset() == Detached::was_not_attached, "reset");
      if (i % 4 == 0) make_a_bus_and_use_it(f);
      if (i % 3 == 0) traffic.bus.reset();
    };
    EXPECT_EQ(in_child(in, i % 2 == 0 ? Leave::by_exit : Leave::by_underscore_exit), kFine)
        << "fork " << i;
  }
  traffic.end();
  EXPECT_EQ(traffic.forked, 0u) << "a publish of the parent says forked";
  EXPECT_TRUE(traffic.bus->flush(kLong));
  const auto balance = traffic.bus->verify_accounting();
  EXPECT_TRUE(balance.has_value()) << balance.error().message;
  EXPECT_EQ(traffic.kept.reset(), Detached::done);
}

}  // namespace
}  // namespace ringmain::tests
