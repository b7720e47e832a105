// Coming from Boost.Signals2: the same program before and after. Built where Boost is found.
#include <boost/signals2.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include <ringmain/bus/bus.hpp>

struct Step {
  int number;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"));
}

struct Panel {
  int last = 0;
  void saw(const Step& step) { last = step.number; }
};

namespace before {

int last_step() {
  boost::signals2::signal<void(const Step&)> steps;
  auto panel = std::make_shared<Panel>();
  using Slot = boost::signals2::signal<void(const Step&)>::slot_type;
  steps.connect(Slot(&Panel::saw, panel.get(), boost::placeholders::_1).track_foreign(panel));
  int heard = 0;
  boost::signals2::scoped_connection counting = steps.connect([&heard](const Step&) { ++heard; });
  for (int n = 1; n <= 3; ++n) steps(Step{n});  // runs every slot, here and now
  counting.disconnect();  // does not wait: another thread may still be inside the slot
  return heard == 3 ? panel->last : -1;
}

}  // namespace before

namespace after {

int last_step() {
  ringmain::Bus bus;
  auto& steps = bus.channel<Step>();
  auto panel = std::make_shared<Panel>();
  auto shown = steps.subscribe(std::weak_ptr(panel), &Panel::saw);  // skipped once it is gone
  int heard = 0;
  ringmain::Subscription counting = steps.subscribe([&heard](const Step&) { ++heard; });
  for (int n = 1; n <= 3; ++n) steps.post({n});  // a worker runs the callbacks
  (void)bus.flush(std::chrono::seconds(10));
  counting.reset();  // waits: no call is running, and none will start
  return heard == 3 ? panel->last : -1;
}

}  // namespace after

int main() {
  const int a = before::last_step();
  const int b = after::last_step();
  std::printf("before: step %d, after: step %d\n", a, b);
  return a == 3 && b == 3 ? 0 : 1;
}
