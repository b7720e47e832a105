// Is what was published earlier heard earlier, while subscribers that want this come and go?
//
// Each event carries what its publisher had seen finished of every other one, a clock for each of
// them: a subscriber that hears it must have heard all of that. The two that stay must hear the
// same.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

enum : std::uint32_t { kPublishers = 3 };
enum : std::uint64_t { kBacklogMax = 2000 };
constexpr nanoseconds kLong = std::chrono::seconds(100);
constexpr microseconds kPatient = std::chrono::minutes(5);  // a slow machine makes no gap
using Clocks = std::array<std::uint64_t, kPublishers>;
using SharedClocks = std::array<std::atomic<std::uint64_t>, kPublishers>;

/// One type for each channel: an ordered subscriber finds channels by their types.
template <int kChannel>
struct Marked {
  std::uint32_t id = 0;
  std::uint64_t n = 0;  // of this publisher, over all channels
  Clocks before{};      // of each publisher, whose publish had returned
};
template <int kChannel>
constexpr auto describe(EventOf<Marked<kChannel>>) {
  constexpr std::array<const char*, 3> kNames{"stress.total", "stress.left", "stress.right"};
  return event(kNames[kChannel], field<&Marked<kChannel>::id>("id", Unit::id),
               field<&Marked<kChannel>::n>("n", Unit::count));
}
using Total = Marked<0>;
using Left = Marked<1>;
using Right = Marked<2>;

Clocks read(const SharedClocks& clocks) {
  Clocks all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = clocks[i].load();
  return all;
}

/// What publishers and subscribers know of each other.
struct Scene {
  SharedClocks begun{};
  std::array<SharedClocks, 2> done{};       // on any channel; on the one of total order
  std::atomic<std::uint64_t> said{0};       // on any channel
  std::atomic<std::uint64_t> said_here{0};  // on the one of total order
};

/// One subscriber's memory. Threads: those that call back, one at a time.
class Marks {
 public:
  Marks(const char* who, const Scene& scene, Faults& faults)
      : who_(who), scene_(scene), faults_(faults) {}
  /// It is attached: what is begun from here on must be heard.
  void attached() {
    since_ = read(scene_.begun);
    attached_ = true;
  }
  template <int kChannel>
  void hear(const Marked<kChannel>& e) {
    if (e.id >= kPublishers || e.n <= last_[e.id]) {
      faults_.add(std::string(who_) + ": " + std::to_string(e.n) + " came too late or twice");
      return;
    }
    const bool from_here = attached_;
    for (std::size_t i = 0; from_here && i < kPublishers; ++i) {
      if (e.before[i] > since_[i] && e.before[i] > last_[i])
        faults_.add(std::string(who_) + ": " + std::to_string(e.n) + " of one came before " +
                    std::to_string(e.before[i]) + " of another");
    }
    last_[e.id] = e.n;
    trace_ = trace_ * 31 + (std::uint64_t{e.id} << 60 | e.n);
    ++heard_;
  }
  [[nodiscard]] std::uint64_t heard() const { return heard_; }
  [[nodiscard]] std::uint64_t trace() const { return trace_; }  // all that it heard, in its order

 private:
  const char* who_;
  const Scene& scene_;
  Faults& faults_;
  std::atomic<bool> attached_{false};
  Clocks since_{};
  Clocks last_{};
  std::uint64_t trace_ = 0;
  std::atomic<std::uint64_t> heard_{0};
};

class Storm {
 public:
  Storm(unsigned workers, std::uint64_t seed, Tally& tally, Faults& faults)
      : seed_(seed), tally_(tally), faults_(faults), bus_(with(workers)) {
    ChannelOptions total;
    total.order = Order::total;
    total.order_gap_us_max = kPatient;
    total_ = bus_.configure<Total>(total).value();
  }

  void run(const Until& until) {
    Subscription here = total_->subscribe([this](const Total& e) { here_.hear(e); });
    Subscription one = hear_all([this](const auto& e) { one_.hear(e); });
    Subscription two = hear_all([this](const auto& e) { two_.hear(e); });
    for (Marks* m : {&here_, &one_, &two_}) m->attached();
    std::atomic<bool> over{false};
    std::vector<std::thread> publishers;
    for (std::uint32_t id = 0; id < kPublishers; ++id)
      publishers.emplace_back([this, id, &over] { publish(id, over); });
    std::vector<std::thread> churns;
    std::atomic<std::uint64_t> rounds{0};
    for (std::uint64_t t = 0; t < 2; ++t)
      churns.emplace_back([this, t, &rounds, &until] { come_and_go(t, rounds, until); });
    for (auto& t : churns) t.join();
    over = true;
    for (auto& t : publishers) t.join();
    faults_.expect(bus_.flush(kLong), "order: flush ran out of time");
    settle(one, two);
  }

