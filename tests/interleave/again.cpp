// Scenarios: what is made has the place, and perhaps the memory, of what has gone.
#include <memory>

#include "ringmain/engine/pull.hpp"

#include "ringmain/tests/interleave/rig.hpp"
#include "ringmain/tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

void served_and_gone(const Crew& crew) {
  const auto box = crew.channel();
  Ear ear;
  const Hearer hearer(*box, ear.callback());
  Lane& lane = lane_of(*box, lane_options());
  expect(say(lane, number(0, 1)) == Pushed::accepted, "an event is refused");
  ear.await(1);
  ChannelCore::give_lane(lane);
  crew->retire(*box);
}

void read_by_its_user(const Crew& crew) {
  ChannelCoreOptions o;
  o.pulled = true;
  const auto box = crew.channel(o);
  box->hear();
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

}  // namespace ringmain::interleave
