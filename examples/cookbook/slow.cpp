// My callback is slow, or blocks. How do I keep it from holding up the others?
#include <atomic>
#include <thread>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  std::atomic<bool> go{false};
  auto slow =
      bus.channel<Step>().subscribe([&](const Step&) { go.wait(false); },
                                    {.served = ringmain::Served::own_thread, .name = "slow"});
  std::atomic<int> heard{0};
  auto quick = bus.channel<Step>().subscribe([&](const Step& step) {
    heard = step.number;
    heard.notify_one();
  });
  bus.channel<Step>().post({1, 2.5});
  heard.wait(0);  // the quick one has heard it while the other one blocks
  go = true;
  go.notify_all();
  return bus.flush(std::chrono::seconds(10)) ? 0 : 1;
}
