// How do I hear only some of a channel's events?
#include <atomic>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  std::atomic<int> heard{0};
  auto each_hundredth = bus.channel<Step>().subscribe_if(
      [](const Step& step) { return step.number % 100 == 0; }, [&](const Step&) { ++heard; });
  for (int n = 1; n <= 300; ++n) bus.channel<Step>().post({n, 2.5});
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  std::printf("%d heard, %d left out\n", heard.load(),
              static_cast<int>(each_hundredth.stats().filtered));
  return heard == 3 ? 0 : 1;
}
