// Scenarios: what may accuse the bus looks on while others publish, are refused, and are heard.
#include "ringmain/engine/accounts.hpp"

#include "ringmain/tests/interleave/rig.hpp"
#include "ringmain/tests/interleave/scenarios.hpp"

namespace ringmain::interleave {

/// Some are refused for a full lane, some by stop(), beside whose end publishers go on.
void accounts() {
  Crew crew(1);
  const auto channel = crew.channel();
  const Hearer hearer(*channel, [&](const Run&) {});
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

}  // namespace ringmain::interleave
