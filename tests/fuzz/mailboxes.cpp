// Mailboxes that their users drain: every way to take events out of one.
#include <algorithm>
#include <poll.h>
#include <stdexcept>

#include "tests/fuzz/bus_under_test.hpp"

namespace ringmain::fuzz {

void BusUnderTest::take(Actor& by, const Numbers& n) {
  if (by.boxes.empty()) return;
  const std::size_t i = n[0] % by.boxes.size();
  Held& held = *by.boxes[i];
  const std::uint32_t how = n[1] % 8;
  const std::size_t max = n[2] % 3 == 0 ? 256 : 1 + n[2] / 4 % 12;
  if (how < 2) return look_at_full_one(held, how);
  if (how == 2) {
    while (read_some(held, 3, 256) != 0 && held.box->base().attached()) {
    }
  } else {
    (void)read_some(held, how, max);
  }
  if (held.box->base().attached()) return;
  std::swap(by.boxes[i], by.boxes.back());
  by.boxes.pop_back();
}

/// Once all came in, what is there can be told.
void BusUnderTest::look_at_full_one(Held& held, std::uint32_t how) {
  MailboxBase& box = held.box->base();
  if (how == 0) {
    const bool any = box.wait_for(nanoseconds(0));
    const std::uint64_t pending = box.stats().pending;
    if (any) faults_.expect(pending != 0, "wait_for() saw an event, and none is there");
    if (manual_) faults_.expect(any == (pending != 0), "wait_for() did not see an event");
    return;
  }
  const std::uint64_t before = box.stats().pending;
  pollfd one{box.fd(), POLLIN, 0};
  if (one.fd < 0) return faults_.add("a mailbox has no descriptor");
  const bool readable = ::poll(&one, 1, 0) == 1;
  if (before != 0) faults_.expect(readable, "a mailbox with events does not poll readable");
}

std::size_t BusUnderTest::read_some(Held& held, std::uint32_t how, std::size_t max) {
  SubscriberRecord& subscriber = *held.subscriber;
  const bool runs = (subscriber.habit & 4) != 0;  // one of the two ways, for as long as it lives
  const SubscriberStats was = held.box->base().stats();
  // Of a run that is half read all is pending.
  const std::uint64_t before =
      was.pending - (subscriber.heard_count + subscriber.others - was.delivered);
  std::size_t calls = 0;
  bool closed = false;
  const std::size_t stop_at = how >= 6 ? max / 2 : ~std::size_t{0};
  const Read read = [&](const Mark* m, bool whole, const Stamp& stamp) {
    if (m == nullptr)
      ++subscriber.others;
    else
      (void)journal_.hear(subscriber, *m, whole, &stamp);
    if (calls++ != stop_at || runs) return;
    if (how == 6) throw std::runtime_error("as asked");
    faults_.expect_equal(held.box->drain([](const Mark*, bool, const Stamp&) {}, 5), 0,
                         "a drain in its own drain");
    if ((subscriber.habit & 8) == 0) return;
    closed = true;
    subscriber.closing = journal_.step();
    held.box->base().reset();
    subscriber.closed = journal_.step();
  };
  std::size_t taken = 0;
  bool threw = false;
  if (runs) {
    bool within = true;
    taken = held.box->take_run(read, max, within);
    faults_.expect(within, "a run was written outside of the memory that was made for it");
  } else {
    try {
      taken = held.box->drain(read, max);
    } catch (const std::runtime_error&) {
      threw = true;
    }
  }
  if (!threw) faults_.expect_equal(calls, taken, "events read of those taken");
  faults_.expect(calls <= max,
                 "a mailbox gave " + std::to_string(calls) + " of at most " + std::to_string(max));
  if (threw || closed || max == 0) return taken;
  if (before != 0) faults_.expect(taken != 0, "a mailbox with events gave none");
  if (!manual_ || runs) return taken;
  const bool may_evict = subscriber.options.overflow == Overflow::drop_oldest;
  const std::uint64_t left = held.box->base().stats().pending;
  if (taken < max) faults_.expect_equal(left, 0, "pending after a drain that found the end");
  if (!may_evict)
    faults_.expect_equal(taken, std::min<std::uint64_t>(before, max), "taken of a mailbox");
  return taken;
}

}  // namespace ringmain::fuzz
