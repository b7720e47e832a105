// How much memory does a large bus take? 1,000 channels with ten subscribers each, and 256 threads
// that publish on 16 channels each: what a process of this size may cost is a figure, not a
// feeling.
#include <atomic>
#include <barrier>
#include <cstdio>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

#include "tests/stress/scenarios.hpp"

namespace ringmain::stress {
namespace {

constexpr std::size_t kChannels = 1000;
constexpr std::size_t kSubscriptions = 10'000;
constexpr std::size_t kThreads = 256;
constexpr std::size_t kChannelsEach = 16;
constexpr std::uint64_t kEvents = 100;  // of each thread on each of its channels, in each round
constexpr std::ptrdiff_t kRounds = 3;
constexpr double kGrowthMaxMib = 256;

using Event = Said<6>;  // 64 bytes

/// The highest it has been.
double peak_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

}  // namespace

bool memory_is_bounded(Faults& faults) {
  const double before = peak_mib();
  std::vector<std::uint64_t> heard(kSubscriptions);  // each written by one callback
  std::atomic<std::uint64_t> accepted{0};
  Bus bus;
  std::vector<Channel<Event>*> channels;
  for (std::size_t i = 0; i < kChannels; ++i)
    channels.push_back(&bus.channel<Event>("stress.many." + std::to_string(i)));
  std::vector<Subscription> subscriptions;
  for (std::size_t i = 0; i < kSubscriptions; ++i) {
    subscriptions.push_back(channels[i % kChannels]->subscribe(
        [&n = heard[i]](const Event& e) { n += e.intact() ? 1u : 0u; }));
  }
  const double attached = peak_mib();
  // All threads, and so all their lanes, live until the last round is over.
  std::barrier round(static_cast<std::ptrdiff_t>(kThreads) + 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::uint32_t n = 0;
      for (std::ptrdiff_t r = 0; r < kRounds; ++r) {
        for (std::uint64_t i = 0; i < kEvents; ++i) {
          ++n;
          for (std::size_t c = 0; c < kChannelsEach; ++c) {
            const bool ok = channels[(t * kChannelsEach + c) % kChannels]->publish(Event::make(
                                static_cast<std::uint32_t>(t), n)) == PublishCode::accepted;
            accepted += ok ? 1u : 0u;
          }
        }
        round.arrive_and_wait();  // all have published
        round.arrive_and_wait();  // and all is heard
      }
    });
  }
  std::vector<double> peaks;
  for (std::ptrdiff_t r = 0; r < kRounds; ++r) {
    round.arrive_and_wait();
    faults.expect(bus.flush(std::chrono::seconds(100)), "memory: flush ran out of time");
    peaks.push_back(peak_mib());
    if (r + 1 == kRounds) {
      std::uint64_t lanes = 0;
      for (const ChannelStats& s : bus.stats().channels) lanes += s.publishers;
      faults.expect_equal(lanes, kThreads * kChannelsEach, "memory: lanes that live");
    }
    round.arrive_and_wait();
  }
  for (auto& t : threads) t.join();
  faults.expect_equal(accepted, kThreads * kChannelsEach * kEvents * kRounds, "memory: accepted");
  std::uint64_t all = 0;
  for (const std::uint64_t n : heard) all += n;
  faults.expect_equal(all, accepted * (kSubscriptions / kChannels), "memory: heard");
  const double growth = peaks.back() - before;
  std::printf(
      "%zu channels, %zu subscriptions: %.1f MiB more\n"
      "%zu threads on %zu channels each, %llu events heard %llu times: %.1f MiB more at the peak "
      "of "
      "the first round, %.1f at that of the last; at most %.0f are promised\n",
      kChannels, kSubscriptions, attached - before, kThreads, kChannelsEach,
      static_cast<unsigned long long>(accepted.load()), static_cast<unsigned long long>(all),
      peaks.front() - before, growth, kGrowthMaxMib);
  faults.expect(growth <= kGrowthMaxMib, "memory: more than is promised");
  return faults.count() == 0;
}

}  // namespace ringmain::stress
