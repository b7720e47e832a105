// How does an event get into its lane? The steady state is inlined into the caller; everything else
// (inline subscribers, stamps, tickets, a full or closed lane) is in push_slowly(), out of line.
//
// A publish whose channel is attended: two looks at the channel's state, one at its lease, two
// stores to the lane's word, one slot. No read-modify-write, no fence, no system call. Protocol:
// tests/model/lane_protocol.md, edges l.closing, l.attended, e.consumed, e.published, e.lane_free
// by the same names here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "lane.hpp"
#include "pushed.hpp"

namespace ringmain::engine {

/// Writes one event's payload at `to`.
using BuildFn = void(void* to, void* from) noexcept;

/// For push_slowly(): the event has no ticket yet.
constexpr std::uint64_t kNoTicket = ~std::uint64_t{0};
/// Publishes where it is not the steady state: inline subscribers, stamps, tickets, measured
/// latency, fences, a full or closed lane.
PushResult push_slowly(Lane& lane, BuildFn* build, void* from, std::int64_t time_ns,
                       std::uint64_t ticket = kNoTicket) noexcept;
/// On a coalescing lane: puts an event in the place of the one with that index, which is counted as
/// coalesced. False: that one is taken, or gone. Threads: the lane's publisher. Progress:
/// lock-free. Model: tests/model/coalesce.pml.
[[nodiscard]] bool replace(Lane& lane, std::uint64_t index, BuildFn* build, void* from,
                           std::int64_t time_ns) noexcept;
/// Tells the workers that the channel is unattended.
void notify(Lane& lane) noexcept;
/// Queues one event, which `build` makes in place, on a moodycamel lane of slots of that size.
/// False: out of memory.
template <std::uint32_t kBytes>
[[nodiscard]] bool put(Lane& lane, std::uint64_t sequence, BuildFn* build, void* from) noexcept;
/// The same of `n` events of `event_bytes` each; the first is to have the sequence number after
/// `sequence`, and the index `index` in the lane. Returns how many found memory.
template <std::uint32_t kBytes>
[[nodiscard]] std::size_t put_all(Lane& lane, std::uint64_t sequence, std::uint64_t index,
                                  const void* events, std::size_t event_bytes,
                                  std::size_t n) noexcept;
/// Takes "busy" back, where moodycamel could not allocate or stop() came between the two looks.
/// `word`: the one before begin().
Pushed undo(Lane& lane, std::uint64_t word, Pushed why) noexcept;

/// Calls `f` with `make`, or with a copy of it where that is small and trivially copyable: so the
/// values from which an inlined publish builds its event stay in registers, though other paths take
/// their address.
template <class Make, class F>
[[gnu::always_inline]] inline auto apart(Make& make, F f) noexcept {
  using Copy = std::remove_const_t<Make>;
  if constexpr (sizeof(Copy) <= 64 && std::is_trivially_copyable_v<Copy> &&
                std::is_invocable_v<const Copy&>) {
    Copy copy(make);
    return f(copy);
  } else {
    return f(make);
  }
}

/// A BuildFn: what `From` makes.
template <class E, class From>
void build_by(void* to, void* from) noexcept {
  ::new (to) E((*static_cast<From*>(from))());
}

/// Publishes one event that `make` builds in place; `state` is what the lane's line said. Threads:
/// the lane's publisher.
template <class E, class Make>
[[gnu::always_inline]] inline PushResult push(Lane& lane, Make& make,
                                              std::uint32_t state) noexcept {
  constexpr std::uint32_t kBytes = slot_bytes(slot_class(sizeof(E)));
  std::uint64_t word = 0;
  bool slowly = state != ChannelLine::kHeard || (word = begin(lane)) == 0;
  if (!slowly && word >= lane.word_limit) [[unlikely]] {
    end(lane, word, 0);
    slowly = true;
  }
  if (slowly) [[unlikely]] {
    return apart(make, [&lane](auto& from) noexcept {
      return push_slowly(lane, &build_by<E, std::remove_reference_t<decltype(from)>>,
                         const_cast<void*>(static_cast<const void*>(&from)), 0);
    });
  }
  asymmetric_fence_light();  // l.closing
  ChannelLine& line = *lane.line;
  if (line.closing()) [[unlikely]] {
    return undo(lane, word - 1, Pushed::closed);
  }
  const std::uint64_t sequence =
      (word >> 1) + lane.refused.load(std::memory_order_relaxed) + 1;  // relaxed: our own
  if (lane.slots.ring != nullptr) {
    std::byte* slot = lane.slots.ring + ((word >> 1) & lane.slots.mask) * kBytes;
    auto* header = reinterpret_cast<SlotHeader*>(slot);
    ::new (slot + sizeof(SlotHeader)) E(make());
    header->time_ns = 0;
    AtomicRef<std::uint64_t>(header->sequence)
        .store(sequence, std::memory_order_release);  // e.published
  } else {
    const bool queued = apart(make, [&lane, sequence](auto& from) noexcept {
      return put<kBytes>(lane, sequence, &build_by<E, std::remove_reference_t<decltype(from)>>,
                         const_cast<void*>(static_cast<const void*>(&from)));
    });
    if (!queued) [[unlikely]]
      return undo(lane, word - 1, Pushed::no_memory);
  }
  end(lane, word, 1);
  asymmetric_fence_light();  // l.attended
  if (line.leased.load(std::memory_order_relaxed) == 0) [[unlikely]]
    notify(lane);
  return Pushed::accepted;
}
template <class E, class Make>
[[gnu::always_inline]] inline PushResult push(Lane& lane, Make& make) noexcept {
  return push<E>(lane, make, lane.line->look());  // looked at again after l.closing
}

struct PushedAll {
  std::size_t accepted = 0;
  std::size_t refused = 0;         // without those that were unheard
  std::size_t vetoed = 0;          // of those refused
  Pushed last = Pushed::accepted;  // the last refusal
};

/// Publishes as many of `n` events as there is room for, with one announcement, where that is the
/// steady state. Returns how many.
template <class E>
std::size_t push_at_once(Lane& lane, const E* events, std::size_t n) noexcept {
  constexpr std::uint32_t kBytes = slot_bytes(slot_class(sizeof(E)));
  const std::uint32_t state =
      lane.line->state.load(std::memory_order_relaxed);  // relaxed: looked at again below
  const std::uint64_t word = state == ChannelLine::kHeard ? begin(lane) : 0;
  if (word == 0) return 0;
  std::size_t room = word < lane.word_limit
                         ? static_cast<std::size_t>((lane.word_limit - word + 1) / 2)
                         : std::size_t{0};
  room = room < n ? room : n;
  asymmetric_fence_light();  // l.closing
  std::uint64_t sequence =
      (word >> 1) + lane.refused.load(std::memory_order_relaxed);  // relaxed: our own
  if (lane.line->closing()) room = 0;                              // relaxed: l.closing
  std::size_t done = 0;
  if (lane.slots.ring != nullptr) {
    for (; done < room; ++done) {
      std::byte* slot = lane.slots.ring + (((word >> 1) + done) & lane.slots.mask) * kBytes;
      auto* header = reinterpret_cast<SlotHeader*>(slot);
      ::new (slot + sizeof(SlotHeader)) E(events[done]);
      header->time_ns = 0;
      AtomicRef<std::uint64_t>(header->sequence)
          .store(++sequence, std::memory_order_release);  // e.published
    }
  } else {
    done = put_all<kBytes>(lane, sequence, word >> 1, events, sizeof(E), room);
  }
  end(lane, word, done);
  asymmetric_fence_light();  // l.attended
  if (done != 0 && lane.line->leased.load(std::memory_order_relaxed) == 0) notify(lane);
  return done;
}

/// Publishes `n` events: as many as there is room for with one announcement, the rest one by one,
/// by the lane's policy. Threads: the lane's publisher.
template <class E>
PushedAll push_all(Lane& lane, const E* events, std::size_t n) noexcept {
  PushedAll result;
  // What does not go at once goes alone: then it is refused, or it has made room for more.
  bool more = true;
  for (std::size_t i = 0; i < n;) {
    const std::size_t at_once = more ? push_at_once(lane, events + i, n - i) : 0;
    result.accepted += at_once;
    i += at_once;
    if (i == n) break;
    auto copy = [event = events + i++]() noexcept { return *event; };
    const Pushed one = push<E>(lane, copy);
    more = one == Pushed::accepted;
    if (one == Pushed::accepted) {
      ++result.accepted;
    } else {
      result.last = one;
      if (one != Pushed::unheard) ++result.refused;
      if (one == Pushed::vetoed) ++result.vetoed;
    }
  }
  return result;
}

}  // namespace ringmain::engine
