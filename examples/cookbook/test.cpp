// How do I test code that listens, without threads and waits?
#include <ringmain/bus/test_bus.hpp>

#include "step.hpp"

int main() {
  ringmain::TestBus bus;
  int worse = 0;
  double last = 1e9;
  auto watch = bus.channel<Step>().subscribe([&](const Step& step) {
    if (step.loss > last) ++worse;
    last = step.loss;
  });
  bus.channel<Step>().post({1, 2.0});
  bus.channel<Step>().post({2, 3.0});
  bus.deliver();  // callbacks run here, in this thread, in the same order every time
  return worse == 1 ? 0 : 1;
}
