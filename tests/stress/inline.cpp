// Inline subscribers that come and go while threads publish, and vetoes that must balance.
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

using Event = Said<2>;
const Name kThird{"a third"};
constexpr nanoseconds kLong = std::chrono::seconds(100);

/// Compares what the publisher was told with its ledger.
void publish_until(const std::atomic<bool>& over, Channel<Event>& channel, std::uint32_t id,
                   bool realtime, Tally& tally, Faults& faults) {
  PublisherOptions o;
  o.capacity_events = 256;
  o.realtime = realtime;
  auto p = std::move(channel.publisher(o)).value();
  std::array<std::uint64_t, 16> told{};
  std::uint32_t n = 0;
  while (!over) {
    const PublishResult r = p.publish(Event::make(id, ++n));
    ++told[static_cast<std::size_t>(r.code)];
    const bool third = n % 3 == 0;
    if (r == PublishCode::vetoed && (!third || r.why != kThird))
      faults.add("inline: a veto that nobody spoke");
    if (r == PublishCode::accepted && third) faults.add("inline: a veto went unheard");
    if (r == PublishCode::full) std::this_thread::yield();
  }
  const auto count = [&told](PublishCode c) { return told[static_cast<std::size_t>(c)]; };
  const Ledger l = p.ledger();
  faults.expect_equal(l.offered, n - count(PublishCode::unheard), "inline: offered");
  faults.expect_equal(l.dropped + l.delivered + l.in_flight, l.offered, "inline: the ledger");
  faults.expect_equal(l.dropped, count(PublishCode::vetoed) + count(PublishCode::full),
                      "inline: dropped");
  tally.events += count(PublishCode::accepted);
  tally.dropped += count(PublishCode::full);
  tally.vetoed += count(PublishCode::vetoed);
}

}  // namespace

void inline_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                  Faults& faults) {
  Poison::Count poison;
  {
    BusOptions options;
    options.workers = workers;
    Bus bus(options);
    Channel<Event>& channel = bus.channel<Event>();
    Channel<Event>& echoes = bus.channel<Event>("stress.echoes");
    Oracle oracle("inline", 4, faults);
    const Subscription hears =
        channel.subscribe([&oracle](const Event& e, const Stamp& s) { oracle.hear(e, s); });
    const Subscription judge = channel.subscribe_inline([&faults](const Event& e) {
      if (!e.intact()) faults.add("inline: a payload is damaged");
      return e.n % 3 == 0 ? Verdict::veto(kThird) : Verdict::allow();
    });
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> rounds{0};
    std::vector<std::thread> publishers;
    for (std::uint32_t id = 1; id <= 3; ++id) {
      publishers.emplace_back(
          [&, id] { publish_until(over, channel, id, id == 3, tally, faults); });
    }
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Random random(seed * 100 + t);
        while (until.more(rounds++)) {
          SubscribeOptions o;
          o.priority = static_cast<int>(random.below(5)) - 2;
          const std::uint64_t kind = random.below(8);
          if (kind == 0) {  // resets itself: the captures are for others to destroy
            Subscription own;
            std::atomic<bool> ready{false};  // the handle is there
            std::atomic<bool> taken{false};
            std::atomic<bool> done{false};  // then the handle is ours again
            own = channel.subscribe_inline(
                [&, p = Poison(poison, faults)](const Event&) {
                  p.called();
                  if (!ready || taken.exchange(true)) return;
                  if (own.reset() != Detached::deferred)
                    faults.add("inline: reset() in a call was not deferred");
                  done = true;
                },
                o);
            ready = true;
            while (!done) std::this_thread::yield();
            if (own.wait_quiescent(kLong) != Detached::done)
              faults.add("inline: a deferred reset never ended");
          } else {
            // Freed below: a call after reset() would touch it.
            auto mine = std::make_unique<std::atomic<std::uint64_t>>(0);
            Subscription sub = channel.subscribe_inline(
                [p = Poison(poison, faults), at = mine.get(), kind, &echoes](const Event& e) {
                  p.called();
                  ++*at;
                  if (kind == 1) echoes.post(e);  // unheard, or nested
                },
                o);
            Subscription echo;
            if (kind == 1) {
              echo = echoes.subscribe_inline(
                  [p = Poison(poison, faults)](const Event&) { p.called(); });
            }
            for (std::uint64_t k = random.below(4) == 0 ? random.below(300) : 0; k > 0; --k)
              engine::pause();
            if (sub.reset() != Detached::done) faults.add("inline: reset() was not done");
          }
          ++tally.subscriptions;
        }
      });
    }
    for (auto& t : threads) t.join();
    over = true;
    for (auto& t : publishers) t.join();
    faults.expect(bus.flush(kLong), "inline: flush ran out of time");
    const auto verified = bus.verify_accounting();
    if (!verified) faults.add(verified.error().message);
    const ChannelStats s = channel.stats();
    faults.expect_equal(s.delivered, oracle.sum(), "inline: heard");
    // Each third one of three publishers'; a run that is ended at once has hardly any.
    faults.expect(s.vetoed != 0 || s.offered < 9, "inline: nothing was vetoed");
    expect_i3(judge.stats(), "inline: the judge", faults);
    faults.expect_equal(judge.stats().offered, s.offered, "inline: the judge saw each one");
    tally.heard += oracle.sum();
  }
  faults.expect_equal(static_cast<std::uint64_t>(poison.living.load()), 0,
                      "inline: leaked captures");
}

}  // namespace ringmain::stress
