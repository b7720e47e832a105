// A script that uses all of a bus: every kind of subscriber, publisher and mailbox, and their ends.
// What must hold whichever of its allocations fail, it checks as it goes, in words that need no
// memory.
#pragma once
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {

struct Late {  // its channel comes after the patterns
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

inline bool balances(const SubscriberStats& s) {
  return s.offered ==
         s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending;
}

inline SubscribeOptions named(const char* name, Served served = Served::shared) {
  SubscribeOptions o;
  o.name = name;
  o.served = served;
  return o;
}

class Script {
 public:
  /// `patient`: memory comes back, so what the housekeeper could not tell at once it will.
  explicit Script(bool patient) : patient_(patient) {}
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

  Subscription sees() {
    return ticks_->subscribe_inline([this, c = Counted(living_)](const Tick&) { ++seen_; },
                                    named("it sees whatever is said there"));
  }
  Subscription ordered() {
    OrderOptions o;
    o.name = "both of them in one order";
    o.gap_us_max = std::chrono::minutes(5);
    return bus_->subscribe_ordered<Tick, Tock>(
        overloaded{[this, c = Counted(living_)](const Tick& t) { ordered_.hear(t.n); },
                   [](const Tock&) {}},
        o);
  }
  Subscription apart() {
    SubscribeOptions o = named("it has a thread of its own", Served::own_thread);
    o.overflow = Overflow::drop_oldest;
    o.queue_events = 8;
    return ticks_->subscribe([c = Counted(living_)](const Tick&) {}, o);
  }
  Subscription latest() {
    SubscribeOptions o = named("it hears the newest of each");
    o.queue_events = 16;
    return ticks_->subscribe_latest([](const Tick& t) { return t.n % 32; },
                                    [c = Counted(living_)](const Tick&) {}, o);
  }
  Subscription asks() {
    return bus_->on_interest(
        *ticks_, [this, c = Counted(living_)](Interest i) { told_ = i.subscribers; },
        named("a source that is costly to run"));
  }
  Subscription asks_by_pattern() {
    return bus_->on_interest("test.*",
                             [this, c = Counted(living_)](std::string_view name, Interest i) {
                               if (name == ticks_->name()) told_by_pattern_ = i.subscribers;
                             });
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
    attach(6, &Script::sees);
    attach(7, &Script::ordered);
    attach(8, &Script::apart);
    attach(9, &Script::latest);
    attach(10, &Script::asks);
    attach(11, &Script::asks_by_pattern);
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
    (void)bus_->flush(kLong);  // so that the next publisher's numbers come after these
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
    // No half channel may be left: the second time it is whole, and every pattern hears
    // it.
    for (int i = 0; i < 2; ++i) {
      done([&] { late_said_ += bus_->channel<Late>().publish({1}) != PublishCode::no_memory; });
    }
    done([&] { bus_->channel<Tock>().post({}); });
    done([&] {
      PublisherOptions o;
      o.overflow = Overflow::drop_oldest;
      o.capacity_events = 8;
      auto made = bus_->channel<Tock>().publisher(o);
      for (int i = 0; made && i < 100; ++i) (void)made.value().publish({});
    });
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
    if (subscriptions_[6].attached())
      found_.expect(seen_ >= accepted_, "an inline subscriber misses an event");
    found_.expect(!ordered_.disordered, "order across channels");
    if (subscriptions_[7].attached() && subscriptions_[7].stats().dropped == 0)
      found_.expect(ordered_.count == accepted_, "an ordered subscriber misses an event");
    done([&] { settle_interest(); });
    // The bus speaks at any time, and a call may be under way.
    for (const auto& s : subscriptions_)
      found_.expect(eventually([&s] { return balances(s.stats()); }), "I3");
    found_.expect(
        eventually([this] { return balances(box_.stats()) && balances(any_box_.stats()); }),
        "I3 of a mailbox");
    done([&] { found_.expect(bus_->verify_accounting().has_value(), "I1 or I2"); });
    // A notice of a loss or of a slow turn interns their names, for good: better now than by
    // chance.
    done([&] {
      const Stats stats = bus_->stats();
      for (const auto& c : stats.channels) (void)Name(c.name);
      for (const auto& one : stats.subscriptions) (void)Name(one.name);
    });
  }

  void settle_interest() {
    if (!patient_ || !bus_->stats().housekeeper.running) return;
    found_.expect(bus_->wait_told(kLong), "interest is not told");
    const std::uint32_t now = ticks_->stats().subscribers;
    if (subscriptions_[10].attached()) found_.expect(told_ == now, "a source is told wrong");
    if (subscriptions_[11].attached())
      found_.expect(told_by_pattern_ == now, "a source is told wrong by pattern");
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
  const bool patient_;
  Growing growing_, boxed_, ordered_;
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<std::uint32_t> told_{0}, told_by_pattern_{0};
  std::uint64_t said_ = 0, accepted_ = 0, late_said_ = 0;
  std::atomic<std::uint64_t> late_heard_{0};
  std::array<Subscription, 12> subscriptions_;
  Mailbox<Tick> box_;
  AnyMailbox any_box_;
};

}  // namespace ringmain::tests