 private:
  static BusOptions with(unsigned workers) {
    BusOptions o;
    o.workers = workers;
    return o;
  }
  template <class F>
  Subscription hear_all(F hear) {
    OrderOptions o;
    o.gap_us_max = kPatient;
    o.queue_events = 4 * kBacklogMax;
    return bus_.subscribe_ordered<Total, Left, Right>(std::move(hear), o);
  }

  void publish(std::uint32_t id, const std::atomic<bool>& over) {
    Random random(seed_ * 1000 + id);
    PublisherOptions o;
    o.capacity_events = 1024;
    o.overflow = Overflow::block;
    o.block_us_max = std::chrono::minutes(5);
    o.lane = static_cast<LaneKind>(id % 3);
    auto on_total = total_->publisher(o).value();
    auto on_left = bus_.channel<Left>().publisher(o).value();
    auto on_right = bus_.channel<Right>().publisher(o).value();
    for (std::uint64_t n = 1; !over; ++n) {
      while (far_ahead()) std::this_thread::yield();
      scene_.begun[id] = n;
      const std::uint64_t which = random.below(3);
      const Clocks before = read(scene_.done[which == 0]);
      PublishResult r;
      if (which == 0)
        r = on_total.publish({id, n, before});
      else if (which == 1)
        r = on_left.publish({id, n, before});
      else
        r = on_right.publish({id, n, before});
      if (r != PublishCode::accepted) faults_.add("order: a publish was refused");
      scene_.done[0][id] = n;
      ++scene_.said;
      ++tally_.events;
      if (which != 0) continue;
      scene_.done[1][id] = n;
      ++scene_.said_here;
    }
  }
  /// A mailbox that overflows would lose what it must have heard.
  [[nodiscard]] bool far_ahead() const {
    const std::uint64_t heard = std::min(one_.heard(), two_.heard());
    return scene_.said > heard + kBacklogMax || scene_.said_here > here_.heard() + kBacklogMax;
  }

  void come_and_go(std::uint64_t thread, std::atomic<std::uint64_t>& rounds, const Until& until) {
    Random random(seed_ * 100 + thread);
    while (until.more(rounds++)) {
      const bool all = random.below(2) == 0;
      Marks marks(all ? "ordered, for a while" : "total, for a while", scene_, faults_);
      const auto hear = [p = Poison(poison_, faults_), &marks](const auto& e) {
        p.called();
        marks.hear(e);
      };
      const std::uint64_t before = scene_.said;
      Subscription sub =
          all ? hear_all(hear) : total_->subscribe([hear](const Total& e) { hear(e); });
      marks.attached();
      // As long as some events take, but never so many that its mailbox overflows.
      for (std::uint64_t k = random.below(2000); k > 0 && scene_.said < before + kBacklogMax; --k)
        engine::pause();
      if (sub.reset() != Detached::done) faults_.add("order: reset() was not done");
      tally_.ordered += marks.heard();
      ++tally_.subscriptions;
    }
  }

  void settle(Subscription& one, Subscription& two) {
    faults_.expect_equal(one_.heard(), scene_.said, "order: heard");
    faults_.expect_equal(two_.heard(), scene_.said, "order: heard by the second");
    faults_.expect_equal(one_.trace(), two_.trace(), "order: two heard different orders");
    faults_.expect_equal(here_.heard(), scene_.said_here, "order: heard on one channel");
    const ChannelStats total = total_->stats();
    faults_.expect_equal(total.order_late + total.order_gaps, 0, "order: late on the channel");
    for (const Subscription* s : {&one, &two}) {
      const SubscriberStats stats = s->stats();
      expect_i3(stats, "order", faults_);
      faults_.expect_equal(stats.order_late + stats.order_gaps, 0, "order: late");
    }
    const auto verified = bus_.verify_accounting();
    if (!verified) faults_.add(verified.error().message);
    (void)one.reset();
    (void)two.reset();
    faults_.expect_equal(static_cast<std::uint64_t>(poison_.living.load()), 0,
                         "order: leaked captures");
    tally_.heard += one_.heard() + two_.heard() + here_.heard();
    tally_.ordered += one_.heard() + two_.heard() + here_.heard();
  }

  const std::uint64_t seed_;
  Tally& tally_;
  Faults& faults_;
  Poison::Count poison_;
  Scene scene_;
  Marks here_{"total", scene_, faults_}, one_{"ordered", scene_, faults_},
      two_{"ordered beside it", scene_, faults_};
  Bus bus_;
  Channel<Total>* total_ = nullptr;
};

}  // namespace

void order_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                 Faults& faults) {
  Storm(workers, seed, tally, faults).run(until);
}

}  // namespace ringmain::stress
