// Is a thread that waits for a round of the housekeeper told by the first round that owes nothing?
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "engine/watch/housekeeper.hpp"

#include "tests/engine/eventually.hpp"
#include "tests/engine/rig.hpp"

namespace ringmain::tests {
namespace {

using namespace ringmain::engine;

/// Owes something in its first round that was asked for, which lasts until it is let go.
class Debtor final : public Reporter {
 public:
  void slow(const SlowTurn&) noexcept override {}
  void threw(const Thrown&) noexcept override {}
  bool lost(const ChannelCore&, const Losses&, std::int64_t, std::int64_t) noexcept override {
    return true;
  }
  bool round(std::uint32_t, std::int64_t) noexcept override {
    sigset_t set;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &set);
    int open = 0;
    for (const int s : {SIGINT, SIGTERM, SIGALRM, SIGPROF, SIGUSR1, SIGCHLD})
      open += ::sigismember(&set, s) == 0;
    open_signals = open;
    if (rounds.fetch_add(1) != 0) return true;
    rounds.notify_all();
    let_go.wait(false);
    return false;
  }
  [[nodiscard]] bool is_calling() const noexcept override { return false; }
  [[nodiscard]] std::string calling() const override { return {}; }
  [[nodiscard]] std::int64_t due_ns() const noexcept override { return INT64_MAX; }

  std::atomic<int> rounds{0};
  std::atomic<bool> let_go{false};
  std::atomic<int> open_signals{-1};  // in its thread
};

/// The waiter asks while the first round lasts. That one owes something, and the second does not:
/// nobody rings for a third, which would come of itself after a second.
TEST(HouseRoundsTest, WhoAsksWhileOneOwesSomethingIsToldByTheNext) {
  const Ref<Debtor> debtor(new Debtor);
  const Ref<Engine> workers(new Engine(WorkersOptions{}));
  workers->house().set_reporter(debtor.get());
  ASSERT_EQ(workers->start(), 1u);
  workers->inbox().event_count().notify(EventCount::kRound);
  debtor->rounds.wait(0);
  std::atomic<long> asking{0};
  bool told = false;
  std::thread waiter([&] {
    asking = ::syscall(SYS_gettid);
    told = workers->house().await_round(-1);
  });
  EXPECT_TRUE(eventually([&] { return asking != 0 && is_asleep(asking); }));
  debtor->let_go = true;
  debtor->let_go.notify_all();
  waiter.join();
  EXPECT_TRUE(told);
  EXPECT_EQ(debtor->rounds, 2);
  EXPECT_EQ(debtor->open_signals, 0) << "a handler of the program's could run in its thread";
  EXPECT_TRUE(workers->stop(true, -1).stuck.empty());
}

}  // namespace
}  // namespace ringmain::tests
