#include "tests/fuzz/oracle.hpp"

#include <algorithm>

namespace ringmain::fuzz {

std::string Oracle::name(const SubscriberRecord& subscriber) {
  return std::string(to_string(subscriber.form)) + " subscriber " + std::to_string(subscriber.id);
}
std::string Oracle::name(const Published& said) {
  return "event " + std::to_string(said.mark.n) + " of publisher " +
         std::to_string(said.mark.publisher);
}

Oracle::Sure Oracle::listens(const SubscriberRecord& subscriber, const Published& said) {
  const std::uint64_t attaching = subscriber.attaching;
  const std::uint64_t attached = subscriber.attached;
  const std::uint64_t closing = subscriber.closing;
  const std::uint64_t closed = subscriber.closed;
  const std::uint64_t ailing = subscriber.ailing;
  if (attaching == 0 || attaching > said.done || (closed != 0 && closed < said.begun))
    return Sure::no;
  if (attached == 0 || attached > said.begun || (closing != 0 && closing < said.done) ||
      (ailing != 0 && ailing < said.done))
    return Sure::maybe;
  return Sure::yes;
}

void Oracle::judge(const std::array<ChannelAtRest, kTypes>& channels,
                   const std::vector<SubscriberAtRest>& subscribers) {
  for (auto& list : inline_) list.clear();
  for (std::size_t i = 0; i < subscribers.size(); ++i) {
    SubscriberRecord& subscriber = journal_.subscriber_at(i);
    for (std::size_t c = 0; c < kTypes; ++c) {
      if (subscriber.judges() && subscriber.channels[c]) inline_[c].push_back(&subscriber);
    }
  }
  for (auto& list : inline_) {
    std::stable_sort(list.begin(), list.end(), [](SubscriberRecord* a, SubscriberRecord* b) {
      return a->options.priority > b->options.priority;
    });
    for (SubscriberRecord* subscriber : list)
      subscriber->place_known =
          std::none_of(list.begin(), list.end(), [&](SubscriberRecord* other) {
            return other != subscriber && other->options.priority == subscriber->options.priority &&
                   other->attaching < subscriber->attached &&
                   subscriber->attaching < other->attached;
          });
  }
  // Before the codes: what inline subscribers heard decides them.
  for (std::size_t i = 0; i < subscribers.size(); ++i) read(journal_.subscriber_at(i), channels);
  for (std::size_t v = 0; v < journal_.publishers(); ++v) {
    PublisherRecord& publisher = journal_.publisher_at(v);
    judge_codes(publisher.channel, publisher);
  }
  for (std::size_t i = 0; i < subscribers.size(); ++i)
    judge_subscriber(journal_.subscriber_at(i), subscribers[i], channels);
  for (std::size_t c = 0; c < kTypes; ++c) {
    if (channels[c].made) judge_figures(c, channels[c]);
  }
  for (std::size_t v = 0; v < journal_.publishers(); ++v) {
    PublisherRecord& publisher = journal_.publisher_at(v);
    publisher.judged = publisher.count;
    publisher.since_rest = 0;
  }
}

void Oracle::judge_codes(std::size_t channel, PublisherRecord& publisher) {
  Counts& counts = counts_[channel];
  for (std::uint32_t n = publisher.judged; n < publisher.count; ++n) {
    const Published& said = publisher.said[n];
    Sure heard = Sure::no;
    for (std::size_t i = 0; i < journal_.subscribers(); ++i) {
      const SubscriberRecord& subscriber = journal_.subscriber_at(i);
      if (subscriber.channels[channel]) heard = std::max(heard, listens(subscriber, said));
    }
    Sure vetoed = Sure::no;
    Name why;
    // Without a lane it is shown to nobody.
    if (said.code != PublishCode::unheard && said.code != PublishCode::too_deep &&
        said.code != PublishCode::no_memory)
      judge_inline(channel, said, vetoed, why);
    if (said.certain) judge_code(publisher, said, heard, vetoed, why);
    if (said.code != PublishCode::unheard) ++counts.offered;
    if (said.code == PublishCode::vetoed) ++counts.vetoed;
    if (said.code == PublishCode::closed) ++counts.closed;
    if (said.code != PublishCode::accepted) continue;
    ++counts.accepted;
    if (publisher.options.overflow == Overflow::drop_oldest) ++counts.may_be_evicted;
  }
}

void Oracle::judge_code(const PublisherRecord& publisher, const Published& said, Sure heard,
                        Sure vetoed, Name why) {
  const auto wrong = [&](const std::string& because) {
    faults_.add(name(said) + " was answered '" + std::string(to_string(said.code)) + "' though " +
                because);
  };
  switch (said.code) {
    case PublishCode::unheard:
      if (heard == Sure::yes) wrong("somebody listens");
      return;
    case PublishCode::vetoed:
      if (vetoed == Sure::no) wrong("nobody says no");
      if (vetoed == Sure::yes && said.why != why) wrong("another one said no first");
      break;
    case PublishCode::accepted:
    case PublishCode::full:
    case PublishCode::would_deadlock:
      if (vetoed == Sure::yes) wrong("it is vetoed");
      if (said.code == PublishCode::would_deadlock && publisher.options.overflow != Overflow::block)
        wrong("it would not wait");
      break;
    case PublishCode::closed:
      if (said.done < stopping_) wrong("the bus runs");
      return;
    case PublishCode::forked:
      wrong("nobody forked");
      break;
    case PublishCode::too_deep:
    case PublishCode::no_memory:  // judged where it was said
      break;
  }
  if (heard == Sure::no) wrong("nobody listens");
}

void Oracle::judge_inline(std::size_t channel, const Published& said, Sure& vetoed, Name& why) {
  Sure reached = Sure::yes;
  for (const SubscriberRecord* subscriber : inline_[channel]) {
    // Of two of one priority that came at the same time either may stand before the other.
    const Sure heard = std::min(listens(*subscriber, said), reached);
    const Sure here = subscriber->place_known ? heard : std::min(heard, Sure::maybe);
    const auto of = subscriber->of.find(said.mark.publisher);
    const bool saw = of != subscriber->of.end() && of->second.seen[said.mark.n];
    if (saw && here == Sure::no)
      faults_.add(name(said) + " was shown to " + name(*subscriber) + ", which comes after a veto");
    if (!saw && here == Sure::yes && subscriber->heard_count < kHeardMax && said.certain &&
        said.code != PublishCode::closed)
      faults_.add(name(said) + " was not shown to " + name(*subscriber));
    const bool throws =
        subscriber->options.on_throw == OnThrow::veto && subscriber->throws_at(said.mark);
    if (here == Sure::no || (!throws && !subscriber->vetoes(said.mark))) continue;
    if (here == Sure::yes && vetoed == Sure::no)
      why = throws ? Name(subscriber->options.name + " threw") : subscriber->why;
    vetoed = std::max(vetoed, here);
    if (here == Sure::maybe) reached = Sure::maybe;
    if (here == Sure::yes) break;
  }
}

void Oracle::judge_figures(std::size_t channel, const ChannelAtRest& is) {
  const std::string who = "channel " + std::string(kNames[channel]) + "'s ";
  const ChannelStats& s = is.stats;
  const Counts& ought = counts_[channel];
  if (ought.closed == 0) faults_.expect_equal(s.offered, ought.offered, who + "offered");
  faults_.expect_equal(s.accepted, ought.accepted, who + "accepted");
  faults_.expect_equal(s.vetoed, ought.vetoed, who + "vetoed");
  faults_.expect_equal(s.full + s.no_memory + s.too_deep,
                       ought.offered - ought.accepted - ought.vetoed - ought.closed,
                       who + "refused");
  faults_.expect(s.closed <= ought.closed, who + "closed is too large");
  faults_.expect_equal(s.delivered + s.evicted + s.discarded, ought.accepted, who + "delivered");
  faults_.expect_equal(s.pending, 0, who + "pending");
  faults_.expect(s.evicted <= ought.may_be_evicted, who + "evicted is too large");
  faults_.expect_equal(s.order_gaps + s.order_late, 0, who + "order gaps");
  if (!stopped_) faults_.expect_equal(s.discarded, 0, who + "discarded");
  if (drive_ == Drive::several) return;
  std::uint32_t subscribers = 0;
  std::uint32_t unsure = 0;
  Published now;
  now.begun = now.done = journal_.step();
  for (std::size_t i = 0; i < journal_.subscribers(); ++i) {
    const SubscriberRecord& subscriber = journal_.subscriber_at(i);
    if (!subscriber.channels[channel]) continue;
    const Sure here = listens(subscriber, now);
    subscribers += here == Sure::yes ? 1 : 0;
    unsure += here == Sure::maybe ? 1 : 0;
  }
  if (!stopped_)
    faults_.expect(s.subscribers >= subscribers && s.subscribers <= subscribers + unsure,
                   who + "subscribers is " + std::to_string(s.subscribers) + ", not " +
                       std::to_string(subscribers));
}

}  // namespace ringmain::fuzz
