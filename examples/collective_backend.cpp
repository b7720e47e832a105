// Four ranks train, as threads of one process. Their all-reduce is a backend of our own, which
// reports through a communicator: a pre hook keeps what is no number out of the model, a completion
// hook measures, and a subscriber counts what every rank did.
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ringmain/adapters/sources/collective/communicator.hpp>
#include <ringmain/bus/bus.hpp>

namespace collective = ringmain::collective;

constexpr int kRanks = 4, kSteps = 5, kBadStep = 3;

/// Sums one vector of each rank: the last that comes wakes the others.
class AllReduce {
 public:
  void run(std::vector<double>& mine) {
    std::unique_lock lock(mutex_);
    sum_.resize(mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) sum_[i] += mine[i];
    const int turn = turn_;
    if (++arrived_ == kRanks) {
      result_ = std::exchange(sum_, {});
      arrived_ = 0;
      ++turn_;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return turn_ != turn; });
    mine = result_;  // the next turn cannot end before this rank has begun it
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<double> sum_, result_;
  int arrived_ = 0, turn_ = 0;
};

/// One rank's end of the backend.
bool all_reduce(const collective::Communicator& comm, AllReduce& group, std::vector<double>& data) {
  const std::array<std::int64_t, 1> sizes{static_cast<std::int64_t>(data.size())};
  static const ringmain::Name kDtype("float64");
  const collective::Tensor tensor{
      .data = data.data(), .sizes = sizes, .dtype = kDtype, .bytes = data.size() * sizeof(double)};
  auto issuing = comm.issue(collective::AllReduce{tensor, collective::ReduceOp::sum});
  if (!issuing) {
    std::printf("rank %d: refused: %s\n", comm.rank(),
                std::string(issuing.reason().view()).c_str());
    return false;
  }
  const collective::Operation operation = issuing.operation();
  group.run(data);
  issuing.returned();
  operation.completed();
  return true;
}

/// Refuses what is no number, before it reaches the other ranks.
ringmain::Verdict only_numbers(const collective::PreHookArgs& args) {
  static const ringmain::Name kWhy("a gradient is not a number");
  for (const collective::Tensor& tensor : collective::view_of(*args.arguments).input) {
    const auto* values = static_cast<const double*>(tensor.data);
    for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
      if (std::isnan(values[i])) return ringmain::Verdict::veto(kWhy);
    }
  }
  return ringmain::Verdict::allow();
}

int main() {
  ringmain::Bus bus;
  std::atomic<int> completed{0}, refused{0};
  auto hears_ends = bus.channel<collective::Completed>().subscribe(
      [&](const collective::Completed&) { ++completed; });
  auto hears_failures =
      bus.channel<collective::Failed>().subscribe([&](const collective::Failed& what) {
        if (what.how == collective::How::vetoed) ++refused;
      });

  AllReduce group;
  std::atomic<std::int64_t> longest_ns{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto made = collective::Communicator::make(bus, {.name = "world",
                                                             .backend = "example",
                                                             .source = "trainer",
                                                             .rank = rank,
                                                             .size = kRanks});
      if (!made) return std::puts(made.error().message.c_str()), void();
      const collective::Communicator& comm = made.value();
      const auto guard = comm.pre_hook(only_numbers);
      const auto measures = comm.completion_hook([&](const collective::CompletionHookArgs& args) {
        if (args.completed == nullptr) return;
        std::int64_t before = longest_ns;
        while (before < args.completed->duration_ns &&
               !longest_ns.compare_exchange_weak(before, args.completed->duration_ns)) {
        }
      });
      for (int step = 0; step < kSteps; ++step) {
        std::vector<double> gradients(8, 1.0 + rank);
        if (step == kBadStep) gradients[5] = std::numeric_limits<double>::quiet_NaN();
        if (!all_reduce(comm, group, gradients)) continue;  // every rank skips this step
        if (gradients[0] != 10) std::printf("rank %d: wrong sum %g\n", rank, gradients[0]);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();

  if (!bus.flush(std::chrono::minutes(1))) return 1;
  std::printf("%d completed, %d refused\n", completed.load(), refused.load());
  const bool right = completed == kRanks * (kSteps - 1) && refused == kRanks && longest_ns > 0;
  return right ? 0 : 1;
}
