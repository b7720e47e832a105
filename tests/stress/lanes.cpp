// Sources say what lanes a channel's threads get while these threads take them.
#include <thread>
#include <vector>

#include "bus/test_bus.hpp"

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

using Event = Said<2>;
enum : std::uint64_t { kNobodySaid = 0, kEither = 48, kOther = 96 };

/// How many events this thread can publish where nobody takes them: what its lane holds.
std::uint64_t capacity_found(Channel<Event>& channel, Tally& tally) {
  std::uint64_t n = 0;
  while (n <= kOther && channel.publish(Event::make(1, static_cast<std::uint32_t>(n + 1)))) ++n;
  tally.events += n;
  return n > kOther ? std::uint64_t{kNobodySaid} : n;
}

}  // namespace

void thread_lanes_storm(unsigned takers, const Until& until, Tally& tally, Faults& faults) {
  for (std::uint64_t round = 0; until.more(round); ++round) {
    TestBus bus;
    Channel<Event>& channel = bus.channel<Event>();
    const Subscription sub = channel.subscribe([](const Event&) {});
    std::atomic<std::uint64_t> agreed{kNobodySaid};
    std::atomic<unsigned> begun{0};
    std::vector<std::thread> threads;
    // All begin together, as far as the machine lets them.
    const auto begin = [&begun, all = takers + 3] {
      ++begun;
      while (begun < all) std::this_thread::yield();
    };
    for (const std::uint64_t wants : {kEither, kOther, kEither}) {
      threads.emplace_back([&, wants] {
        PublisherOptions o;
        o.capacity_events = static_cast<std::uint32_t>(wants);
        o.realtime = true;
        begin();
        const auto said = channel.set_thread_lanes(o);
        if (!said) {
          faults.expect(said.error().code == Error::Code::conflict,
                        "lanes: " + said.error().message);
          return;
        }
        const std::uint64_t before = agreed.exchange(wants);
        faults.expect(before == kNobodySaid || before == wants, "lanes: two that contradict hold");
      });
    }
    for (unsigned t = 0; t < takers; ++t) {
      threads.emplace_back([&] {
        begin();
        const std::uint64_t known = agreed;
        const std::uint64_t found = capacity_found(channel, tally);
        faults.expect(found == kNobodySaid || found == kEither || found == kOther,
                      "lanes: one of " + std::to_string(found) + " events");
        faults.expect(known == kNobodySaid || found == known, "lanes: said before, and not so");
      });
    }
    for (std::thread& t : threads) t.join();
    tally.threads += threads.size();
    std::thread([&] {
      faults.expect_equal(capacity_found(channel, tally), agreed, "lanes: the last thread's");
    }).join();
    bus.deliver();
    const auto adds_up = bus.verify_accounting();
    faults.expect(adds_up.has_value(), "lanes: the accounts do not add up");
    ++tally.buses;
  }
}

}  // namespace ringmain::stress
