// How do I publish an event, and hear it?
#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto printing = bus.channel<Step>().subscribe(
      [](const Step& step) { std::printf("step %d: %.2f\n", step.number, step.loss); });
  if (!bus.channel<Step>().publish({1, 2.5})) return 1;  // false: it is lost, and counted
  return bus.flush(std::chrono::seconds(10)) ? 0 : 1;    // waits until it was heard
}
