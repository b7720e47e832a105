// Publish and subscribe, in ten lines and the description of an event.
#include <chrono>
#include <cstdio>

#include <ringmain/bus/bus.hpp>

struct Step {
  int number;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"),
                         ringmain::field<&Step::loss>("loss"));
}

int main() {
  ringmain::Bus bus;
  auto& steps = bus.channel<Step>();
  ringmain::Subscription printing = steps.subscribe(
      [](const Step& step) { std::printf("step %d: loss %.2f\n", step.number, step.loss); });
  for (int n = 1; n <= 3; ++n) {
    if (!steps.publish({n, 2.5 / n})) return 1;  // false: lost, and counted
  }
  return bus.flush(std::chrono::seconds(10)) ? 0 : 1;  // all that was published has been heard
}
