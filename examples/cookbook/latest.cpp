// I show a value on a screen. How do I hear only the newest one of each kind?
#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto newest =
      bus.channel<Step>().mailbox_latest([](const Step& step) { return step.number % 2; });
  for (int n = 1; n <= 100; ++n) bus.channel<Step>().post({n, 2.5 / n});
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  int shown = 0;
  newest.drain([&](const Step& step) {
    ++shown;
    std::printf("step %d\n", step.number);
  });
  return shown == 2 ? 0 : 1;  // the newest even one and the newest odd one
}
