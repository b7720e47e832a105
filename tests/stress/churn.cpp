// Subscribers, handles and buses that come and go while everything else goes on.
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

using Event = Said<2>;
constexpr nanoseconds kLong = std::chrono::seconds(100);

BusOptions with(unsigned workers) {
  BusOptions o;
  o.workers = workers;
  return o;
}

/// Publishes until told to stop, on a lane of its own.
class Background {
 public:
  Background(Channel<Event>& channel, Tally& tally)
      : thread_([this, &channel, &tally] {
          PublisherOptions o;
          o.capacity_events = 256;
          auto p = std::move(channel.publisher(o)).value();
          std::uint32_t n = 0;
          while (!over_) {
            if (p.publish(Event::make(1, ++n)) == PublishCode::accepted)
              ++tally.events;
            else
              std::this_thread::yield();
          }
        }) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace

void registration_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                        Faults& faults) {
  Poison::Count poison;
  {
    Bus bus(with(workers));
    Channel<Event>& channel = bus.channel<Event>();
    const Background a(channel, tally);
    const Background b(channel, tally);
    std::atomic<std::uint64_t> rounds{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed * 100 + t);
        while (until.more(rounds++)) {
          SubscribeOptions o;
          o.priority = static_cast<int>(random.below(5)) - 2;
          if (random.below(64) == 0) o.served = Served::isolated;
          if (random.below(512) == 0) o.served = Served::own_thread;
          // Freed below: a call after reset() would touch it.
          auto mine = std::make_unique<std::uint64_t>(0);
          auto hear = [p = Poison(poison, faults), at = mine.get(), &faults](const Event& e) {
            p.called();
            if (!e.intact()) faults.add("storm: a payload is damaged");
            ++*at;
          };
          o.queue_events = 256;
          if (o.served != Served::shared && random.below(2) == 0)
            o.overflow = Overflow::drop_oldest;
          Subscription sub = random.below(128) == 0
                                 ? channel.subscribe_latest(&Event::n, std::move(hear), o)
                                 : channel.subscribe(std::move(hear), o);
          for (std::uint64_t k = random.below(4) == 0 ? random.below(300) : 0; k > 0; --k)
            engine::pause();
          if (sub.reset() != Detached::done) faults.add("storm: reset() was not done");
          ++tally.subscriptions;
        }
      });
    }
    for (auto& t : threads) t.join();
  }
  faults.expect_equal(static_cast<std::uint64_t>(poison.living.load()), 0,
                      "storm: leaked captures");
  tally.heard += poison.calls;
}

void resets_in_callbacks(unsigned workers, const Until& until, Tally& tally, Faults& faults) {
  Poison::Count poison;
  Bus bus(with(workers));
  auto& left = bus.channel<Event>("stress.left");
  auto& right = bus.channel<Event>("stress.right");
  for (std::uint64_t round = 0; until.more(round); ++round) {
    SubscribeOptions o;
    if (round % 3 == 1) o.served = Served::isolated;
    if (round % 12 == 2) o.served = Served::own_thread;
    Subscription own;
    Subscription a;
    Subscription b;
    own = left.subscribe(
        [&own, p = Poison(poison, faults)](const Event&) {
          p.called();
          (void)own.reset();
        },
        o);
    // Each handle is touched by one callback only.
    a = left.subscribe(
        [&b, p = Poison(poison, faults)](const Event&) {
          p.called();
          (void)b.reset();
        },
        o);
    b = right.subscribe(
        [&a, p = Poison(poison, faults)](const Event&) {
          p.called();
          (void)a.reset();
        },
        o);
    auto held = std::make_unique<Subscription>();
    *held = right.subscribe([&held, p = Poison(poison, faults)](const Event&) {
      p.called();
      held.reset();
    });
    for (std::uint32_t n = 1; n <= 3; ++n) {
      (void)left.publish(Event::make(1, n));
      (void)right.publish(Event::make(2, n));
    }
    faults.expect(bus.flush(kLong), "resets: flush ran out of time");
    for (Subscription* s : {&own, &a, &b}) {
      const Detached d = s->wait_quiescent(kLong);
      if (d != Detached::done && d != Detached::was_not_attached)
        faults.add("resets: wait_quiescent said " + std::string(to_string(d)));
    }
    faults.expect(held == nullptr, "resets: a handle outlived its callback");
    faults.expect_equal(static_cast<std::uint64_t>(poison.living.load()), 0,
                        "resets: captures in round " + std::to_string(round));
    tally.subscriptions += 4;
  }
  tally.heard += poison.calls;
}

