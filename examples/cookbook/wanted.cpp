// Making my event costs something. How do I skip that while nobody listens?
#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto& steps = bus.channel<Step>();
  int made = 0;
  const auto make = [&]() noexcept -> Step { return {++made, 2.5}; };
  (void)steps.publish_with(make);  // nobody listens: `make` is not called
  auto hearing = steps.subscribe([](const Step&) {});
  (void)steps.publish_with(make);
  if (!steps.wanted()) return 1;  // the same question, for work of several lines
  std::printf("made %d\n", made);
  return made == 1 ? 0 : 1;
}
