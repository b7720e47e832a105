#include "tests/fuzz/bus_under_test.hpp"

#include <algorithm>
#include <thread>

namespace ringmain::fuzz {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

BusUnderTest::BusUnderTest(const Case& what, Faults& faults)
    : case_(what),
      faults_(faults),
      journal_(faults),
      oracle_(journal_, what.drive),
      serial_(next_serial()),
      actors_(what.threads) {
  for (std::size_t i = 0; i < actors_.size(); ++i) actors_[i].index = i;
  if (what.drive == Drive::manual) {
    manual_ = std::make_unique<TestBus>();
    bus_ = manual_.get();
    return;
  }
  BusOptions o;
  o.workers = what.workers;
  o.realtime_us_max = microseconds(500);
  driven_ = std::make_unique<Bus>(o);
  bus_ = driven_.get();
}

BusUnderTest::~BusUnderTest() = default;

void BusUnderTest::run() {
  std::size_t from = 0;
  for (std::size_t i = 0; i <= case_.operations.size() && !faults_.any(); ++i) {
    if (i != case_.operations.size() && case_.operations[i].what != Do::rest) continue;
    phase(from, i);
    rest();
    from = i + 1;
  }
  end();
}

/// All between two rests: one after another, or each by its own thread.
void BusUnderTest::phase(std::size_t from, std::size_t to) {
  if (actors_.size() == 1) {
    for (std::size_t i = from; i < to && !faults_.any(); ++i) {
      act(actors_[0], case_.operations[i]);
      if (manual_ && i % 4 == 0) look();
    }
    return;
  }
  std::vector<std::thread> threads;
  for (Actor& a : actors_) {
    threads.emplace_back([this, &a, from, to] {
      for (std::size_t i = from + a.index; i < to && !faults_.any(); i += actors_.size())
        act(a, case_.operations[i]);
    });
  }
  for (auto& t : threads) t.join();
}

void BusUnderTest::rest() {
  // Callbacks publish, too, so this flushes until nothing new comes. A flush does not wait for what
  // a callback is publishing when the flush begins, but that has ended when the callback has.
  for (std::uint64_t ended = ~std::uint64_t{0}; ended != journal_.ended();) {
    ended = journal_.ended();
    faults_.expect(bus_->flush(kLong), "flush() ran out of time");
  }
  if (manual_) faults_.expect_equal(manual_->queued(), 0, "queued() after flush()");
  judge();
}

void BusUnderTest::judge() {
  std::array<ChannelAtRest, kTypes> channels;
  for (std::size_t c = 0; c < kTypes; ++c) {
    if (!channels_[c]) continue;
    channels[c] = {true, options_[c], channels_[c]->stats()};
  }
  std::vector<SubscriberAtRest> subscribers(journal_.subscribers());
  for (std::size_t i = 0; i < subscribers.size(); ++i) {
    Held* held = held_of_[i];
    if (held == nullptr || held->released) continue;
    const std::lock_guard lock(held->lock);
    subscribers[i].held = held->box ? held->box->base().attached() : held->handle.attached();
    if (!subscribers[i].held) continue;
    subscribers[i].stats = held->box ? held->box->base().stats() : held->handle.stats();
    subscribers[i].emptied = held->box && subscribers[i].stats.pending == 0;
  }
  oracle_.judge(channels, subscribers);
  const auto verified = bus_->verify_accounting();
  if (!verified) faults_.add(verified.error().message);
  if (manual_ || over_ || case_.drive == Drive::several) return;
  for (const Asked& a : asked_) {
    faults_.expect(bus_->wait_told(kLong), "wait_told() ran out of time");
    faults_.expect_equal(a.subscribers->load(), channels_[a.channel]->stats().subscribers,
                         "the interest in " + std::string(kNames[a.channel]));
  }
}

/// stop() in every way, and what handles do afterwards.
void BusUnderTest::end() {
  if (faults_.any()) {
    over_ = true;
  } else if (case_.ending % 4 != 0) {
    Random random(case_.ending);
    for (int i = 0; i < 5; ++i) {
      speak(random.below(kTypes), random() & 0x0fffff07u, 1 + random.below(300), random());
      say(actors_[0], {random(), random() & 0xffffff07u, random(), random()});
    }
    const bool abort = case_.ending % 4 == 1;
    oracle_.stopping();
    const Stopped s = bus_->stop(abort ? StopMode::abort : StopMode::drain, kLong);
    faults_.expect(!s.refused && s.left == 0 && s.stuck.empty(), "stop() did not end in time");
    for (const auto& u : s.unbalanced) faults_.add("stop(): " + u);
    over_ = true;
    if (abort) oracle_.discarded();
    judge();
    for (Actor& a : actors_) {
      for (OwnedPublisher& v : a.publishers)
        faults_.expect(v.out->say({}) == PublishCode::closed,
                       "a publish after stop() was not closed");
    }
    for (std::size_t c = 0; c < kTypes; ++c) {
      if (channels_[c])
        faults_.expect(channels_[c]->threads_own().say({}) == PublishCode::closed ||
                           options_[c].lanes_max <= 64,
                       "a channel's publish after stop() was not closed");
    }
  }
  over_ = true;
  asked_.clear();
  const auto end_bus = [this] {
    for (auto& c : channels_) c.reset();
    manual_.reset();
    driven_.reset();
  };
  if (case_.ending / 4 % 2 == 0) end_bus();  // before its handles
  for (Actor& a : actors_) {
    a.publishers.clear();
    for (Held* held : a.boxes) {
      if (!faults_.any()) (void)read_some(*held, 3, 256);
    }
    for (auto* list : {&a.subscribers, &a.boxes}) {
      for (Held* held : *list) reset_one(*held, 3);
    }
  }
  for (Held* held : late_) reset_one(*held, 3);
  held_.clear();
  end_bus();
  for (std::size_t i = 0; i < journal_.subscribers(); ++i) {
    const SubscriberRecord& subscriber = journal_.subscriber_at(i);
    faults_.expect_equal(
        static_cast<std::uint64_t>(subscriber.captures), 0,
        std::string(to_string(subscriber.form)) + ": captures after the bus ended");
  }
}

std::uint64_t BusUnderTest::trace() const {
  std::uint64_t trace = 0xcbf29ce484222325ull;
  for (std::size_t i = 0; i < journal_.subscribers(); ++i) {
    const SubscriberRecord& subscriber = journal_.subscriber_at(i);
    for (std::uint32_t h = 0; h < std::min<std::uint32_t>(subscriber.heard_count, kHeardMax); ++h) {
      const Mark& m = subscriber.heard[h].mark;
      for (const std::uint64_t w :
           {std::uint64_t{m.publisher}, std::uint64_t{m.n}, subscriber.heard[h].at})
        trace = (trace ^ w) * 0x100000001b3ull;
    }
  }
  return trace;
}

}  // namespace ringmain::fuzz
