// What did each thread do last, before the process was killed? Two threads train; the process's
// flight recorder keeps their last steps and which collective was open, in a file that SIGKILL
// leaves.
//
//   flight_recorder            20 steps, and one collective that never ends
//   flight_recorder 1000000000 until somebody kills it; then: ringmain post-mortem
//
// It needs no GPU: it says what a training loop would say.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include <ringmain/bus/bus.hpp>
#include <ringmain/bus/origin.hpp>
#include <ringmain/events/collective.hpp>
#include <ringmain/events/recorded_operations.hpp>

namespace {

namespace collective = ringmain::collective;

struct Step {
  std::uint64_t step = 0;
  double loss = 0;
};
constexpr auto describe(ringmain::EventOf<Step>) {
  return ringmain::event("train.step", ringmain::field<&Step::step>("step", ringmain::Unit::id),
                         ringmain::field<&Step::loss>("loss"));
}

/// Of each step: it is told, its gradients are reduced, and of the last one the reduction hangs.
void train(ringmain::Bus& bus, std::uint64_t steps, ringmain::Name group) {
  auto& told = bus.channel<Step>();
  auto& issued = bus.channel<collective::Issued>();
  auto& completed = bus.channel<collective::Completed>();
  const ringmain::Name op("all_reduce");
  for (std::uint64_t n = 1; n <= steps; ++n) {
    told.post({n, 1.0 / static_cast<double>(n)});
    collective::Issued begin;
    begin.op_id = ringmain::new_op_id();
    begin.sequence = n;
    begin.bytes = 4 << 20;
    begin.op = op;
    begin.group = group;
    issued.post(begin);
    if (n == steps) return;
    collective::Completed end;
    end.op_id = begin.op_id;
    end.sequence = n;
    end.bytes = begin.bytes;
    end.op = op;
    end.group = group;
    completed.post(end);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t steps = 20;
  if (argc > 1) {
    const std::string_view word = argv[1];
    const auto read = std::from_chars(word.data(), word.data() + word.size(), steps);
    if (read.ptr != word.data() + word.size() || steps == 0) {
      std::fprintf(stderr, "usage: flight_recorder [STEPS]\n");
      return 2;
    }
  }
  ringmain::Bus& bus = ringmain::Bus::process();
  const auto flight =
      bus.record("train.*,collective.>", {.operations = collective::recorded_operations()});
  if (!flight) {
    std::fprintf(stderr, "%s\n", flight.error().message.c_str());
    return 1;
  }
  if (!flight.value().complaint().empty())
    std::fprintf(stderr, "%s\n", flight.value().complaint().c_str());
  std::printf("ringmain post-mortem %s\n", flight.value().path().c_str());
  std::fflush(stdout);
  std::vector<std::thread> ranks;
  for (const char* group : {"data", "tensor"})
    ranks.emplace_back([&bus, steps, group] { train(bus, steps, ringmain::Name(group)); });
  for (std::thread& rank : ranks) rank.join();
  return 0;
}
