// Does a bus survive each of its allocations failing, and say so? A script that uses all of it runs
// once for every allocation in it, which fails; and once more for every few, from which on all do.
//
// Required each time: no crash, no hang, nothing half attached, accounts that balance, and not one
// block more than before.
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <sys/resource.h>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>

#include "ringmain/bus/bus.hpp"
#include "ringmain/bus/test_bus.hpp"

#include "ringmain/tests/bus/events.hpp"
#include "ringmain/tests/process/allocation_faults.hpp"
#include "ringmain/tests/process/child.hpp"

namespace ringmain::tests {
namespace {

struct Late {  // its channel comes behind the patterns
  std::uint64_t n = 0;
};
constexpr auto describe(EventOf<Late>) {
  return event("test.late", field<&Late::n>("n", Unit::count));
}

/// What a run found, in words that need no memory.
struct Found {
  const char* fault = nullptr;
  void expect(bool holds, const char* what) {
    if (!holds && fault == nullptr) fault = what;
  }
};

/// Does `step`, which may lack memory or a thread and say so by what it throws.
template <class Step>
bool done(Step step) {
  try {
    step();
    return true;
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  return false;
}

/// Hears numbers that only grow.
struct Growing {
  std::uint64_t last = 0, count = 0;
  bool disordered = false;
  void hear(std::uint64_t n) {
    disordered |= n <= last;
    last = n;
    ++count;
  }
};

struct Owner {
  std::atomic<std::uint64_t> heard{0};
  void hear(const Tick&) { ++heard; }
};

bool balances(const SubscriberStats& s) {
  return s.offered == s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.pending;
}

SubscribeOptions named(const char* name, Served served = Served::shared) {
  SubscribeOptions o;
  o.name = name;
  o.served = served;
  return o;
}

class Script {
 public:
  Found run() {
    sigset_t before{}, after{};
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    done([&] { bus_.emplace(with_workers(2)); });
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    found_.expect(std::memcmp(&before, &after, sizeof before) == 0, "signals stay blocked");
    if (!bus_) return found_;
    done([&] { ticks_ = &bus_->channel<Tick>(); });
    done([&] {
      ChannelOptions o;
      o.lanes = LaneKind::ring;
      o.latency_every = 3;
      (void)bus_->configure<Tock>(o);
    });
    subscribe_all();
    publish_all();
    settle();
    end();
    return found_;
  }
  void expect_nothing_lives() {
    found_.expect(living_ == 0, "captures outlive their subscription");
  }

 private:
  void attach(std::size_t i, Subscription (Script::*make)()) {
    done([&] { subscriptions_[i] = (this->*make)(); });
  }
  Subscription each() {
    return ticks_->subscribe([this, c = Counted(living_)](const Tick& t) { growing_.hear(t.n); });
  }
  Subscription some() {
    return ticks_->subscribe_if([](const Tick& t) { return t.n % 2 == 0; },
                                [c = Counted(living_)](const Tick&) {},
                                named("a name that needs memory of its own"));
  }
  Subscription batches() {
    return ticks_->subscribe_batch([c = Counted(living_)](Batch<Tick>) {});
  }
  Subscription owned() { return ticks_->subscribe(std::weak_ptr(owner_), &Owner::hear); }
  Subscription isolated() {
    return ticks_->subscribe([c = Counted(living_)](const Tick&, const Stamp&) {},
                             named("another name that needs memory", Served::isolated));
  }
  Subscription views() {
    return bus_->subscribe(
        ">",
        [this, c = Counted(living_)](const EventView& e) { late_heard_ += e.as<Late>() ? 1 : 0; },
        named("whatever is said here or there"));
  }

  void subscribe_all() {
    if (ticks_ == nullptr) return;
    done([&] { owner_ = std::make_shared<Owner>(); });
    attach(0, &Script::each);
    attach(1, &Script::some);
    attach(2, &Script::batches);
    if (owner_) attach(3, &Script::owned);
    attach(4, &Script::isolated);
    attach(5, &Script::views);
    done([&] { box_ = ticks_->mailbox(named("a box for ticks, and no others")); });
    done([&] { any_box_ = bus_->mailbox("test.*"); });
    for (int i = 0; i < 2; ++i) {
      done([&] { ticks_->subscribe([c = Counted(living_)](const Tick&) {}).release(); });
    }
  }

  template <class P>
  void publish_on(P& publisher) {
    for (int i = 0; i < 100; ++i) count(publisher.publish({++said_}).code);
  }
  void count(PublishCode code) {
    accepted_ += code == PublishCode::accepted ? 1u : 0u;
    found_.expect(code == PublishCode::accepted || code == PublishCode::unheard ||
                      code == PublishCode::no_memory,
                  "a publish is refused for another reason than memory");
  }
  void publish_all() {
    if (ticks_ == nullptr) return;
    publish_on(*ticks_);
    std::array<Tick, 300> many{};
    for (Tick& t : many) t.n = ++said_;
    accepted_ += ticks_->publish_all(many).accepted;
    (void)bus_->flush(kLong);  // so that the next publisher's numbers come behind these
    for (int round = 0; round < 2; ++round) {  // the second time on a lane that another one had
      done([&] {
        auto made = ticks_->publisher(PublisherOptions{});
        if (!made) return;
        publish_on(made.value());
        for (Tick& t : many) t.n = ++said_;
        accepted_ += made.value().publish_all(many).accepted;
        publish_on(made.value());
        const Ledger l = made.value().ledger();
        found_.expect(l.offered == l.dropped + l.delivered + l.in_flight, "a ledger");
      });
      (void)bus_->flush(kLong);
    }
    done([&] {
      PublisherOptions o;
      o.realtime = true;
      o.capacity_events = 128;
      auto made = ticks_->publisher(o);
      if (made) publish_on(made.value());
    });
    (void)bus_->flush(kLong);
    done([&] {
      std::thread other([this] { publish_on(*ticks_); });
      other.join();
    });
    // Half a channel must not be left behind: the second time it is whole, and every pattern hears
    // it.
    for (int i = 0; i < 2; ++i) {
      done([&] { late_said_ += bus_->channel<Late>().publish({1}) != PublishCode::no_memory; });
    }
    done([&] { bus_->channel<Tock>().post({}); });
  }

  void settle() {
    if (ticks_ == nullptr) return;
    found_.expect(bus_->flush(kLong), "flush");
    while (box_.drain([this](const Tick& t) { boxed_.hear(t.n); }) != 0) {
    }
    while (any_box_.drain([](const EventView&) {}) != 0) {
    }
    found_.expect(!growing_.disordered && !boxed_.disordered, "order");
    if (subscriptions_[0].attached())
      found_.expect(growing_.count == accepted_, "an event is lost");
    if (subscriptions_[5].attached() && subscriptions_[5].stats().dropped == 0)
      found_.expect(late_heard_ == late_said_, "a pattern misses a channel");
    for (const auto& s : subscriptions_) found_.expect(balances(s.stats()), "I3");
    found_.expect(balances(box_.stats()) && balances(any_box_.stats()), "I3 of a mailbox");
    done([&] { found_.expect(bus_->verify_accounting().has_value(), "I1 or I2"); });
    done([&] { (void)bus_->stats(); });
  }

  void end() {
    for (std::size_t i = 0; i < subscriptions_.size(); i += 2) {
      const bool was = subscriptions_[i].attached();
      const Detached how = subscriptions_[i].reset();
      found_.expect(how == (was ? Detached::done : Detached::was_not_attached), "reset");
    }
    any_box_.reset();
    done([&] { found_.expect(bus_->stop().left == 0, "stop leaves something"); });
    for (auto& s : subscriptions_) (void)s.reset();
    box_.reset();
    bus_.reset();
  }

  Found found_;
  std::atomic<int> living_{0};
  std::optional<Bus> bus_;
  Channel<Tick>* ticks_ = nullptr;
  std::shared_ptr<Owner> owner_;
  Growing growing_, boxed_;
  std::uint64_t said_ = 0, accepted_ = 0, late_said_ = 0;
  std::atomic<std::uint64_t> late_heard_{0};
  std::array<Subscription, 6> subscriptions_;
  Mailbox<Tick> box_;
  AnyMailbox any_box_;
};

/// Runs the script in a thread of its own, whose lanes end with it.
Found run(long first, long width, bool& reached) {
  Found found;
  std::thread([&] {
    fail_allocations(first, width);
    {
      Script script;
      found = script.run();
      script.expect_nothing_lives();
    }
    reached = heal_allocations();
  }).join();
  return found;
}

/// Runs the script with every `step`-th allocation and the `width` from there on failing. Twice:
/// what the process makes once and keeps, such as a name, is there when leaks are counted. Returns
/// how many allocations the script has.
long fail_in_turn(long step, long width) {
  long k = 1;
  for (const bool counting : {false, true}) {
    bool reached = false;
    EXPECT_EQ(run(1L << 50, 0, reached).fault, nullptr);
    const long before = allocations_living();
    reached = true;
    for (k = 1; reached && !::testing::Test::HasFailure(); k += step) {
      const Found found = run(k, width, reached);
      EXPECT_EQ(found.fault, nullptr) << "allocation " << k << ": " << found.fault;
      if (!counting) continue;
      EXPECT_EQ(allocations_living(), before) << "allocation " << k << " leaks";
    }
  }
  return k;
}

TEST(OutOfMemoryTest, EachAllocationMayFail) {
  const long allocations = fail_in_turn(1, 1);
  EXPECT_GT(allocations, 100) << "the script allocates next to nothing: the test sees too little";
}

TEST(OutOfMemoryTest, FromEachAllocationOnAllMayFail) {
  fail_in_turn(3, 1L << 40);
}

/// The system's own refusals come at other places than the counted ones.
TEST(OutOfMemoryTest, ASmallAddressSpaceIsSurvived) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's shadow memory does not fit into a limit";
  for (rlim_t more = 0; more <= 64; more = more == 0 ? 1 : more * 2) {
    const auto run_in_little = [more](Findings& f) {
      std::ifstream statm("/proc/self/statm");
      rlim_t pages = 0;
      statm >> pages;
      rlimit limit{};
      limit.rlim_cur = limit.rlim_max =
          pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (more << 20);
      f.expect(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
      for (int i = 0; i < 3; ++i) {
        const Found found = Script().run();
        f.expect(found.fault == nullptr, found.fault);
      }
    };
    EXPECT_EQ(in_child(run_in_little), kFine) << more << " MiB left";
  }
}

/// The queue takes a batch in blocks. One that got some of them and then no more must leave nothing
/// behind that later events stumble over.
TEST(OutOfMemoryTest, ABatchThatGetsHalfOfItsMemoryLosesOnlyWhatItSays) {
  bool reached = true;
  for (long k = 1; reached && !HasFailure(); ++k) {
    reached = false;
    TestBus bus;
    auto& ticks = bus.channel<Tick>();
    Growing growing;
    const Subscription seen = ticks.subscribe([&growing](const Tick& t) { growing.hear(t.n); });
    auto publisher = ticks.publisher();
    std::array<Tick, 300> many{};
    std::uint64_t said = 0, accepted = 0;
    for (int batch = 0; batch < 40; ++batch) {
      for (Tick& t : many) t.n = ++said;
      if (batch % 8 == 0) fail_allocations(k, 1);
      accepted += publisher.publish_all(many).accepted;
      if (batch % 8 == 0) reached |= heal_allocations();
      if (batch % 16 == 15) bus.deliver();
    }
    bus.deliver();
    EXPECT_EQ(growing.count, accepted) << "allocation " << k;
    EXPECT_FALSE(growing.disordered) << "allocation " << k;
    EXPECT_TRUE(bus.verify_accounting().has_value());
  }
}

}  // namespace
}  // namespace ringmain::tests
