// What happens when my callback throws?
#include <stdexcept>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto& steps = bus.channel<Step>();
  // It is counted, and others hear the event. Here the first throw also ends the subscription.
  auto throwing = steps.subscribe([](const Step&) { throw std::runtime_error("no"); },
                                  {.on_throw = ringmain::OnThrow::detach});
  for (int n = 1; n <= 3; ++n) {
    steps.post({n, 2.5});
    if (!bus.flush(std::chrono::seconds(10))) return 1;
  }
  return throwing.stats().threw == 1 ? 0 : 1;
}
