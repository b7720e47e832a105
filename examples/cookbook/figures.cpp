// How do I see what every channel and subscriber did?
#include "step.hpp"

int main() {
  ringmain::Bus bus;
  auto hearing = bus.channel<Step>().subscribe([](const Step&) {}, {.name = "nothing much"});
  for (int n = 1; n <= 3; ++n) bus.channel<Step>().post({n, 2.5 / n});
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  const ringmain::Stats figures = bus.stats();
  for (const ringmain::ChannelStats& channel : figures.channels) {
    if (channel.offered == 0) continue;
    std::printf("%s: %d offered, %d delivered\n", channel.name.c_str(),
                static_cast<int>(channel.offered), static_cast<int>(channel.delivered));
  }
  return hearing.stats().delivered == 3 ? 0 : 1;
}
