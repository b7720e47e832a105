#include <algorithm>
#include <memory>
#include <optional>
#include <thread>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

enum : std::size_t { kIdsMax = 1u << 16 };

/// What each publisher knows of itself.
struct Account {
  std::atomic<std::uint32_t> offered{0}, accepted{0};
  std::atomic<std::uint32_t> held{0};  // a policy that may push out: so many are heard at least
};

template <std::size_t kWords>
class Scene {
 public:
  Scene(const Steady& what, std::uint64_t seed, Faults& faults)
      : what_(what), seed_(seed), faults_(faults), bus_(options(what)) {}

  void run(const Until& until, Tally& tally) {
    attach();
    std::atomic<bool> read_all{false};
    std::thread reader([&] {
      const auto read = [this](const Event& e, const Stamp& s) { pulled_.hear(e, s); };
      while (!read_all) {
        if (box_.wait_for(milliseconds(20))) (void)box_.drain(read, 300);
      }
      while (box_.drain(read) != 0) {
      }
    });
    std::vector<std::thread> publishers;
    for (unsigned t = 0; t < what_.publishers; ++t)
      publishers.emplace_back([this, t, &until, &tally] { publish(t, until, tally); });
    for (auto& p : publishers) p.join();
    faults_.expect(bus_.flush(std::chrono::seconds(100)), "flush ran out of time");
    read_all = true;
    reader.join();
    settle(tally);
  }

 private:
  using Event = Said<kWords>;

  static BusOptions options(const Steady& what) {
    BusOptions o;
    o.workers = what.workers;
    o.realtime_us_max = microseconds(2000);
    return o;
  }

  void attach() {
    SubscribeOptions isolated;
    isolated.served = Served::isolated;
    isolated.queue_events = 5000;
    SubscribeOptions pulled;
    pulled.queue_events = 3000;
    shared_sub_ = channel_.subscribe([this](const Event& e) { shared_.hear(e); });
    stamped_sub_ =
        channel_.subscribe([this](const Event& e, const Stamp& s) { stamped_.hear(e, s); });
    batch_sub_ = channel_.subscribe_batch([this](Batch<Event> batch) {
      for (std::size_t i = 0; i < batch.size(); ++i) batch_.hear(batch[i], batch.stamp(i));
    });
    isolated_sub_ = channel_.subscribe(
        [this](const Event& e, const Stamp& s) { isolated_.hear(e, s); }, isolated);
    pattern_sub_ = bus_.subscribe(
        "stress.*",
        [this](const EventView& v) {
          if (const Event* e = v.as<Event>())
            pattern_.hear(*e, v.stamp());
          else
            faults_.add("a pattern saw another type");
        },
        isolated);
    SubscribeOptions own = isolated;
    own.served = Served::own_thread;
    own.overflow = Overflow::drop_oldest;
    own_sub_ = channel_.subscribe([this](const Event& e, const Stamp& s) { own_.hear(e, s); }, own);
    SubscribeOptions latest;
    latest.queue_events = 4096;
    latest_sub_ = channel_.subscribe_latest(
        &Event::id, [this](const Event& e, const Stamp& s) { latest_.hear(e, s); }, latest);
    box_ = channel_.mailbox(pulled);
  }

  void publish(unsigned thread, const Until& until, Tally& tally) {
    Random random(seed_ * 1000 + thread);
    for (std::uint64_t round = 0; until.more(round); ++round) {
      const std::uint32_t id = next_id_++;
      if (id >= kIdsMax) return;
      PublisherOptions o;
      o.capacity_events =
          static_cast<std::uint32_t>(1 + random.below(random.below(2) != 0 ? 8 : 2000));
      o.lane = what_.lane;
      o.overflow = static_cast<Overflow>(random.below(3));
      o.block_us_max = std::chrono::minutes(1);
      if (random.below(8) == 0) {
        o.realtime = true;
        if (o.overflow == Overflow::block) o.overflow = Overflow::drop_newest;
      }
      auto made = channel_.publisher(o);
      if (!made) {
        faults_.add("no lane: " + made.error().message);
        return;
      }
      if (o.overflow == Overflow::drop_oldest) accounts_[id].held = o.capacity_events;
      const auto events = static_cast<std::uint32_t>(1 + random.below(2000));
      session(made.value(), id, events, random.below(4), tally);
    }
  }

