// How is code that listens tested? On a bus without threads: event by event, the same in every run.
#include <cstdio>

#include <ringmain/bus/test_bus.hpp>

struct Step {
  int number;
  double loss;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::number>("number"),
                         ringmain::field<&Step::loss>("loss"));
}
struct Spike {
  int step;
  std::int64_t calm_ns;
};
constexpr auto describe(ringmain::EventOf<Spike>) {
  return ringmain::event("train.spike", ringmain::field<&Spike::step>("step"),
                         ringmain::field<&Spike::calm_ns>("calm_ns", ringmain::Unit::ns));
}

// The code under test: it publishes a Spike when the loss more than doubles from one step to the
// next, with the time since the last spike.
class SpikeWatch {
 public:
  explicit SpikeWatch(ringmain::Bus& bus) : spikes_(bus.channel<Spike>()) {
    steps_ = bus.channel<Step>().subscribe([this](const Step& step, const ringmain::Stamp& stamp) {
      if (last_loss_ > 0 && step.loss > 2 * last_loss_) {
        spikes_.post({step.number, stamp.time_ns - calm_since_ns_});
        calm_since_ns_ = stamp.time_ns;
      }
      last_loss_ = step.loss;
      if (calm_since_ns_ == 0) calm_since_ns_ = stamp.time_ns;
    });
  }

 private:
  ringmain::Channel<Spike>& spikes_;
  double last_loss_ = 0;
  std::int64_t calm_since_ns_ = 0;
  ringmain::Subscription steps_;  // last: detached before what its callback uses is gone
};

int main() {
  ringmain::TestBus bus;
  SpikeWatch watch(bus);
  auto spikes = bus.heard<Spike>();
  auto& steps = bus.channel<Step>();

  steps.post({1, 2.0});
  bus.advance(std::chrono::seconds(5));
  steps.post({2, 1.9});
  bus.deliver();  // the callbacks run here
  if (!spikes.empty()) return 1;

  steps.post({3, 7.0});
  bus.deliver();  // the step, and the spike that the callback answers with
  if (spikes.size() != 1 || spikes[0].step != 3) return 1;
  if (spikes[0].calm_ns != 5'000'000'000) return 1;
  std::puts("a doubled loss is one spike");
}
