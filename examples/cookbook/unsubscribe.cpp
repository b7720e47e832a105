// How do I stop hearing, and when may I free what my callback uses?
#include <memory>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto best = std::make_unique<double>(1e9);
  auto keeping = bus.channel<Step>().subscribe([&best = *best](const Step& step) {
    if (step.loss < best) best = step.loss;
  });
  bus.channel<Step>().post({1, 2.5});
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  keeping.reset();  // no call is running now, and none will start: so do scopes that end
  std::printf("best %.2f\n", *best);
  best.reset();
  return 0;
}
