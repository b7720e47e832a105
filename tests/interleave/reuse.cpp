// Scenarios: new objects get the place, and perhaps the memory, of old ones.
#include <memory>

#include "engine/deliver/pull.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

void served_and_gone(const Crew& crew) {
  const auto box = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*box, check.callback());
  Lane& lane = lane_of(*box, lane_options());
  expect(say(lane, number(0, 1)) == Pushed::accepted, "an event is refused");
  check.await(1);
  ChannelCore::give_lane(lane);
  crew->retire(*box);
}

void read_by_its_user(const Crew& crew) {
  ChannelCoreOptions o;
  o.pulled = true;
  const auto box = crew.channel(o);
  box->begin_listening();
  Lane& lane = lane_of(*box, lane_options());
  Threads feeder;
  feeder.start(
      [&lane] { expect(say(lane, number(0, 1)) == Pushed::accepted, "an event is refused"); });
  const auto reader = std::make_unique<engine::Drainer>();
  expect(engine::wait_for_events(*box, -1), "nothing is there");
  const Run run = engine::take_run(lane, reader->room, 1);
  expect(run.count == 1 && tests::number_of(run, 0) == number(0, 1),
         "somebody else drains a reader's mailbox");
  feeder.join();
  engine::finish_run(*box, lane, run);
  ChannelCore::give_lane(lane);
  crew->retire(*box);
}

}  // namespace

/// One mailbox after another has the same index; where memory is used again, the same address.
void again() {
  if (choose(2) == 0) reuse_memory();
  const Crew crew(3);
  Threads threads;
  for (int t = 0; t < 2; ++t) {
    threads.start([&crew] {
      served_and_gone(crew);
      read_by_its_user(crew);
    });
  }
}

/// A publisher that comes seldom remembers whom it woke last, and many parks have been since.
void rarely() {
  Crew crew(1);
  const auto channel = crew.channel();
  OrderCheck check;
  const AttachedSubscriber attached(*channel, check.callback());
  Lane& rare = lane_of(*channel, lane_options());
  Lane& often = lane_of(*channel, lane_options());
  const auto between = static_cast<std::uint32_t>(choose(4));
  expect(say(rare, number(0, 1)) == Pushed::accepted, "an event is refused");
  check.await(1);
  for (std::uint32_t n = 1; n <= between; ++n) {
    expect(say(often, number(1, n)) == Pushed::accepted, "an event is refused");
    check.await(1 + n);
  }
  expect(say(rare, number(0, 2)) == Pushed::accepted, "an event is refused");
  check.await(between + 2);
}

}  // namespace ringmain::interleave
