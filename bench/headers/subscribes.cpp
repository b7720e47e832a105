// What does a file compile that subscribes?
#include <cstdint>

#include "bus/bus.hpp"

struct Step {
  std::uint64_t step;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("bench.step", ringmain::field<&Step::step>("step"),
                         ringmain::field<&Step::loss>("loss"));
}

ringmain::Subscription listen(ringmain::Bus& bus, double& loss) {
  return bus.channel<Step>().subscribe([&loss](const Step& step) { loss = step.loss; });
}
