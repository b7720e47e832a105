// A sink of your own: a class in one file, and one line that gives it a name.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <ringmain/adapters/registry.hpp>
#include <ringmain/bus/bus.hpp>

struct Step {
  int number;
  double seconds;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"),
                         ringmain::field<&Step::seconds>("seconds"));
}

/// Prints at the end which step took longest. It is called by one thread at a time and needs no
/// lock.
class Slowest final : public ringmain::registry::Sink {
 public:
  explicit Slowest(std::string_view title) : title_(title) {}  // what follows "slowest:"

  void hear(const ringmain::EventView& event) override {
    const Step* const step = event.as<Step>();
    if (step != nullptr && step->seconds > slowest_.seconds) slowest_ = *step;
  }
  ringmain::Result<bool> close() override {
    if (slowest_.number == 0) return ringmain::Error{ringmain::Error::Code::system, "no step came"};
    std::printf("%s: step %d, %.1f s\n", title_.c_str(), slowest_.number, slowest_.seconds);
    return true;
  }

 private:
  std::string title_;
  Step slowest_{};
};

int main() {
  using namespace ringmain::registry;
  if (!Registry::process().add(sink_provider<Slowest>({.argument = "TITLE"}))) return 1;

  ringmain::Bus bus;
  auto slowest = attach_sink(bus, "slowest:longest", "train.*");
  if (!slowest) return 1;
  for (const Step& step : {Step{1, 0.5}, Step{2, 2.5}, Step{3, 1.0}})
    bus.channel<Step>().post(step);
  if (!bus.flush(std::chrono::seconds(10))) return 1;  // the sink has them all
  return slowest.value().close() && slowest.value().heard() == 3 ? 0 : 1;
}
