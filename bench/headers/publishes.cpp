// What does a file compile that publishes and does not listen?
#include <cstdint>

#include "bus/publisher.hpp"

struct Step {
  std::uint64_t step;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("bench.step", ringmain::field<&Step::step>("step"),
                         ringmain::field<&Step::loss>("loss"));
}

ringmain::PublishResult publish(ringmain::Publisher<Step>& steps, std::uint64_t step, double loss) {
  return steps.publish({step, loss});
}
ringmain::Publisher<Step> begin() {
  return ringmain::publisher<Step>();
}
