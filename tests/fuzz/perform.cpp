// What is asked of a bus in a fuzz run, operation by operation.
#include <algorithm>
#include <stdexcept>

#include "tests/fuzz/bus_under_test.hpp"

namespace ringmain::fuzz {
namespace {

struct Pattern {
  std::string_view text;
  std::uint32_t channels;  // that it meets, in the order of kNames
};
constexpr std::array<Pattern, 6> kPatterns{{{">", 0b111111111},
                                            {"left.*", 0b000000111},
                                            {"right.>", 0b000111000},
                                            {"far.b", 0b010000000},
                                            {"*.a", 0b001001001},
                                            {"nowhere.>", 0}}};
constexpr std::array<std::uint32_t, 8> kCapacities{1, 2, 3, 5, 8, 17, 64, 300};
constexpr std::array<std::uint32_t, 6> kQueues{1, 4, 16, 64, 1000, 65536};

}  // namespace

void BusUnderTest::act(Actor& by, const Operation& op) {
  const Numbers& n = op.with;
  switch (op.what) {
    case Do::configure:
      return configure(n);
    case Do::publisher:
      return make_publisher(by, n);
    case Do::say:
      return say(by, n);
    case Do::speak:
      return speak(n[0] % kTypes, n[1] & 0x0fffffffu, 1 + n[2] % 20, n[3]);
    case Do::leave:
      return leave(by, n);
    case Do::hear:
      return hear(by, n);
    case Do::box:
      return box(by, n);
    case Do::take:
      return take(by, n);
    case Do::reset:
      return reset(by, n);
    case Do::touch:
      return touch(by, n);
    case Do::interest:
      return ask(n);
    case Do::rest:
      return;  // by the thread that drives
    case Do::deliver:
      if (manual_) {
        const std::size_t max = n[0] % 4 == 0 ? 1000 : 1 + n[1] % 20;
        faults_.expect(manual_->deliver(max) <= max, "deliver() handed out more than was asked");
      }
      return;
    case Do::time:
      if (manual_) manual_->advance(nanoseconds(n[0] % 1'000'000));
      return;
    case Do::look:
      return look();
  }
}

void BusUnderTest::configure(const Numbers& n) {
  const std::size_t type = n[0] % kTypes;
  ChannelOptions o;
  o.delivery = n[1] % 4 == 0 ? Delivery::parallel : Delivery::serial;
  o.order = n[1] % 4 == 1 || n[1] % 64 == 8 ? Order::total : Order::publisher;
  o.order_gap_us_max = std::chrono::minutes(5);  // a slow machine makes no gap
  o.lanes = static_cast<LaneKind>(n[2] % 3);
  o.lanes_max = n[2] / 4 % 8 == 0 ? n[3] % 4 : 1024;
  o.latency_every = n[3] / 4 % 4 == 0 ? 1 + n[3] / 16 % 5 : 0;
  const bool wrong = o.lanes_max == 0 || (o.delivery == Delivery::parallel &&
                                          (o.order == Order::total || o.lanes == LaneKind::ring));
  const std::lock_guard lock(channels_lock_);
  auto made = channel_of(*bus_, type, &o);
  const bool there = channels_[type] != nullptr;
  faults_.expect(made.has_value() == (!wrong && !there),
                 "configure() of " + std::string(kNames[type]) +
                     (made ? " was not refused" : " was refused: " + made.error().message));
  if (!made) {
    if (!wrong)
      faults_.expect(made.error().code == Error::Code::conflict, "configure() was no conflict");
    return;
  }
  options_[type] = o;
  parallel_[type].store(o.delivery == Delivery::parallel, std::memory_order_relaxed);
  channels_[type] = std::move(made).value();
}

AnyChannel& BusUnderTest::channel(std::size_t type) {
  const std::lock_guard lock(channels_lock_);
  if (!channels_[type]) channels_[type] = std::move(channel_of(*bus_, type, nullptr)).value();
  return *channels_[type];
}

void BusUnderTest::make_publisher(Actor& by, const Numbers& n) {
  const std::size_t type = n[0] % kTypes;
  PublisherOptions o;
  o.capacity_events = n[1] % 64 == 0 ? 0 : kCapacities[n[1] / 64 % kCapacities.size()];
  o.overflow = static_cast<Overflow>(n[2] % 3);
  o.lane = static_cast<LaneKind>(n[3] % 3);
  o.realtime = n[3] / 4 % 6 == 0;
  o.source_time = n[3] / 32 % 5 == 0;
  o.block_us_max = std::chrono::minutes(5);
  AnyChannel& to = channel(type);
  const bool wrong = o.capacity_events == 0 || (o.realtime && o.overflow == Overflow::block) ||
                     (parallel_at(type) && (o.lane == LaneKind::ring || o.realtime ||
                                            o.overflow == Overflow::drop_oldest));
  auto out = to.publisher(o);
  const std::string it = "a publisher of " + std::string(kNames[type]);
  if (wrong) return faults_.expect(!out, it + " was not refused");
  if (!out) {
    return faults_.expect(
        options_[type].lanes_max < 64 && out.error().code == Error::Code::no_memory,
        it + " was refused: " + out.error().message);
  }
  PublisherRecord* publisher = journal_.publisher(type, o, false);
  if (publisher != nullptr) by.publishers.push_back({publisher, std::move(out).value()});
}

void BusUnderTest::say(Actor& by, const Numbers& n) {
  if (by.publishers.empty()) return speak(n[0] % kTypes, n[1] & 0x0fffffffu, 1 + n[2] % 20, n[3]);
  OwnedPublisher& v = by.publishers[n[0] % by.publishers.size()];
  const std::uint32_t count = n[2] % 4 == 0 ? 1 + n[2] / 4 % 400 : 1 + n[2] / 4 % 20;
  // A publisher that waits for room while nobody drains waits in vain: that is expected.
  publish_by(*v.publisher, *v.out, n[1] & 0x0fffffffu, count, n[3]);
}

void BusUnderTest::leave(Actor& by, const Numbers& n) {
  if (by.publishers.empty()) return;
  const std::size_t i = n[0] % by.publishers.size();
  if (n[1] % 2 == 0) return by.publishers[i].out->move_about();
  std::swap(by.publishers[i], by.publishers.back());
  by.publishers.pop_back();
}

SubscribeOptions BusUnderTest::options_of(SubscriberRecord& subscriber, const Numbers& n) const {
  SubscribeOptions o;
  o.name = "subscriber " + std::to_string(subscriber.id);
  o.priority = static_cast<int>(n[3] % 4) - 1;
  o.budget_us = microseconds(n[3] / 4 % 2 == 0 ? 0 : 1'000'000);
  o.throws_max = 1 + n[3] / 8 % 3;
  const std::uint32_t on_throw = n[3] / 32 % 8;
  if (on_throw < 2) o.on_throw = on_throw == 0 ? OnThrow::detach : OnThrow::quarantine;
  if (on_throw == 2 && subscriber.judges()) o.on_throw = OnThrow::veto;
  if (subscriber.form == Form::isolated) o.served = Served::isolated;
  if (subscriber.form == Form::own_thread ||
      ((subscriber.form == Form::latest || subscriber.form == Form::pattern) &&
       n[3] / 256 % 4 == 0))
    o.served = Served::own_thread;
  if (!subscriber.queued()) return o;
  o.queue_events = kQueues[n[3] / 1024 % kQueues.size()];
  if (n[3] / 8192 % 3 == 0) o.overflow = Overflow::drop_oldest;
  if (n[3] / 32768 % 40 == 0) o.overflow = Overflow::block;
  return o;
}

bool BusUnderTest::must_refuse(const SubscriberRecord& subscriber) const {
  if (subscriber.options.overflow == Overflow::block && subscriber.form != Form::ordered)
    return true;
  if (subscriber.form != Form::ordered && subscriber.form != Form::parted) return false;
  for (std::size_t c = 0; c < kTypes; ++c) {
    if (subscriber.channels[c] && parallel_at(c)) return true;
  }
  return false;
}

void BusUnderTest::hear(Actor& by, const Numbers& n) {
  SubscriberRecord* subscriber =
      journal_.subscriber(static_cast<Form>(n[1] % static_cast<std::uint32_t>(Form::box)));
  if (subscriber == nullptr) return;
  subscriber->habit = n[2] & 0xffff;
  if (n[2] >> 16 & 1) subscriber->habit = 0;
  subscriber->channels[n[0] % kTypes] = true;
  if (subscriber->form == Form::pattern)
    subscriber->channels = kPatterns[n[0] % kPatterns.size()].channels;
  if (subscriber->form == Form::ordered) {
    subscriber->channels = kOrderedOf[n[0] % kOrderedSets];
    for (std::size_t c = 0; c < kTypes; ++c) {
      if (subscriber->channels[c]) (void)channel(c);
    }
  }
  attach(&by, *subscriber, n);
}

void BusUnderTest::attach(Actor* by, SubscriberRecord& subscriber, const Numbers& n) {
  const std::lock_guard actors(held_lock_);
  Held& held = held_.emplace_back();
  held.subscriber = &subscriber;
  subscriber.options = options_of(subscriber, n);
  subscriber.why = Name("no, says " + subscriber.options.name);
  const Captured captured(*this, subscriber);
  std::size_t type = 0;
  while (type + 1 < kTypes && !subscriber.channels[type]) ++type;
  std::string refused;
  Subscription made;
  const bool must = must_refuse(subscriber);
  if (subscriber.form == Form::owned) held.owner = std::make_shared<Owner>(*this, subscriber);
  try {
    if (subscriber.form == Form::pattern) {
      made = hear_pattern(*bus_, kPatterns[n[0] % kPatterns.size()].text, captured,
                          subscriber.options);
    } else if (subscriber.form == Form::ordered) {
      OrderOptions o;
      o.gap_us_max = std::chrono::minutes(5);
      o.name = subscriber.options.name;
      o.on_throw = subscriber.options.on_throw;
      subscriber.options.overflow = Overflow::drop_newest;
      o.queue_events = subscriber.options.queue_events;
      made = hear_ordered(*bus_, n[0] % kOrderedSets, captured, o);
    } else if (subscriber.form == Form::judging_once_made) {
      made = judge_once_made(*bus_, type, captured, subscriber.options);
    } else {
      made = channel(type).hear(captured, held.owner, subscriber.options, 1 + n[3] % 5);
    }
  } catch (const std::invalid_argument& e) {
    refused = e.what();
  } catch (const Error& e) {
    refused = e.message;
  }
  // Another thread may have configured the channel meanwhile.
  faults_.expect(refused.empty() != must || refused.empty() != must_refuse(subscriber),
                 std::string(to_string(subscriber.form)) +
                     (must ? " was not refused" : " was refused: " + refused));
  if (!refused.empty()) {
    subscriber.attaching = 0;
    held.subscriber = nullptr;
    return faults_.expect_equal(static_cast<std::uint64_t>(subscriber.captures), 1,
                                "captures of one who was refused");
  }
  const std::lock_guard lock(held.lock);
  held.handle = std::move(made);
  subscriber.attached = journal_.step();
  held_of_[subscriber.id] = &held;
  (by == nullptr ? late_ : by->subscribers).push_back(&held);
}

void BusUnderTest::box(Actor& by, const Numbers& n) {
  SubscriberRecord* subscriber =
      journal_.subscriber(static_cast<Form>(static_cast<std::uint32_t>(Form::box) + n[1] % 3));
  if (subscriber == nullptr) return;
  const std::lock_guard actors(held_lock_);
  Held& held = held_.emplace_back();
  subscriber->habit = n[2] & ~1u;
  subscriber->channels[n[0] % kTypes] = true;
  const Pattern& pattern = kPatterns[n[0] % kPatterns.size()];
  if (subscriber->form == Form::box_pattern) subscriber->channels = pattern.channels;
  subscriber->options = options_of(*subscriber, n);
  bool refused = false;
  try {
    held.box = subscriber->form == Form::box_pattern
                   ? pattern_box(*bus_, pattern.text, subscriber->options)
                   : channel(n[0] % kTypes).box(subscriber->form, subscriber->options);
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  faults_.expect(refused == must_refuse(*subscriber), "a mailbox was, or was not, refused");
  if (refused) {
    subscriber->attaching = 0;
    return;
  }
  held.subscriber = subscriber;
  subscriber->attached = journal_.step();
  held_of_[subscriber->id] = &held;
  by.boxes.push_back(&held);
}

void BusUnderTest::reset(Actor& by, const Numbers& n) {
  auto& of = n[2] % 4 == 0 ? by.boxes : by.subscribers;
  if (of.empty()) return;
  const std::size_t i = n[0] % of.size();
  reset_one(*of[i], n[1]);
  std::swap(of[i], of.back());
  of.pop_back();
}

void BusUnderTest::reset_one(Held& held, std::uint32_t how) {
  const std::lock_guard lock(held.lock);
  SubscriberRecord& subscriber = *held.subscriber;
  std::uint64_t not_yet = 0;
  const bool open = subscriber.closing.compare_exchange_strong(not_yet, journal_.step());
  Detached is = Detached::done;
  if (held.box) {
    held.box->base().reset();
    faults_.expect(!held.box->base().attached(), "a mailbox is attached after reset()");
  } else if (how % 8 == 0) {
    held.handle = Subscription();
  } else if (how % 8 == 1 && !over_) {
    held.handle.release();
    if (open) subscriber.closing = 0;  // it goes on to hear
    held.released = true;
    return;
  } else {
    if (how % 8 == 2) is = held.handle.reset_for(nanoseconds(0));
    if (how % 8 != 2 || is == Detached::timeout) is = held.handle.reset_for(nanoseconds(-1));
  }
  faults_.expect(is == Detached::done, "reset() said '" + std::string(to_string(is)) + "'");
  not_yet = 0;
  (void)subscriber.closed.compare_exchange_strong(not_yet, journal_.step());
  subscriber.quiet = journal_.step();
  faults_.expect_equal(static_cast<std::uint64_t>(subscriber.captures), 0,
                       std::string(to_string(subscriber.form)) + ": captures after reset()");
}

void BusUnderTest::touch(Actor& by, const Numbers& n) {
  if (n[2] % 3 == 0) {
    if (!by.boxes.empty()) by.boxes[n[0] % by.boxes.size()]->box->move_about();
    return;
  }
  if (by.subscribers.empty()) return;
  Held& held = *by.subscribers[n[0] % by.subscribers.size()];
  const std::lock_guard lock(held.lock);
  SubscriberRecord& subscriber = *held.subscriber;
  if (n[1] % 4 == 0) {
    Subscription there(std::move(held.handle));
    faults_.expect(!held.handle.attached(), "a moved handle is attached");
    held.handle.swap(there);
  } else if (n[1] % 4 == 1) {
    (void)held.handle.readmit();
  } else if (n[1] % 4 == 2 && held.owner) {
    std::uint64_t not_yet = 0;
    (void)subscriber.ailing.compare_exchange_strong(not_yet, journal_.step());
    held.owner.reset();
  } else {
    (void)held.handle.stats();
    faults_.expect(held.handle.attached() == (subscriber.closing == 0) || subscriber.ailing != 0,
                   "attached() of " + std::string(to_string(subscriber.form)) + " is wrong");
  }
}

void BusUnderTest::look() const {
  const Stats all = bus_->stats();
  faults_.expect(!all.channels.empty() || bus_->channel_names().empty(),
                 "stats() knows no channel");
  if (case_.drive == Drive::several) return;  // while others publish it may be wrong
  const auto verified = bus_->verify_accounting();
  if (!verified) faults_.add(verified.error().message);
}

void BusUnderTest::ask(const Numbers& n) {
  const std::size_t type = n[0] % kTypes;
  auto told = std::make_shared<std::atomic<std::uint32_t>>(~0u);
  (void)channel(type);
  Subscription handle = bus_->on_interest(
      kNames[type], [told](std::string_view, Interest is) { told->store(is.subscribers); });
  const std::lock_guard lock(held_lock_);
  asked_.push_back({type, told, std::move(handle)});
}

}  // namespace ringmain::fuzz
