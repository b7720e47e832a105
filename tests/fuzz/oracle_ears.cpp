// What subscribers heard: all that they had to, nothing twice, nothing else, in order.
#include <algorithm>
#include <utility>

#include "tests/fuzz/oracle.hpp"

namespace ringmain::fuzz {

void Oracle::read(Ear& ear, const std::array<ChannelAtRest, kTypes>& channels) {
  const std::uint32_t count = ear.heard_count;
  if (count > kHeardMax) return faults_.add(name(ear) + " heard more than was ever said");
  for (; ear.read < count; ++ear.read) read_one(ear, ear.heard[ear.read], channels);
}

void Oracle::read_one(Ear& ear, const Heard& heard,
                      const std::array<ChannelAtRest, kTypes>& channels) {
  const std::string who = name(ear);
  const Mark& m = heard.mark;
  if (!heard.whole || m.voice >= journal_.voices() || m.n >= journal_.voice_at(m.voice).count ||
      journal_.voice_at(m.voice).said[m.n].mark.what != m.what)
    return faults_.add(who + " heard what nobody said, or half of it: voice " +
                       std::to_string(m.voice) + ", event " + std::to_string(m.n) +
                       (heard.whole ? "" : ", not whole"));
  const Voice& voice = journal_.voice_at(m.voice);
  const Spoken& said = voice.said[m.n];
  const std::string it = name(said);
  ++ear.outcomes[static_cast<std::size_t>(heard.outcome)];
  if (!ear.channels[voice.channel]) faults_.add(who + " heard " + it + " of another channel");
  if (heard.at < said.begun) faults_.add(who + " heard " + it + " before it was said");
  if (ear.quiet != 0 && heard.at > ear.quiet) faults_.add(who + " was called after it was reset");
  if (said.certain && said.code != PublishCode::accepted && !ear.judges())
    faults_.add(who + " heard " + it + ", which was refused as " +
                std::string(to_string(said.code)));
  if (heard.sequence != 0 && said.sequence != 0)
    faults_.expect_equal(heard.sequence, said.sequence, who + ": the sequence of " + it);
  if (heard.known_time && said.time_ns != 0)
    faults_.expect_equal(static_cast<std::uint64_t>(heard.time_ns),
                         static_cast<std::uint64_t>(said.time_ns), who + ": the time of " + it);
  Ear::Of& of = ear.of[m.voice];
  if (of.seen[m.n]) faults_.add(who + " heard " + it + " twice");
  of.seen[m.n] = true;
  const ChannelOptions& how = channels[voice.channel].options;
  if (ear.judges() || how.delivery == Delivery::parallel) return;
  const bool by_key = ear.latest() || ear.form == Form::parted;
  if (!said.placed) return;
  std::uint64_t& last = by_key ? of.last_of_key[m.key()] : of.last;
  if (said.done <= last) faults_.add(who + " heard " + it + " after a younger one of it");
  last = said.done;
  if (by_key ||
      (ear.form != Form::ordered && (how.order != Order::total || ear.channels.count() != 1)))
    return;
  if (said.begun < ear.attached) return;  // it took no ticket
  if (said.done < ear.newest_begun)
    faults_.add(who + " heard " + it + " after one that was said later");
  ear.newest_begun = std::max(ear.newest_begun, said.begun);
}

void Oracle::judge_ear(Ear& ear, const EarAtRest& is,
                       const std::array<ChannelAtRest, kTypes>& channels) {
  if (ear.judges()) {
    if (is.held) judge_stats(ear, is, false, ~std::uint64_t{0});
    return;
  }
  // What came to a mailbox that is not read to its end is judged when it is.
  const bool in_time = ear.attached < stopping_;  // who comes during stop() may find all closed
  const bool open =
      in_time && ear.attached != 0 && ear.closing == 0 && ear.ailing == 0 && !stopped_;
  const bool resolved = !ear.pulled() || is.emptied;
  std::uint64_t due_min = 0;
  std::uint64_t due_max = 0;
  std::uint64_t evictable = 0;
  std::uint64_t missing = 0;
  std::string first;
  bool shared = !ear.queued();
  for (std::size_t v = 0; v < journal_.voices(); ++v) {
    Voice& voice = journal_.voice_at(v);
    if (!ear.channels[voice.channel]) continue;
    Ear::Of& of = ear.of[voice.id];
    if (!std::exchange(of.begun, true)) of.judged = voice.judged;
    const bool may_evict = voice.options.overflow == Overflow::drop_oldest;
    for (std::uint32_t n = of.judged; n < voice.count; ++n) {
      const Spoken& said = voice.said[n];
      if (said.code != PublishCode::accepted && said.certain) continue;
      ++due_max;
      const bool must = open && said.certain && said.begun > ear.attached;
      if (shared && must && may_evict) {
        (of.seen[n] ? voice.heard : voice.missed)[n] = true;
        if (voice.heard[n] && voice.missed[n])
          faults_.add(name(said) + " was pushed out for " + name(ear) + " or others, not for all");
      }
      if (!must) continue;
      ++due_min;
      if (may_evict) ++evictable;
      if (of.seen[n] || may_evict) continue;
      if (missing++ == 0) first = name(said);
    }
    if (resolved) of.judged = voice.count;
  }
  // Each key may be queued once more while its first one is being taken.
  const std::uint64_t room = ear.options.queue_events;
  const std::uint64_t others = ear.others;
  const bool lossless = !ear.queued() || (ear.latest() ? room >= 16 : due_max + others <= room);
  const bool parallel = std::any_of(channels.begin(), channels.end(), [&](const auto& c) {
    return c.made && c.options.delivery == Delivery::parallel;
  });
  if (resolved && open && !ear.latest()) {
    if (lossless && missing != 0)
      faults_.add(name(ear) + " did not hear " + std::to_string(missing) + " events, first " +
                  first);
    else if (!lossless && missing > due_max + others - room)
      faults_.add(name(ear) + " lost " + std::to_string(missing) + " of " +
                  std::to_string(due_max) + " with room for " + std::to_string(room));
  }
  if (resolved && open && ear.latest() && lossless && evictable == 0 && !parallel &&
      due_min == due_max)
    judge_latest(ear);
  ear.due_min += resolved ? due_min : 0;
  ear.due_max += resolved ? due_max : 0;
  ear.lossy = ear.lossy || !lossless;
  ear.evictable += resolved ? evictable : 0;
  if (!is.held) return;
  judge_stats(ear, is, in_time && !ear.lossy, ear.evictable);
  if (!resolved || !open || stopped_) return;
  const SubscriberStats& s = is.stats;
  // What the bus says of itself may have been lost before it was heard.
  const bool bounded = !ear.channels.all() || (!ear.lossy && !hears_the_bus(ear));
  if ((bounded && s.offered > ear.due_max + others) || s.offered + ear.evictable < ear.due_min)
    faults_.add(name(ear) + "'s offered is " + std::to_string(s.offered) + ", not between " +
                std::to_string(ear.due_min - ear.evictable) + " and " +
                std::to_string(ear.due_max) + ": delivered " + std::to_string(s.delivered) +
                ", skipped " + std::to_string(s.skipped) + ", others " + std::to_string(others));
}

/// The newest of each key, of one voice at least: which of them came last nobody promises.
void Oracle::judge_latest(const Ear& ear) {
  for (std::uint32_t key = 0; key < 8; ++key) {
    bool any = false;
    bool newest = false;
    for (const auto& [id, of] : ear.of) {
      const Voice& voice = journal_.voice_at(id);
      const Spoken* last = nullptr;
      for (std::uint32_t n = voice.judged; n < voice.count; ++n) {
        const Spoken& said = voice.said[n];
        if (said.code == PublishCode::accepted && said.mark.key() == key &&
            (last == nullptr || last->done < said.done))
          last = &said;
      }
      any = any || last != nullptr;
      newest = newest || (last != nullptr && (of.seen[last->mark.n] || !last->placed));
    }
    if (any && !newest)
      faults_.add(name(ear) + " did not hear the newest of key " + std::to_string(key));
  }
}

void Oracle::judge_stats(const Ear& ear, const EarAtRest& is, bool lossless,
                         std::uint64_t evictable) {
  const std::string who = name(ear) + "'s ";
  const SubscriberStats& s = is.stats;
  const auto heard = [&ear](Outcome o) { return ear.outcomes[static_cast<std::size_t>(o)]; };
  const std::uint64_t returned = heard(Outcome::returned);
  const std::uint64_t all = returned + ear.others;
  // Of a run that is half read all is pending.
  const std::uint64_t open = ear.pulled() ? s.pending : 0;
  const std::uint64_t least = hears_the_bus(ear) ? returned : all;
  faults_.expect(
      s.delivered <= all && least <= s.delivered + open,
      who + "delivered is " + std::to_string(s.delivered) + ", not " + std::to_string(all));
  if (!ear.pulled()) {
    faults_.expect_equal(s.threw, heard(Outcome::threw), who + "threw");
    faults_.expect_equal(s.filtered, heard(Outcome::filtered), who + "filtered");
  }
  if (hears_the_bus(ear)) return;
  faults_.expect_equal(
      s.offered,
      s.delivered + s.threw + s.filtered + s.skipped + s.dropped + s.coalesced + s.pending,
      who + "offered (I3)");
  if (lossless && evictable == 0 && !stopped_) faults_.expect_equal(s.dropped, 0, who + "dropped");
  if (!ear.pulled()) faults_.expect_equal(s.pending, 0, who + "pending");
  if (is.emptied) faults_.expect_equal(s.pending, 0, who + "pending when it is empty");
  if (!ear.latest()) faults_.expect_equal(s.coalesced, 0, who + "coalesced");
}

}  // namespace ringmain::fuzz
