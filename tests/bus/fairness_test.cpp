// Does every channel get its turn while very many are busy, and do workers run where they are
// told?
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/environment.hpp"
#include "tests/bus/events.hpp"
#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

class ManyChannelsTest : public ::testing::TestWithParam<unsigned> {};

/// Counted in the callbacks, so a worker that the machine stops between taking a channel up and
/// calling its subscriber makes that channel's wait look long, and no other's: these few are
/// allowed for. tests/model/ready_channels.pml and the scenario `turns` show the bound where turns
/// are taken.
TEST_P(ManyChannelsTest, EachOfAThousandBusyChannelsGetsItsTurnBeforeOthersGetManyMore) {
  constexpr std::size_t kChannels = 1000;
  constexpr std::uint64_t kTurns = 60;  // past the end of a lane's first segment
  const unsigned workers = GetParam();
  const std::uint64_t bound = workers * (kChannels - 1) + workers;
  Bus bus(with_workers(workers));
  struct Seen {
    std::atomic<std::uint64_t> turns{0};
    std::uint64_t last = 0;  // touched by one worker at a time
  };
  std::vector<Seen> seen(kChannels);
  std::vector<Channel<Plain>*> channels;
  std::vector<Subscription> subs;
  std::atomic<std::uint64_t> turns{0};
  std::atomic<std::uint64_t> too_long{0};
  std::atomic<bool> over{false};
  for (std::size_t i = 0; i < kChannels; ++i)
    channels.push_back(&bus.channel<Plain>("many." + std::to_string(i)));
  for (std::size_t i = 0; i < kChannels; ++i) {
    subs.push_back(channels[i]->subscribe_batch([&, i](Batch<Plain>) {
      // A turn may be two calls, in which a callback publishes at the end of a lane's segment: one
      // of what lay before that end, and one of what came meanwhile.
      thread_local const Seen* in_turn = nullptr;
      if (std::exchange(in_turn, &seen[i]) == &seen[i]) {
        if (!over) channels[i]->post({turns});
        return;
      }
      const std::uint64_t now = ++turns;
      // From the third turn on: by then all have become busy.
      if (++seen[i].turns > 2 && now - seen[i].last > bound + 1) ++too_long;
      seen[i].last = now;
      if (!over) channels[i]->post({now});  // it is never empty
    }));
  }
  for (auto* c : channels) c->post({0});
  EXPECT_TRUE(eventually([&] {
    return std::all_of(seen.begin(), seen.end(), [](const Seen& s) { return s.turns >= kTurns; });
  }));
  over = true;
  EXPECT_LE(too_long, workers == 1 ? 0u : turns / 100) << "of " << turns << " turns";
  ASSERT_TRUE(bus.flush(kLong));
}

INSTANTIATE_TEST_SUITE_P(Workers, ManyChannelsTest, ::testing::Values(1u, 2u, 4u));

struct Home {
  int cpus = 0;
  bool on_first = false;
  int nice = 0;
};

int first_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof set, &set);
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) return static_cast<int>(cpu);
  }
  return -1;
}

/// Where a callback finds itself.
Home home_of_a_worker(const BusOptions& options) {
  Bus bus(options);
  Home home;
  const int first = first_cpu();
  const Subscription sub = bus.channel<Tick>().subscribe([&](const Tick&) {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    home.cpus = CPU_COUNT(&set);
    home.on_first = CPU_ISSET(static_cast<unsigned>(first), &set);
    home.nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)));
  });
  bus.channel<Tick>().post({1});
  EXPECT_TRUE(bus.flush(kLong));
  return home;
}

TEST(WorkerHomeTest, WorkersRunWhereAndAsTheOptionsSay) {
  BusOptions o = with_workers(2);
  o.worker_cpus = std::to_string(first_cpu());
  o.worker_nice = 1;
  const Home home = home_of_a_worker(o);
  EXPECT_EQ(home.cpus, 1);
  EXPECT_TRUE(home.on_first);
  EXPECT_EQ(home.nice, ::getpriority(PRIO_PROCESS, 0) + 1);
}

TEST(WorkerHomeTest, AThreadThatIsBoundToOneCpuMayPlaceWorkersOnAnother) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "there is one CPU only";
  const auto first = static_cast<unsigned>(first_cpu());
  cpu_set_t bound;
  CPU_ZERO(&bound);
  CPU_SET(first, &bound);
  unsigned other = first + 1;
  while (!CPU_ISSET(other, &before)) ++other;
  ASSERT_EQ(::sched_setaffinity(0, sizeof bound, &bound), 0);
  BusOptions o = with_workers(1);
  o.worker_cpus = std::to_string(other);
  const Home home = home_of_a_worker(o);
  EXPECT_EQ(home.cpus, 1);
  EXPECT_FALSE(home.on_first);
  cpu_set_t after;
  CPU_ZERO(&after);
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &bound)) << "the caller's own CPU affinity must stay";
  ::sched_setaffinity(0, sizeof before, &before);
}

TEST(WorkerHomeTest, TheEnvironmentOverridesTheOptions) {
  const Environment workers("RINGMAIN_WORKERS", "3");
  const Environment cpus("RINGMAIN_WORKER_CPUS", std::to_string(first_cpu()));
  const Environment nice("RINGMAIN_WORKER_NICE", "2");
  EXPECT_EQ(Bus(with_workers(1)).workers(), 3u);
  const Home home = home_of_a_worker(with_workers(1));
  EXPECT_EQ(home.cpus, 1);
  EXPECT_EQ(home.nice, ::getpriority(PRIO_PROCESS, 0) + 2);
}

TEST(WorkerHomeTest, AListThatIsNoneIsRefusedInASentence) {
  for (const char* list : {"x", "0-", "-1", "3-1", "0,,1", "0,", "1 2", "0-99999"}) {
    BusOptions o = with_workers(1);
    o.worker_cpus = list;
    try {
      const Bus bus(o);
      ADD_FAILURE() << "accepted: " << list;
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find("worker_cpus '" + std::string(list) + "'"),
                std::string::npos)
          << e.what();
    }
  }
  BusOptions o = with_workers(1);
  o.worker_cpus = "1023";
  EXPECT_THROW(Bus{o}, std::invalid_argument);
}

TEST(WorkerHomeTest, ASlipInTheEnvironmentIsSaidAndIgnored) {
  const Environment workers("RINGMAIN_WORKERS", "many");
  const Environment cpus("RINGMAIN_WORKER_CPUS", "all");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Bus(with_workers(2)).workers(), 2u);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("RINGMAIN_WORKERS is ignored: 'many'"), std::string::npos) << said;
  EXPECT_NE(said.find("RINGMAIN_WORKER_CPUS is ignored: 'all'"), std::string::npos) << said;
}

}  // namespace
}  // namespace ringmain::tests
