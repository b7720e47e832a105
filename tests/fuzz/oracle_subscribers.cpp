// What subscribers heard: all that they had to, nothing twice, nothing else, in order.
#include <algorithm>
#include <utility>

#include "tests/fuzz/oracle.hpp"

namespace ringmain::fuzz {

void Oracle::read(SubscriberRecord& subscriber, const std::array<ChannelAtRest, kTypes>& channels) {
  const std::uint32_t count = subscriber.heard_count;
  if (count > kHeardMax) return faults_.add(name(subscriber) + " heard more than was ever said");
  for (; subscriber.read < count; ++subscriber.read)
    read_one(subscriber, subscriber.heard[subscriber.read], channels);
}

void Oracle::read_one(SubscriberRecord& subscriber, const Heard& heard,
                      const std::array<ChannelAtRest, kTypes>& channels) {
  const std::string who = name(subscriber);
  const Mark& m = heard.mark;
  if (!heard.whole || m.publisher >= journal_.publishers() ||
      m.n >= journal_.publisher_at(m.publisher).count ||
      journal_.publisher_at(m.publisher).said[m.n].mark.what != m.what)
    return faults_.add(who + " heard what nobody said, or half of it: publisher " +
                       std::to_string(m.publisher) + ", event " + std::to_string(m.n) +
                       (heard.whole ? "" : ", not whole"));
  const PublisherRecord& publisher = journal_.publisher_at(m.publisher);
  const Published& said = publisher.said[m.n];
  const std::string it = name(said);
  ++subscriber.outcomes[static_cast<std::size_t>(heard.outcome)];
  if (!subscriber.channels[publisher.channel])
    faults_.add(who + " heard " + it + " of another channel");
  if (heard.at < said.begun) faults_.add(who + " heard " + it + " before it was said");
  if (subscriber.quiet != 0 && heard.at > subscriber.quiet)
    faults_.add(who + " was called after it was reset");
  if (said.certain && said.code != PublishCode::accepted && !subscriber.judges())
    faults_.add(who + " heard " + it + ", which was refused as " +
                std::string(to_string(said.code)));
  if (heard.sequence != 0 && said.sequence != 0)
    faults_.expect_equal(heard.sequence, said.sequence, who + ": the sequence of " + it);
  if (heard.known_time && said.time_ns != 0)
    faults_.expect_equal(static_cast<std::uint64_t>(heard.time_ns),
                         static_cast<std::uint64_t>(said.time_ns), who + ": the time of " + it);
  SubscriberRecord::Of& of = subscriber.of[m.publisher];
  if (of.seen[m.n]) faults_.add(who + " heard " + it + " twice");
  of.seen[m.n] = true;
  const ChannelOptions& how = channels[publisher.channel].options;
  if (subscriber.judges() || how.delivery == Delivery::parallel) return;
  const bool by_key = subscriber.latest() || subscriber.form == Form::parted;
  if (!said.placed) return;
  std::uint64_t& last = by_key ? of.last_of_key[m.key()] : of.last;
  if (said.done <= last) faults_.add(who + " heard " + it + " after a younger one of it");
  last = said.done;
  if (by_key || (subscriber.form != Form::ordered &&
                 (how.order != Order::total || subscriber.channels.count() != 1)))
    return;
  if (said.begun < subscriber.attached) return;  // it took no ticket
  if (said.done < subscriber.newest_begun)
    faults_.add(who + " heard " + it + " after one that was said later");
  subscriber.newest_begun = std::max(subscriber.newest_begun, said.begun);
}

void Oracle::judge_subscriber(SubscriberRecord& subscriber, const SubscriberAtRest& is,
                              const std::array<ChannelAtRest, kTypes>& channels) {
  if (subscriber.judges()) {
    if (is.held) judge_stats(subscriber, is, false, ~std::uint64_t{0});
    return;
  }
  // What came to a mailbox that is not read to its end is judged when it is.
  const bool in_time =
      subscriber.attached < stopping_;  // one that comes during stop() may find all closed
  const bool open = in_time && subscriber.attached != 0 && subscriber.closing == 0 &&
                    subscriber.ailing == 0 && !stopped_;
  const bool resolved = !subscriber.pulled() || is.emptied;
  std::uint64_t due_min = 0;
  std::uint64_t due_max = 0;
  std::uint64_t evictable = 0;
  std::uint64_t missing = 0;
  std::string first;
  bool shared = !subscriber.queued();
  for (std::size_t v = 0; v < journal_.publishers(); ++v) {
    PublisherRecord& publisher = journal_.publisher_at(v);
    if (!subscriber.channels[publisher.channel]) continue;
    SubscriberRecord::Of& of = subscriber.of[publisher.id];
    if (!std::exchange(of.begun, true)) of.judged = publisher.judged;
    const bool may_evict = publisher.options.overflow == Overflow::drop_oldest;
    for (std::uint32_t n = of.judged; n < publisher.count; ++n) {
      const Published& said = publisher.said[n];
      if (said.code != PublishCode::accepted && said.certain) continue;
      ++due_max;
      const bool must = open && said.certain && said.begun > subscriber.attached;
      if (shared && must && may_evict) {
        (of.seen[n] ? publisher.heard : publisher.missed)[n] = true;
        if (publisher.heard[n] && publisher.missed[n])
          faults_.add(name(said) + " was pushed out for " + name(subscriber) +
                      " or others, not for all");
      }
      if (!must) continue;
      ++due_min;
      if (may_evict) ++evictable;
      if (of.seen[n] || may_evict) continue;
      if (missing++ == 0) first = name(said);
    }
    if (resolved) of.judged = publisher.count;
  }
  // Each key may be queued once more while its first one is being taken.
  const std::uint64_t room = subscriber.options.queue_events;
  const std::uint64_t others = subscriber.others;
  const bool lossless =
      !subscriber.queued() || (subscriber.latest() ? room >= 16 : due_max + others <= room);
  const bool parallel = std::any_of(channels.begin(), channels.end(), [&](const auto& c) {
    return c.made && c.options.delivery == Delivery::parallel;
  });
  if (resolved && open && !subscriber.latest()) {
    if (lossless && missing != 0)
      faults_.add(name(subscriber) + " did not hear " + std::to_string(missing) +
                  " events, first " + first);
    else if (!lossless && missing > due_max + others - room)
      faults_.add(name(subscriber) + " lost " + std::to_string(missing) + " of " +
                  std::to_string(due_max) + " with room for " + std::to_string(room));
  }
  if (resolved && open && subscriber.latest() && lossless && evictable == 0 && !parallel &&
      due_min == due_max)
    judge_latest(subscriber);
  subscriber.due_min += resolved ? due_min : 0;
  subscriber.due_max += resolved ? due_max : 0;
  subscriber.lossy = subscriber.lossy || !lossless;
  subscriber.evictable += resolved ? evictable : 0;
  if (!is.held) return;
  judge_stats(subscriber, is, in_time && !subscriber.lossy, subscriber.evictable);
  if (!resolved || !open || stopped_) return;
  const SubscriberStats& s = is.stats;
  // What the bus says of itself may have been lost before it was heard.
  const bool bounded =
      !subscriber.channels.all() || (!subscriber.lossy && !hears_the_bus(subscriber));
  if ((bounded && s.offered > subscriber.due_max + others) ||
      s.offered + subscriber.evictable < subscriber.due_min)
    faults_.add(name(subscriber) + "'s offered is " + std::to_string(s.offered) + ", not between " +
                std::to_string(subscriber.due_min - subscriber.evictable) + " and " +
                std::to_string(subscriber.due_max) + ": delivered " + std::to_string(s.delivered) +
                ", skipped " + std::to_string(s.skipped) + ", others " + std::to_string(others));
}

/// The newest of each key, of one publisher at least: which of them came last nobody promises.
void Oracle::judge_latest(const SubscriberRecord& subscriber) {
  for (std::uint32_t key = 0; key < 8; ++key) {
    bool any = false;
    bool newest = false;
    for (const auto& [id, of] : subscriber.of) {
      const PublisherRecord& publisher = journal_.publisher_at(id);
      const Published* last = nullptr;
      for (std::uint32_t n = publisher.judged; n < publisher.count; ++n) {
        const Published& said = publisher.said[n];
        if (said.code == PublishCode::accepted && said.mark.key() == key &&
            (last == nullptr || last->done < said.done))
          last = &said;
      }
      any = any || last != nullptr;
      newest = newest || (last != nullptr && (of.seen[last->mark.n] || !last->placed));
    }
    if (any && !newest)
      faults_.add(name(subscriber) + " did not hear the newest of key " + std::to_string(key));
  }
}

void Oracle::judge_stats(const SubscriberRecord& subscriber, const SubscriberAtRest& is,
                         bool lossless, std::uint64_t evictable) {
  const std::string who = name(subscriber) + "'s ";
  const SubscriberStats& s = is.stats;
  const auto heard = [&subscriber](Outcome o) {
    return subscriber.outcomes[static_cast<std::size_t>(o)];
  };
  const std::uint64_t returned = heard(Outcome::returned);
  const std::uint64_t all = returned + subscriber.others;
  // Of a run that is half read all is pending.
  const std::uint64_t open = subscriber.pulled() ? s.pending : 0;
  const std::uint64_t least = hears_the_bus(subscriber) ? returned : all;
  faults_.expect(
      s.delivered <= all && least <= s.delivered + open,
      who + "delivered is " + std::to_string(s.delivered) + ", not " + std::to_string(all));
  if (!subscriber.pulled()) {
    faults_.expect_equal(s.threw, heard(Outcome::threw), who + "threw");
    faults_.expect_equal(s.filtered, heard(Outcome::filtered), who + "filtered");
  }
  if (hears_the_bus(subscriber)) return;
  faults_.expect_equal(
      s.offered,
      s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending,
      who + "offered (I3)");
  if (lossless && evictable == 0 && !stopped_) faults_.expect_equal(s.dropped, 0, who + "dropped");
  if (!subscriber.pulled()) faults_.expect_equal(s.pending, 0, who + "pending");
  if (is.emptied) faults_.expect_equal(s.pending, 0, who + "pending when it is empty");
  if (!subscriber.latest()) faults_.expect_equal(s.coalesced, 0, who + "coalesced");
}

}  // namespace ringmain::fuzz
