// What callbacks do in a fuzz run: they write down what they hear, throw, say no, publish, reset
// themselves and others, subscribe, and ask for what is refused there.
#include <stdexcept>

#include "tests/fuzz/bus_under_test.hpp"
#include "tests/fuzz/inside.hpp"

namespace ringmain::fuzz {
namespace {

/// Notices a second call beside this one.
class Alone {
 public:
  Alone(std::atomic<int>* busy, Faults& faults, const char* who) : busy_(busy) {
    ++inside.callbacks;
    // Relaxed: it finds calls that overlap, and must order nothing.
    if (busy_ != nullptr && busy_->exchange(1, std::memory_order_relaxed) != 0)
      faults.add(std::string("calls of a ") + who + " subscriber overlap");
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  ~Alone() {
    if (busy_ != nullptr) busy_->store(0, std::memory_order_relaxed);
    --inside.callbacks;
  }

 private:
  std::atomic<int>* busy_;
};

struct InlineOne {
  InlineOne() { ++inside.inline_ones; }
  InlineOne(const InlineOne&) = delete;
  InlineOne& operator=(const InlineOne&) = delete;
  ~InlineOne() { --inside.inline_ones; }
};

}  // namespace

std::atomic<int>* BusUnderTest::busy(SubscriberRecord& subscriber) {
  if (subscriber.judges() || subscriber.form == Form::parted) return nullptr;
  if (subscriber.queued()) return &subscriber.inside;
  std::size_t type = 0;
  while (!subscriber.channels[type]) ++type;
  return parallel_at(type) ? nullptr : &busy_[type];
}

void BusUnderTest::heard(SubscriberRecord& subscriber, const Mark& mark, bool whole,
                         const Stamp* stamp) {
  const Alone alone(busy(subscriber), faults_, to_string(subscriber.form));
  const std::uint32_t i = journal_.hear(subscriber, mark, whole, stamp);
  do_inside(subscriber, mark);
  if (!subscriber.throws_at(mark)) return;
  if (i < kHeardMax) subscriber.heard[i].outcome = Outcome::threw;
  fail(subscriber);
}

void BusUnderTest::heard_all(SubscriberRecord& subscriber, std::span<const Heard> batch) {
  const Alone alone(busy(subscriber), faults_, to_string(subscriber.form));
  bool throws = false;
  for (const Heard& h : batch) throws = throws || subscriber.throws_at(h.mark);
  for (const Heard& h : batch) {
    const Stamp stamp{h.time_ns, h.sequence, 0,
                      h.known_time ? TimeFrom::publisher : TimeFrom::worker};
    const std::uint32_t i = journal_.hear(subscriber, h.mark, h.whole, &stamp);
    if (throws && i < kHeardMax) subscriber.heard[i].outcome = Outcome::threw;
  }
  for (const Heard& h : batch) do_inside(subscriber, h.mark);
  if (throws) fail(subscriber);
}

bool BusUnderTest::wanted(SubscriberRecord& subscriber, const Mark& mark, bool whole) {
  if (subscriber.wants(mark)) return true;
  const Alone alone(nullptr, faults_, "");
  const std::uint32_t i = journal_.hear(subscriber, mark, whole, nullptr);
  if (i < kHeardMax) subscriber.heard[i].outcome = Outcome::filtered;
  return false;
}

Verdict BusUnderTest::judged(SubscriberRecord& subscriber, const Mark& mark, bool whole) {
  const Alone alone(nullptr, faults_, "");
  const InlineOne one;
  const std::uint32_t i = journal_.hear(subscriber, mark, whole, nullptr);
  do_inside(subscriber, mark);
  if (subscriber.throws_at(mark)) {
    if (i < kHeardMax) subscriber.heard[i].outcome = Outcome::threw;
    fail(subscriber);
  }
  return subscriber.vetoes(mark) ? Verdict::veto(subscriber.why) : Verdict::allow();
}

void BusUnderTest::fail(SubscriberRecord& subscriber) {
  const std::uint32_t throws = subscriber.throws.fetch_add(1) + 1;
  const bool out = subscriber.options.on_throw == OnThrow::detach ||
                   (subscriber.options.on_throw == OnThrow::quarantine &&
                    throws >= subscriber.options.throws_max);
  std::uint64_t not_yet = 0;
  if (out) (void)subscriber.ailing.compare_exchange_strong(not_yet, journal_.step());
  throw std::runtime_error("as asked");
}

void BusUnderTest::do_inside(SubscriberRecord& subscriber, const Mark& mark) {
  const std::uint32_t habit = subscriber.habit;
  const std::uint32_t act = mark.act();
  const std::size_t type = mark.more() % kTypes;
  // A chain of inline callbacks on one channel, to where it is too deep.
  if ((habit & 4) != 0 && act == 4 && subscriber.judges() && mark.depth() < 12 &&
      !full_of_events()) {
    std::size_t here = 0;
    while (!subscriber.channels[here]) ++here;
    return speak(here, mark.deeper(), 1, 0);
  }
  if (act < 3 || act > 9 || (habit >> (act - 1) & 1) == 0) return;
  if (subscriber.acts_left.load() == 0 || subscriber.acts_left.fetch_sub(1) > 1000) return;
  switch (act) {
    case 3:
      if (mark.depth() < 2)
        speak(type, mark.deeper() & ~0xf8u, 1 + mark.more() % 3, mark.more() % 8);
      return;
    case 5:
      return reset_inside(subscriber);
    case 6:
      if (const std::size_t n = journal_.subscribers(); n != 0) {
        Held* other = held_of_[mark.more() % n];
        if (other != nullptr && other->subscriber != nullptr) reset_inside(*other->subscriber);
      }
      return;
    case 7:
      faults_.expect(!bus_->flush(kLong), "flush() in a callback waited");
      faults_.expect(bus_->stop().refused, "stop() in a callback stopped");
      if (manual_) faults_.expect_equal(manual_->deliver(), 0, "deliver() in a callback");
      return;
    case 8:
      if (mark.depth() == 0) {
        SubscriberRecord* late =
            journal_.subscriber(mark.more() % 3 == 0 ? Form::isolated : Form::stamped);
        if (late == nullptr) return;
        late->channels[type] = true;
        attach(nullptr, *late, {static_cast<std::uint32_t>(type), 0, 0, mark.what});
      }
      return;
    default: {  // a lane of one: blocking in a callback is refused
      PublisherRecord* publisher = nullptr;
      PublisherOptions options;
      options.capacity_events = 1;
      options.overflow = Overflow::block;
      auto out = channel(type).publisher(options);
      if (!out || (publisher = journal_.publisher(type, options, false)) == nullptr) return;
      publish_by(*publisher, *out.value(), mark.deeper() & ~0xf8u, 3, 0);
    }
  }
}

void BusUnderTest::reset_inside(SubscriberRecord& subscriber) {
  Held* held = held_of_[subscriber.id];
  if (held == nullptr) return;
  const std::unique_lock mine(held->lock, std::try_to_lock);
  if (!mine || !held->handle.attached()) return;
  std::uint64_t not_yet = 0;
  (void)subscriber.closing.compare_exchange_strong(not_yet, journal_.step());
  faults_.expect(held->handle.reset() == Detached::deferred,
                 "reset() in a callback was not deferred");
  faults_.expect(!held->handle.attached(), "a subscription is attached after reset()");
  not_yet = 0;
  (void)subscriber.closed.compare_exchange_strong(not_yet, journal_.step());
}

}  // namespace ringmain::fuzz
