// Is every event of a channel that several workers deliver at once heard exactly once, while its
// subscribers come and go?
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

enum : std::uint32_t { kPublishers = 3, kEventsMax = 1u << 16 };
using Event = Said<2>;

/// One subscriber's memory. Threads: as many workers as call it at once.
class Marks {
 public:
  Marks(const char* who, Faults& faults)
      : who_(who),
        faults_(faults),
        seen_(new std::atomic<std::uint8_t>[kPublishers * kEventsMax]()) {}

  void hear(const Event& e) {
    if (!e.intact() || e.id >= kPublishers || e.n >= kEventsMax)
      return faults_.add(std::string(who_) + ": a payload is damaged");
    // Relaxed: it counts, and must order nothing for the bus.
    if (seen_[e.id * kEventsMax + e.n].fetch_add(1, std::memory_order_relaxed) != 0)
      faults_.add(std::string(who_) + ": " + std::to_string(e.n) + " was heard twice");
    heard_.fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t heard() const { return heard_; }

 private:
  const char* who_;
  Faults& faults_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> seen_;
  std::atomic<std::uint64_t> heard_{0};
};

class Storm {
 public:
  Storm(unsigned workers, std::uint64_t seed, Tally& tally, Faults& faults)
      : seed_(seed), tally_(tally), faults_(faults), bus_(with(workers)) {
    ChannelOptions options;
    options.delivery = Delivery::parallel;
    channel_ = bus_.configure<Event>("stress.parallel", options).value();
  }

  void run(const Until& until) {
    SubscribeOptions isolated;
    isolated.served = Served::isolated;
    isolated.queue_events = kPublishers * kEventsMax;
    SubscribeOptions own = isolated;
    own.served = Served::own_thread;
    const Subscription each = channel_->subscribe([this](const Event& e) {
      each_.hear(e);
      if (e.n % 7 == 0) throw std::runtime_error("each seventh");
    });
    const Subscription batch = channel_->subscribe_batch([this](Batch<Event> events) {
      for (const Event& e : events) batch_.hear(e);
    });
    const Subscription apart =
        channel_->subscribe([this](const Event& e) { isolated_.hear(e); }, isolated);
    const Subscription alone = channel_->subscribe([this](const Event& e) { own_.hear(e); }, own);
    std::atomic<bool> over{false};
    std::vector<std::thread> publishers;
    for (std::uint32_t id = 0; id < kPublishers; ++id)
      publishers.emplace_back([this, id, &over] { publish(id, over); });
    std::atomic<std::uint64_t> rounds{0};
    std::thread churn([this, &rounds, &until] { come_and_go(rounds, until); });
    churn.join();
    over = true;
    for (auto& t : publishers) t.join();
    faults_.expect(bus_.flush(std::chrono::seconds(100)), "parallel: flush ran out of time");
    const ChannelStats stats = channel_->stats();
    faults_.expect_equal(stats.accepted, said_, "parallel: accepted");
    faults_.expect_equal(stats.delivered, said_, "parallel: delivered");
    for (const Marks* m : {&each_, &batch_, &isolated_, &own_}) {
      faults_.expect_equal(m->heard(), said_, "parallel: heard");
      tally_.heard += m->heard();
    }
    faults_.expect_equal(each.stats().threw, sevenths_, "parallel: threw");
    for (const Subscription* s : {&each, &batch, &apart, &alone})
      expect_i3(s->stats(), "parallel", faults_);
    const auto verified = bus_.verify_accounting();
    if (!verified) faults_.add(verified.error().message);
    faults_.expect_equal(static_cast<std::uint64_t>(poison_.living.load()), 0,
                         "parallel: leaked captures");
  }

 private:
  static BusOptions with(unsigned workers) {
    BusOptions o;
    o.workers = workers;
    return o;
  }

  void publish(std::uint32_t id, const std::atomic<bool>& over) {
    PublisherOptions o;
    o.capacity_events = 512;
    o.overflow = Overflow::block;
    o.block_us_max = std::chrono::minutes(5);
    auto out = channel_->publisher(o).value();
    for (std::uint32_t n = 1; !over && n < kEventsMax; ++n) {
      if (out.publish(Event::make(id, n)) != PublishCode::accepted)
        faults_.add("parallel: a publish was refused");
      ++said_;
      sevenths_ += n % 7 == 0 ? 1 : 0;
      ++tally_.events;
    }
  }

  void come_and_go(std::atomic<std::uint64_t>& rounds, const Until& until) {
    Random random(seed_);
    while (until.more(rounds++)) {
      Subscription sub =
          channel_->subscribe([p = Poison(poison_, faults_)](const Event&) { p.called(); });
      for (std::uint64_t k = random.below(2000); k > 0; --k) engine::pause();
      if (sub.reset() != Detached::done) faults_.add("parallel: reset() was not done");
      ++tally_.subscriptions;
    }
  }

  const std::uint64_t seed_;
  Tally& tally_;
  Faults& faults_;
  Poison::Count poison_;
  std::atomic<std::uint64_t> said_{0}, sevenths_{0};
  Marks each_{"parallel", faults_}, batch_{"parallel, in batches", faults_},
      isolated_{"parallel, isolated", faults_}, own_{"parallel, own thread", faults_};
  Bus bus_;
  Channel<Event>* channel_ = nullptr;
};

}  // namespace

void parallel_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                    Faults& faults) {
  for (std::uint64_t i = 0; until.more(i * 500); ++i) {
    const Until some{500, until.over};  // the oracle's tables are finite
    Storm(workers, seed + i, tally, faults).run(some);
  }
}

}  // namespace ringmain::stress
