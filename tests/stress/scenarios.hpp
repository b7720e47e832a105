// The things that stress does to a bus, each alone; the tests run them for a count, the soak until
// its time is up.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>

#include "bus/bus.hpp"

#include "tests/stress/oracle.hpp"

namespace ringmain::stress {

/// How long: a number of rounds, or until somebody says so.
struct Until {
  std::uint64_t rounds = ~std::uint64_t{0};
  const std::atomic<bool>* over = nullptr;
  [[nodiscard]] bool more(std::uint64_t done) const {
    return done < rounds && (over == nullptr || !over->load());
  }
};

struct Tally {
  std::atomic<std::uint64_t> events{0};         // accepted
  std::atomic<std::uint64_t> heard{0};          // by the oracles
  std::atomic<std::uint64_t> dropped{0};        // refused, as counted by publishers
  std::atomic<std::uint64_t> evicted{0};        // pushed out by newer ones
  std::atomic<std::uint64_t> coalesced{0};      // replaced in a mailbox by newer ones of their keys
  std::atomic<std::uint64_t> vetoed{0};         // by inline subscribers
  std::atomic<std::uint64_t> ordered{0};        // heard where one order is promised over many lanes
  std::atomic<std::uint64_t> told{0};           // what the housekeeper said: interest, losses
  std::atomic<std::uint64_t> subscriptions{0};  // come and gone
  std::atomic<std::uint64_t> threads{0};        // come and gone
  std::atomic<std::uint64_t> buses{0};          // come and gone
};

struct Steady {
  unsigned workers = 2;
  unsigned publishers = 3;
  LaneKind lane = LaneKind::segments;
  bool large = false;  // events of a kilobyte
};
/// Publishers come and go, each with a kind, a bound and a policy by chance; shared, batched,
/// isolated, pulled and pattern subscribers hear it all. Everything is accounted for in the end.
/// `until` counts the publishers of each thread.
void steady(const Steady& what, const Until& until, std::uint64_t seed, Tally& tally,
            Faults& faults);

/// Threads that publish a few events each. Lanes stay as many as threads live at once.
void thread_churn(unsigned workers, LaneKind lanes, const Until& until, Tally& tally,
                  Faults& faults);

/// Sources of one channel say different things of its threads' lanes, while `takers` threads take
/// theirs: one of them holds, for all, from the moment on at which it was told so.
void thread_lanes_storm(unsigned takers, const Until& until, Tally& tally, Faults& faults);

/// Subscriptions of every kind come and go against live publishers; none is called afterwards.
void registration_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                        Faults& faults);

/// Inline subscribers come and go, nested and by themselves, while three threads publish and one
/// judge vetoes each third event.
void inline_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                  Faults& faults);

/// Ordered subscribers of three channels, one of total order, come and go while three threads
/// publish; each event says what had been published before it.
void order_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                 Faults& faults);

/// A channel that several workers deliver at once: everything exactly once, every throw counted,
/// while subscribers come and go.
void parallel_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                    Faults& faults);

/// Sources that ask whether anybody listens, while listeners come and go; and losses, told in a
/// sum.
void interest_storm(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                    Faults& faults);

/// Callbacks reset themselves and each other.
void resets_in_callbacks(unsigned workers, const Until& until, Tally& tally, Faults& faults);

/// Many short lives of a bus: stop() against publish, subscribe, reset and flush.
void lifecycles(const Until& until, std::uint64_t seed, Tally& tally, Faults& faults);

/// Channels, isolated subscriptions, patterns and mailboxes come while others flush.
void channels_and_patterns(unsigned workers, const Until& until, std::uint64_t seed, Tally& tally,
                           Faults& faults);

/// A large bus in little memory: prints what it takes. False: a fault was found. In a process of
/// its own, whose highest memory it looks at.
bool memory_is_bounded(Faults& faults);

}  // namespace ringmain::stress
