// How do I read events in a loop of my own?
#include "step.hpp"

int main() {
  ringmain::Bus bus;
  ringmain::Mailbox<Step> steps = bus.channel<Step>().mailbox();
  for (int n = 1; n <= 3; ++n) bus.channel<Step>().post({n, 2.5 / n});
  std::size_t heard = 0;
  while (heard < 3 && steps.wait_for(std::chrono::seconds(10))) {
    heard += steps.drain([](const Step& step) { std::printf("step %d\n", step.number); });
  }
  return heard == 3 ? 0 : 1;  // steps.fd() is for poll() and event loops
}