  void session(Publisher<Event>& p, std::uint32_t id, std::uint32_t events, std::uint64_t how,
               Tally& tally) {
    Account& account = accounts_[id];
    std::uint32_t accepted = 0;
    std::uint32_t n = 0;
    while (n < events) {
      if (how == 0 && events - n >= 20) {
        std::array<Event, 20> many;
        for (auto& e : many) e = Event::make(id, ++n);
        accepted += p.publish_all(many).accepted;
        continue;
      }
      ++n;
      const PublishResult r = p.publish_with([id, n]() noexcept { return Event::make(id, n); });
      accepted += r == PublishCode::accepted;
      if (r != PublishCode::accepted && r != PublishCode::full)
        faults_.add("a publish said " + std::string(to_string(r.code)));
    }
    account.offered = n;
    account.accepted = accepted;
    const Ledger l = p.ledger();
    faults_.expect_equal(l.offered, n, "the ledger's offered");
    faults_.expect_equal(l.offered, l.dropped + l.delivered + l.in_flight, "the ledger");
    tally.events += accepted;
    tally.dropped += n - accepted;
  }

  void settle(Tally& tally) {
    std::uint64_t offered = 0;
    std::uint64_t accepted = 0;
    std::uint64_t evicted = 0;
    for (std::uint32_t id = 0; id < next_id_ && id < kIdsMax; ++id) {
      const std::string who = "publisher " + std::to_string(id) + " was heard";
      const std::uint64_t heard = shared_.heard(id);
      const std::uint64_t held = accounts_[id].held;
      offered += accounts_[id].offered;
      accepted += accounts_[id].accepted;
      evicted += accounts_[id].accepted - heard;
      faults_.expect_equal(stamped_.heard(id), heard, who + " with stamps");
      faults_.expect_equal(batch_.heard(id), heard, who + " in batches");
      if (held == 0) {
        faults_.expect_equal(heard, accounts_[id].accepted, who);
      } else {
        faults_.expect(heard >= std::min<std::uint64_t>(held, accounts_[id].accepted), who);
      }
    }
    const ChannelStats s = channel_.stats();
    faults_.expect_equal(s.offered, offered, "the channel's offered");
    faults_.expect_equal(s.accepted, accepted, "the channel's accepted");
    faults_.expect_equal(s.full, offered - accepted, "the channel's full");
    faults_.expect_equal(s.evicted, evicted, "the channel's evicted");
    faults_.expect_equal(s.delivered, accepted - evicted, "the channel's delivered");
    tally.evicted += s.evicted;
    const auto mailbox = [&](const Oracle& o, const SubscriberStats& stats, const char* who) {
      tally.coalesced += stats.coalesced;
      faults_.expect_equal(o.sum() + stats.dropped + stats.coalesced, accepted - evicted,
                           std::string(who) + " heard + dropped");
      expect_i3(stats, who, faults_);
    };
    mailbox(isolated_, isolated_sub_.stats(), "isolated");
    mailbox(pattern_, pattern_sub_.stats(), "pattern");
    mailbox(pulled_, box_.stats(), "pulled");
    mailbox(own_, own_sub_.stats(), "own thread");
    mailbox(latest_, latest_sub_.stats(), "latest");
    for (std::uint32_t id = 0; latest_sub_.stats().dropped == 0 && id < next_id_ && id < kIdsMax;
         ++id)
      faults_.expect_equal(latest_.last(id), shared_.last(id), "the newest of a publisher");
    expect_i3(shared_sub_.stats(), "shared", faults_);
    const auto verified = bus_.verify_accounting();
    if (!verified) faults_.add(verified.error().message);
    for (const Oracle* o : {&shared_, &stamped_, &batch_, &isolated_, &pattern_, &pulled_})
      tally.heard += o->sum();
  }

