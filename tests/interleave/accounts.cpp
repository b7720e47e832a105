// Scenarios: what may accuse the bus looks on while others publish, are refused, and are heard,
// also in signal handlers.
#include "engine/channel/accounts.hpp"

#include <array>

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {

/// Some are refused for a full lane, some by stop(), beside whose end publishers go on.
void accounts() {
  Crew crew(1);
  const auto channel = crew.channel();
  const AttachedSubscriber attached(*channel, [&](const Run&) {});
  Threads threads;
  for (std::uint64_t id = 0; id < 2; ++id) {
    threads.start([lane = &lane_of(*channel, lane_options(1))] {
      for (std::uint64_t n = 1; n <= 4; ++n) {
        const Pushed result = say(*lane, n);
        expect(result == Pushed::accepted || result == Pushed::full || result == Pushed::closed,
               "an event is refused for another reason");
      }
    });
  }
  const auto look = [&channel] {
    const engine::Accounts a = engine::look_at_accounts(*channel);
    expect(a.offered_add_up, "the bus is said to be at fault (I1) and is not");
    expect(a.accepted_add_up, "the bus is said to be at fault (I2) and is not");
  };
  for (int k = 0; k < 4; ++k) look();
  crew.stop();
  for (int k = 0; k < 4; ++k) look();
  threads.join();
  look();
}

/// Signal handlers publish on a lane in the middle of a publish on it, also of one that is refused,
/// or waits for room, and of a handler's own.
void handlers() {
  Crew crew(1);
  const auto channel = crew.channel();
  Atomic<std::uint32_t> heard{0};
  std::array<Atomic<std::uint32_t>, 64> times{};
  const AttachedSubscriber attached(*channel, [&](const Run& run) {
    for (std::uint32_t i = 0; i < run.count; ++i)
      expect(times[tests::number_of(run, i)].fetch_add(1) == 0, "an event is heard twice");
    heard.fetch_add(run.count);
  });
  LaneOptions o = lane_options(1 + static_cast<std::uint32_t>(choose(3)));
  if (choose(2) == 0) {
    o.overflow = engine::Overflow::block;
    o.block_ns_max = -1;
  }
  Lane& lane = lane_of(*channel, o);
  std::uint64_t said = 0, nested = 0;
  Atomic<std::uint32_t> accepted{0}, refused{0};
  const auto say_one = [&](bool in_handler) {
    const std::uint64_t n = said++;
    const Pushed result = say(lane, n);
    (result == Pushed::accepted ? accepted : refused).fetch_add(1);
    const auto published = static_cast<std::int64_t>(lane.published());  // before `consumed`
    expect(published - static_cast<std::int64_t>(lane.consumed.load()) <= o.capacity,
           "more than the bound is there");
    expect(result == Pushed::accepted || result == Pushed::closed ||
               (result == Pushed::full && o.overflow != engine::Overflow::block) ||
               (result == Pushed::too_deep && in_handler),
           "an event is refused for another reason");
  };
  Threads threads;
  threads.start([&] {
    const InHandlersReach reach([&] {
      if (++nested <= 6) say_one(true);
    });
    for (int n = 0; n < 4; ++n) say_one(false);
  });
  const auto look = [&channel] {
    const engine::Accounts a = engine::look_at_accounts(*channel);
    expect(a.offered_add_up, "the bus is said to be at fault (I1) and is not");
    expect(a.accepted_add_up, "the bus is said to be at fault (I2) and is not");
  };
  for (int k = 0; k < 4; ++k) look();
  if (choose(2) == 0) threads.join();
  crew.stop();
  threads.join();
  look();
  expect(heard.load() == accepted.load(), "accepted is not heard");
  expect(lane.published() == accepted.load(), "the lane has lost a publish");
  expect(lane.refused.load() == refused.load(), "the lane has lost a refusal");
}

}  // namespace ringmain::interleave
