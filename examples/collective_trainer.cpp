// Four ranks train, as threads of one process: the loopback moves their data. A pre hook keeps each
// step within a budget of bytes, and a rank that finds its loss to be no number gives all of them
// up.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <ringmain/adapters/sources/collective/loopback.hpp>
#include <ringmain/bus/bus.hpp>

namespace collective = ringmain::collective;
namespace loopback = ringmain::collective::loopback;

constexpr int kRanks = 4, kSteps = 6, kLargeStep = 2, kBadStep = 4;
constexpr std::uint64_t kBytesPerStep = 4096;

/// Of one rank: what it may still send in this step.
struct Budget {
  std::uint64_t left = kBytesPerStep;

  ringmain::Verdict ask(const collective::PreHookArgs& args) {
    static const ringmain::Name kWhy("the bytes of this step are spent");
    for (const collective::Tensor& tensor : collective::view_of(*args.arguments).input) {
      if (tensor.bytes > left) return ringmain::Verdict::veto(kWhy);
      left -= tensor.bytes;
    }
    return ringmain::Verdict::allow();
  }
};

/// Each rank does the same: a hook that refused on one of them only would leave the others waiting.
void train(loopback::Rank& rank) {
  Budget budget;
  const auto asks = rank.comm().pre_hook(
      [&budget](const collective::PreHookArgs& args) { return budget.ask(args); });
  const auto tells = rank.comm().abort_hook([&rank](const collective::AbortHookArgs& args) {
    std::printf("rank %d: abort: %s\n", rank.rank(), std::string(args.reason.view()).c_str());
  });
  for (int step = 0; step < kSteps; ++step) {
    budget.left = kBytesPerStep;
    std::vector<float> gradients(step == kLargeStep ? 2000 : 500, 1.0f);
    const loopback::Values values(gradients);
    const float loss = rank.rank() == 1 && step == kBadStep
                           ? std::numeric_limits<float>::quiet_NaN()
                           : 1.0f / static_cast<float>(step + 1);
    if (std::isnan(loss)) {
      (void)rank.comm().abort("the loss is not a number");
      return;
    }
    const loopback::Work work = rank.all_reduce({.tensor = values, .async_op = true});
    // … what else there is to calculate …
    if (work.wait() == loopback::State::completed) {
      if (gradients[7] != kRanks) std::printf("wrong sum %g\n", static_cast<double>(gradients[7]));
      continue;
    }
    if (rank.rank() == 0) std::printf("step %d: %s\n", step, work.reason().c_str());
    if (work.how() != collective::How::vetoed) return;  // else without this step's gradients
  }
}

int main() {
  ringmain::Bus bus;
  std::atomic<int> completed{0}, refused{0}, aborted{0};
  const auto hears_ends = bus.channel<collective::Completed>().subscribe(
      [&](const collective::Completed&) { ++completed; });
  const auto hears_failures =
      bus.channel<collective::Failed>().subscribe([&](const collective::Failed& what) {
        ++(what.how == collective::How::vetoed ? refused : aborted);
      });
  const auto world = loopback::World::make(bus, {.name = "trainer", .ranks = kRanks});
  if (!world) return std::puts(world.error().message.c_str()), 1;
  world.value().run(train);

  if (!bus.flush(std::chrono::minutes(1))) return 1;
  std::printf("%d completed, %d refused, %d aborted\n", completed.load(), refused.load(),
              aborted.load());
  // Steps 0, 1 and 3 on all ranks; step 4 on those that wait for rank 1.
  return completed == 3 * kRanks && refused == kRanks && aborted == kRanks - 1 ? 0 : 1;
}