  const Steady what_;
  const std::uint64_t seed_;
  Faults& faults_;
  std::vector<Account> accounts_{kIdsMax};
  std::atomic<std::uint32_t> next_id_{0};
  Oracle shared_{"shared", kIdsMax, faults_}, stamped_{"stamped", kIdsMax, faults_},
      batch_{"batch", kIdsMax, faults_}, isolated_{"isolated", kIdsMax, faults_},
      pattern_{"pattern", kIdsMax, faults_}, pulled_{"pulled", kIdsMax, faults_},
      own_{"own thread", kIdsMax, faults_}, latest_{"latest", kIdsMax, faults_};
  Bus bus_;
  Channel<Event>& channel_ = bus_.channel<Event>();
  Subscription shared_sub_, stamped_sub_, batch_sub_, isolated_sub_, pattern_sub_, own_sub_,
      latest_sub_;
  Mailbox<Event> box_;
};

}  // namespace

void steady(const Steady& what, const Until& until, std::uint64_t seed, Tally& tally,
            Faults& faults) {
  if (what.large) {
    std::make_unique<Scene<120>>(what, seed, faults)->run(until, tally);
  } else {
    std::make_unique<Scene<2>>(what, seed, faults)->run(until, tally);
  }
}

void thread_churn(unsigned workers, LaneKind lanes, const Until& until, Tally& tally,
                  Faults& faults) {
  constexpr std::uint32_t kAtOnce = 4;
  constexpr std::uint32_t kEvents = 10;
  constexpr std::uint32_t kBacklog = 16;
  BusOptions bo;
  bo.workers = workers;
  Bus bus(bo);
  ChannelOptions co;
  co.lanes = lanes;
  using Event = Said<2>;
  Channel<Event>& channel = *bus.configure<Event>("stress.churn", co).value();
  std::atomic<std::uint64_t> heard{0};
  std::uint64_t stamps = 0;
  const Subscription sub = channel.subscribe([&](const Event& e, const Stamp& s) {
    if (!e.intact()) faults.add("churn: a payload is damaged");
    if (s.sequence != e.n) faults.add("churn: a recycled lane goes on with old numbers");
    ++heard;
    stamps += s.sequence;
  });
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<std::uint64_t> said{0};
  std::vector<std::thread> spawners;
  for (std::uint32_t s = 0; s < kAtOnce; ++s) {
    spawners.emplace_back([&] {
      while (until.more(rounds++)) {
        std::thread([&] {
          for (std::uint32_t n = 1; n <= kEvents; ++n) {
            if (channel.publish(Event::make(1, n)) != PublishCode::accepted)
              faults.add("churn: a publish was refused");
          }
        }).join();
        said += kEvents;
        // A lane that is not drained yet cannot be given out again, so the lanes that are needed
        // are the threads that live and the backlog: bounded here, so that their number says
        // something.
        while (said > heard + kBacklog * kEvents) std::this_thread::yield();
        ++tally.threads;
        tally.events += kEvents;
      }
    });
  }
  for (auto& s : spawners) s.join();
  faults.expect(bus.flush(std::chrono::seconds(100)), "churn: flush ran out of time");
  const ChannelStats stats = channel.stats();
  faults.expect_equal(heard, stats.accepted, "churn: heard");
  faults.expect_equal(stamps, heard / kEvents * (kEvents * (kEvents + 1) / 2), "churn: numbers");
  tally.heard += heard;
  faults.expect(stats.lanes <= 2 * kAtOnce + kBacklog,
                "churn: " + std::to_string(stats.lanes) + " lanes");
  faults.expect_equal(stats.publishers, 0, "churn: live lanes");
}

}  // namespace ringmain::stress
