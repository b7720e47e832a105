// Read when you like, from a mailbox; and let a sink hear every channel that matches a pattern.
#include <chrono>
#include <cstdio>

#include <ringmain/adapters/registry.hpp>
#include <ringmain/bus/bus.hpp>

struct Step {
  int number;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"),
                         ringmain::field<&Step::loss>("loss"));
}

int main() {
  ringmain::Bus bus;
  auto lines = ringmain::registry::attach_sink(bus, "json_lines:-", "train.*");
  if (!lines) return 1;
  ringmain::Mailbox<Step> steps = bus.channel<Step>().mailbox();
  for (int n = 1; n <= 3; ++n) bus.channel<Step>().post({n, 2.5 / n});

  double best = 1e9;
  int heard = 0;
  while (heard < 3 && steps.wait_for(std::chrono::seconds(10))) {
    steps.drain([&](const Step& step) {  // in this thread: nothing here needs a lock
      ++heard;
      if (step.loss < best) best = step.loss;
    });
  }
  if (!bus.flush(std::chrono::seconds(10))) return 1;  // the sink has them all
  if (!lines.value().close()) return 1;                // and has written them
  std::printf("best of %d: %.2f\n", heard, best);
  return heard == 3 ? 0 : 1;
}