void lifecycles(const Until& until, std::uint64_t seed, Tally& tally, Faults& faults) {
  for (std::uint64_t round = 0; until.more(round); ++round) {
    Random random(seed * 7919 + round);
    Poison::Count poison;
    std::atomic<std::uint64_t> accepted{0};
    std::atomic<std::uint64_t> heard{0};
    auto bus = std::make_unique<Bus>(with(1 + static_cast<unsigned>(random.below(3))));
    auto& channel = bus->channel<Event>();
    const auto count = [&heard](const Event&) { ++heard; };
    Subscription always = channel.subscribe(count);
    Subscription beside;
    std::vector<std::thread> threads;
    const bool abort = random.below(4) == 0;
    const bool isolated = random.below(2) == 0;
    if (isolated) {
      SubscribeOptions o;
      o.served = Served::isolated;
      beside = channel.subscribe([p = Poison(poison, faults)](const Event&) { p.called(); }, o);
    }
    PublisherOptions po;
    po.lane = static_cast<LaneKind>(random.below(3));
    po.overflow = Overflow::block;
    po.block_us_max = microseconds(-1);
    po.capacity_events = 8;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, own = std::move(channel.publisher(po)).value()]() mutable {
        for (std::uint32_t n = 1;; ++n) {
          const PublishCode code = own.publish(Event::make(1, n)).code;
          if (code == PublishCode::closed) break;
          if (code != PublishCode::accepted) faults.add("lives: " + std::string(to_string(code)));
          ++accepted;
        }
      });
    }
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        Subscription sub =
            channel.subscribe([p = Poison(poison, faults)](const Event&) { p.called(); });
        if (i % 4 == 0) auto box = channel.mailbox();
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) (void)bus->flush(kLong);
    });
    for (std::uint64_t k = random.below(20'000); k > 0; --k) engine::pause();
    threads.emplace_back([&] { (void)bus->stop(StopMode::drain, kLong); });
    const Stopped s = bus->stop(abort ? StopMode::abort : StopMode::drain, kLong);
    faults.expect_equal(s.left, 0, "lives: left over");
    faults.expect(s.stuck.empty(), "lives: stuck");
    for (auto& t : threads) t.join();
    const ChannelStats stats = channel.stats();
    faults.expect_equal(stats.accepted, accepted, "lives: accepted");
    faults.expect_equal(stats.delivered, heard, "lives: heard");
    faults.expect_equal(stats.delivered + stats.discarded, accepted, "lives: accounted for");
    const auto verified = bus->verify_accounting();
    if (!verified) faults.add(verified.error().message);
    if (isolated) expect_i3(beside.stats(), "lives: isolated", faults);
    if (random.below(2) == 0) bus.reset();
    always.reset();
    beside.reset();
    bus.reset();
    faults.expect_equal(static_cast<std::uint64_t>(poison.living.load()), 0,
                        "lives: leaked captures");
    tally.events += accepted;
    tally.heard += heard;
    ++tally.buses;
  }
}

void channels_and_patterns(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                           Faults& faults) {
  // Channels are never removed: a new bus for each hundred of them.
  std::atomic<std::uint64_t> rounds{0};
  for (std::uint64_t life = 0; until.more(rounds); ++life) {
    Poison::Count poison;
    {
      Bus bus(with(workers));
      std::atomic<int> made{0};
      std::atomic<bool> over{false};
      std::vector<std::thread> threads;
      for (std::uint64_t t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
          Random random(seed * 31 + life * 2 + t);
          for (int i = 0; i < 50 && until.more(rounds++); ++i) {
            auto& channel = bus.channel<Event>("made." + std::to_string(made++));
            SubscribeOptions o;
            o.served = Served::isolated;
            std::atomic<std::uint64_t> heard{0};
            const std::uint64_t events = random.below(20);
            {
              const Subscription sub = channel.subscribe(
                  [p = Poison(poison, faults), &heard](const Event&) {
                    p.called();
                    ++heard;
                  },
                  o);
              for (std::uint32_t n = 1; n <= events; ++n)
                if (channel.publish(Event::make(1, n)) != PublishCode::accepted)
                  faults.add("channels: a publish was refused");
              faults.expect(bus.flush(kLong), "channels: flush ran out of time");
              faults.expect_equal(heard, events, "channels: heard after flush");
            }
            ++tally.subscriptions;
            tally.events += events;
          }
        });
      }
      threads.emplace_back([&] {
        while (!over) {
          Subscription sub = bus.subscribe(
              "made.*", [p = Poison(poison, faults)](const EventView&) { p.called(); });
          auto box = bus.mailbox(">");
          if (sub.reset() != Detached::done)
            faults.add("channels: a pattern's reset() was not done");
          (void)box.drain([](const EventView&) {});
          ++tally.subscriptions;
        }
      });
      threads[0].join();
      threads[1].join();
      over = true;
      threads[2].join();
      const auto verified = bus.verify_accounting();
      if (!verified) faults.add(verified.error().message);
      ++tally.buses;
    }
    faults.expect_equal(static_cast<std::uint64_t>(poison.living.load()), 0,
                        "channels: leaked captures");
    tally.heard += poison.calls;
  }
}

}  // namespace ringmain::stress
