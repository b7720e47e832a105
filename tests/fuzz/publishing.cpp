// How is something said in a fuzz run, and which answers may there be at that moment?
#include <utility>
#include <vector>

#include "tests/fuzz/bus_under_test.hpp"
#include "tests/fuzz/inside.hpp"

namespace ringmain::fuzz {
namespace {

/// This thread's publishers on a bus.
struct Mine {
  std::uint64_t bus = 0;
  std::array<PublisherRecord*, kTypes> publishers{};
};
thread_local Mine mine;

std::uint32_t next(std::uint32_t what, std::uint32_t i) {
  return (what & 0xf0000000u) | ((what + i * 0x9e3779b1u) & 0x0fffffffu);
}

}  // namespace

void BusUnderTest::speak(std::size_t type, std::uint32_t what, std::uint32_t count,
                         std::uint32_t how) {
  if (mine.bus != serial_) mine = {serial_, {}};
  PublisherRecord*& publisher = mine.publishers[type];
  AnyPublisher& out = channel(type).threads_own();
  if (publisher == nullptr || publisher->count.load() + count > kSaidMax) {
    const std::uint64_t before = publisher == nullptr ? 0 : publisher->offered;
    if (publisher != nullptr)
      publisher->numbered = false;  // the next one may come between two of its own
    publisher = journal_.publisher(type, {}, true);
    if (publisher == nullptr) return;
    publisher->offered = before;
    // A thread that finds no lane says each event on another one.
    publisher->numbered = before == 0 && options_[type].lanes_max > 64;
  }
  publish_by(*publisher, out, what, count, how);
}

void BusUnderTest::publish_by(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                              std::uint32_t count, std::uint32_t how) {
  if (how % 8 == 6) return publish_batch(publisher, out, what, count);
  for (std::uint32_t i = 0; i < count && !full_of_events(); ++i)
    publish_one(publisher, out, next(what, i), how % 8);
}

void BusUnderTest::publish_one(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                               std::uint32_t how) {
  const Ledger before = out.ledger();
  Published* said = journal_.begin(publisher, what);
  if (said == nullptr) return;
  said->in_callback = inside.callbacks > 0;
  said->inside = inside.inline_ones;
  if (manual_ && !publisher.options.source_time) said->time_ns = manual_->time_ns();
  if (inside.making) said->inside = ~0u;
  PublishResult result;
  bool nested = false;
  if (how == 4 || how == 7) {
    result = out.publish_with(said->mark, [&] {
      if (how == 4) return;
      // What is said on the same lane while an event is made there is refused.
      nested = true;
      inside.making = true;
      publish_one(publisher, out, what ^ 0x1000, 0);
      inside.making = false;
    });
  } else if (how == 5) {
    if (publisher.options.source_time) said->time_ns = 1 + static_cast<std::int64_t>(what);
    result = out.publish_at(said->mark, 1 + static_cast<std::int64_t>(what));
  } else {
    result = out.say(said->mark);
  }
  journal_.end(publisher, *said, result);
  if (nested) said->sequence = 0;  // which of the two is first, nobody promises
  check_one(publisher, *said, before, out.ledger());
}

void BusUnderTest::check_one(const PublisherRecord& publisher, const Published& said,
                             const Ledger& before, const Ledger& after) {
  const std::string it = "publisher " + std::to_string(publisher.id) + " on " +
                         std::string(kNames[publisher.channel]) + ": '" +
                         std::string(to_string(said.code)) + "', though ";
  const bool full = said.code == PublishCode::full || said.code == PublishCode::would_deadlock;
  if (said.code == PublishCode::would_deadlock)
    faults_.expect(said.in_callback, it + "it is in no callback");
  if (said.code == PublishCode::full && publisher.options.overflow == Overflow::block)
    faults_.expect(!said.in_callback && manual_ != nullptr, it + "it could have waited");
  if (said.code == PublishCode::too_deep) faults_.expect(said.inside >= 8, it + "it is not");
  if (said.code == PublishCode::no_memory)
    faults_.expect(publisher.threads_own && options_[publisher.channel].lanes_max <= 64,
                   it + "there are lanes");
  // Whether it may be closed yet the oracle knows.
  if (said.inside == ~0u)
    faults_.expect(said.code == PublishCode::too_deep || said.code == PublishCode::unheard ||
                       said.code == PublishCode::closed,
                   it + "an event is being made there");
  if (publisher.threads_own) {
    faults_.expect(!full, it + "its lane is large");
    return;
  }
  const std::uint64_t capacity = publisher.options.capacity_events;
  const std::uint64_t bound =
      publisher.options.overflow == Overflow::drop_oldest ? 2 * capacity : capacity;
  if (over_) return;
  faults_.expect(
      after.offered <= publisher.offered && after.offered + publisher.closed >= publisher.offered,
      it + "its ledger's offered is " + std::to_string(after.offered) + ", not " +
          std::to_string(publisher.offered));
  faults_.expect_equal(after.dropped + after.delivered + after.in_flight, after.offered,
                       it + "its ledger's sum");
  faults_.expect(after.in_flight <= bound, it + "more than its bound are in flight");
  if (full) faults_.expect(publisher.since_rest >= bound, it + "there is room");
  if (!manual_ || said.inside == ~0u) return;
  if (full) faults_.expect(before.in_flight >= bound, it + "there is room by its ledger");
  if (said.code == PublishCode::accepted)
    faults_.expect(before.in_flight < bound || after.in_flight == before.in_flight,
                   it + "there is no room");
}

void BusUnderTest::publish_batch(PublisherRecord& publisher, AnyPublisher& out, std::uint32_t what,
                                 std::uint32_t count) {
  const std::uint32_t from = publisher.count.load();
  if (from + count > kSaidMax || count == 0) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    Published& said = *journal_.begin(publisher, next(what, i));
    said.in_callback = inside.callbacks > 0;
    said.inside = inside.making ? ~0u : inside.inline_ones;
    said.certain = false;
  }
  const bool outer = std::exchange(publisher.in_batch, true);
  const BatchResult all = out.publish_all({&publisher.said[from], count});
  publisher.in_batch = outer;
  const bool alone = publisher.count.load() == from + count;  // nothing was said on it meanwhile
  const bool unheard = all.accepted + all.refused < count;
  const std::string it =
      "a batch of " + std::to_string(count) + " on " + std::string(kNames[publisher.channel]);
  if (unheard)
    faults_.expect(all.last == PublishCode::unheard || case_.drive == Drive::several,
                   it + " is not accounted for");
  faults_.expect(all.vetoed <= all.refused && all.accepted + all.refused <= count,
                 it + " counts too many");
  for (std::uint32_t i = 0; i < count; ++i) {
    Published& said = publisher.said[from + i];
    PublishResult r;
    if (i >= all.accepted) r.code = PublishCode::vetoed;
    if (i >= all.accepted + all.vetoed)
      r.code = all.last == PublishCode::vetoed || all.last == PublishCode::unheard
                   ? PublishCode::full
                   : all.last;
    if (i >= all.accepted + all.refused) r.code = PublishCode::unheard;
    journal_.end(publisher, said, r);
    said.placed = alone;
    if (!alone) said.sequence = 0;
    said.certain = all.accepted == count ||
                   (all.accepted == 0 && all.vetoed == 0 && (unheard || all.refused == count));
  }
  if (publisher.threads_own || over_) return;
  const Ledger ledger = out.ledger();
  if (publisher.closed == 0)
    faults_.expect_equal(ledger.offered, publisher.offered, it + ": its ledger's offered");
  faults_.expect_equal(ledger.dropped + ledger.delivered + ledger.in_flight, ledger.offered,
                       it + ": its ledger's sum");
}

}  // namespace ringmain::fuzz
