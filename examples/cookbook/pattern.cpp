// How do I hear every channel below a name, also those that come later?
#include <atomic>

#include "step.hpp"

int main() {
  ringmain::Bus bus;
  std::atomic<int> heard{0};
  auto all =
      bus.subscribe("train.>", [&](const ringmain::EventView& event) {  // "train.*": one token
        if (const Step* step = event.as<Step>()) heard += step->number;
      });
  bus.channel<Step>().post({7, 0.5});
  if (!bus.flush(std::chrono::seconds(10))) return 1;
  return heard == 7 ? 0 : 1;
}
