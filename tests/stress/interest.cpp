// Do sources know whether anybody listens, and is every loss told, while both change all the time?
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bus/bus_events.hpp"

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

using Event = Said<2>;
constexpr nanoseconds kLong = std::chrono::seconds(100);

/// What the housekeeper said last of each of two channels.
struct Known {
  std::atomic<std::uint32_t> left{~std::uint32_t{0}}, right{~std::uint32_t{0}};
  std::atomic<std::uint64_t> told{0};
  void tell(std::string_view name, Interest i) {
    if (name == "stress.left") left = i.subscribers;
    if (name == "stress.right") right = i.subscribers;
    ++told;
  }
};

class Storm {
 public:
  Storm(unsigned workers, std::uint64_t seed, Tally& tally, Faults& faults)
      : seed_(seed), tally_(tally), faults_(faults), bus_(with(workers)) {}

  void run(const Until& until) {
    Subscription by_name = bus_.on_interest(
        "stress.*", [this](std::string_view name, Interest i) { known_.tell(name, i); });
    Subscription on_left = bus_.on_interest(left_, [this](Interest i) {
      wanted_ = i.workers;
      ++known_.told;
    });
    const Subscription losses = bus_.channel<LossNotice>().subscribe([this](const LossNotice& n) {
      if (!n.mailbox && n.channel.view() == "stress.left") lost_ += n.all();
      ++known_.told;
    });
    std::atomic<bool> over{false};
    std::thread source([this, &over] { publish(over); });
    std::vector<std::thread> churns;
    std::atomic<std::uint64_t> rounds{0};
    for (std::uint64_t t = 0; t < 2; ++t)
      churns.emplace_back([this, t, &rounds, &until] { come_and_go(t, rounds, until); });
    for (auto& t : churns) t.join();
    over = true;
    source.join();
    settle();
  }

 private:
  static BusOptions with(unsigned workers) {
    BusOptions o;
    o.workers = workers;
    return o;
  }

  /// A source that runs only while it is wanted, as it was told.
  void publish(const std::atomic<bool>& over) {
    PublisherOptions o;
    o.capacity_events = 16;
    o.overflow = Overflow::drop_oldest;
    auto p = left_.publisher(o).value();
    for (std::uint32_t n = 1; !over; ++n) {
      while (!wanted_ && !over) std::this_thread::yield();
      const PublishResult r = p.publish(Event::make(1, n));
      if (r == PublishCode::accepted) ++tally_.events;
      if (r == PublishCode::full) ++tally_.dropped;
      if (n % 32 == 0) std::this_thread::yield();
    }
  }

  void come_and_go(std::uint64_t thread, std::atomic<std::uint64_t>& rounds, const Until& until) {
    Random random(seed_ * 100 + thread);
    Channel<Event>& channel = thread == 0 ? left_ : right_;
    const std::atomic<std::uint32_t>& known = thread == 0 ? known_.left : known_.right;
    while (until.more(rounds++)) {
      SubscribeOptions o;
      if (random.below(16) == 0) o.served = Served::isolated;
      const auto hear = [p = Poison(poison_, faults_)](const Event&) { p.called(); };
      Subscription sub =
          random.below(4) == 0 ? channel.subscribe_inline(hear) : channel.subscribe(hear, o);
      if (random.below(8) == 0) {
        Subscription asks =
            bus_.on_interest(channel, [p = Poison(poison_, faults_), this](Interest) {
              p.called();
              ++known_.told;
            });
        if (random.below(2) == 0) expect_told(known, 1);
        if (asks.reset() != Detached::done) faults_.add("interest: reset() was not done");
      }
      if (sub.reset() != Detached::done) faults_.add("interest: reset() was not done");
      if (random.below(64) == 0) expect_told(known, 0);
      ++tally_.subscriptions;
    }
  }
  /// Only this thread changes the listeners of this channel.
  void expect_told(const std::atomic<std::uint32_t>& known, std::uint32_t subscribers) {
    if (!bus_.wait_told(kLong)) faults_.add("interest: wait_told ran out of time");
    faults_.expect_equal(known, subscribers, "interest: the last that was told");
  }

  void settle() {
    faults_.expect(bus_.flush(kLong), "interest: flush ran out of time");
    expect_told(known_.left, 0);
    expect_told(known_.right, 0);
    faults_.expect(!wanted_, "interest: a source was left running");
    const ChannelStats s = left_.stats();
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (lost_ != s.full + s.evicted && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(milliseconds(1));
    faults_.expect_equal(lost_, s.full + s.evicted, "interest: losses told");
    const auto verified = bus_.verify_accounting();
    if (!verified) faults_.add(verified.error().message);
    faults_.expect_equal(static_cast<std::uint64_t>(poison_.living.load()), 0,
                         "interest: leaked captures");
    tally_.heard += poison_.calls;
    tally_.evicted += s.evicted;
    tally_.told += known_.told;
  }

  const std::uint64_t seed_;
  Tally& tally_;
  Faults& faults_;
  Poison::Count poison_;
  Known known_;
  std::atomic<bool> wanted_{false};
  std::atomic<std::uint64_t> lost_{0};
  Bus bus_;
  Channel<Event>& left_ = bus_.channel<Event>("stress.left");
  Channel<Event>& right_ = bus_.channel<Event>("stress.right");
};

}  // namespace

void interest_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                    Faults& faults) {
  Storm(workers, seed, tally, faults).run(until);
}

}  // namespace ringmain::stress
