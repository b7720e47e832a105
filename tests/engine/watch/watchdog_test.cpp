// Does the housekeeper sleep as deeply as it may, and does it tell a long turn from its own pause?
#include "engine/watch/watchdog.hpp"

#include <atomic>
#include <cstdint>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine/system/event_count.hpp"

#include "tests/engine/eventually.hpp"

namespace ringmain::tests {
namespace {

using namespace ringmain::engine;

constexpr std::int64_t kMs = 1'000'000;

// --- the housekeeper's event count ---

class EventCountTest : public ::testing::Test {
 protected:
  /// The housekeeper's half, in a thread: sleeps until it was told to quit.
  void keep_house(bool busy) {
    thread_ = std::thread([this, busy] {
      id_ = ::syscall(SYS_gettid);
      for (std::uint32_t notified = 0; (notified & EventCount::kQuit) == 0;) {
        notified = event_count_.wait(-1, -1, [&] { return busy; });
        had_ |= notified;
      }
    });
  }
  void TearDown() override {
    event_count_.notify(EventCount::kQuit);
    thread_.join();
  }
  EventCount event_count_;
  std::atomic<std::uint32_t> had_{0};
  std::atomic<long> id_{0};
  std::thread thread_;
};

TEST_F(EventCountTest, ANotificationEndsALongWaitAndIsTaken) {
  keep_house(false);
  event_count_.notify(EventCount::kNews);
  EXPECT_TRUE(eventually([&] { return (had_ & EventCount::kNews) != 0; }));
}

TEST_F(EventCountTest, ANotificationEndsAShortWaitToo) {
  keep_house(true);
  event_count_.notify(EventCount::kInterest);
  EXPECT_TRUE(eventually([&] { return (had_ & EventCount::kInterest) != 0; }));
}

TEST_F(EventCountTest, AWorkerThatWakesEndsALongWait) {
  keep_house(false);
  EXPECT_TRUE(eventually([&] {
    event_count_.notify_busy();
    return (had_ & EventCount::kBusy) != 0;
  }));
}

TEST_F(EventCountTest, AShortWaitIsNotDisturbedByWorkers) {
  keep_house(true);
  // Before it sleeps it may be met in what looks like a long wait.
  ASSERT_TRUE(eventually([&] { return id_ != 0 && is_asleep(id_); }));
  for (int i = 0; i < 10'000; ++i) event_count_.notify_busy();
  event_count_.notify(EventCount::kNews);
  ASSERT_TRUE(eventually([&] { return (had_ & EventCount::kNews) != 0; }));
  EXPECT_EQ(had_ & EventCount::kBusy, 0u);
}

// --- how long has a turn been running? ---

TEST(LookClockTest, AGapAsAskedCountsAndOneFarLongerIsAPause) {
  LookClock clock;
  EXPECT_EQ(clock.look(1'000 * kMs, 50 * kMs), 0) << "the first look has nothing before it";
  EXPECT_EQ(clock.look(1'051 * kMs, 50 * kMs), 51 * kMs);
  EXPECT_EQ(clock.look(6'051 * kMs, 50 * kMs), 0) << "five seconds: we were stopped ourselves";
  EXPECT_EQ(clock.look(6'102 * kMs, 50 * kMs), 51 * kMs);
}

TEST(LookClockTest, WhereEveryGapIsTooLongLongerOnesAreAskedForUntilTheyAreKept) {
  LookClock clock;
  std::int64_t now = 1'000 * kMs;
  std::int64_t counted = 0;
  for (int i = 0; i < 20; ++i) {  // a machine so busy that every sleep takes 100 ms more
    const std::int64_t asked = 2 * kMs * clock.stretch();
    now += asked + 100 * kMs;
    counted += clock.look(now, asked);
  }
  EXPECT_EQ(counted, 0) << "16 times 2 ms are not enough to keep up with 100";
  EXPECT_EQ(clock.stretch(), 16);
  for (int i = 0; i < 4; ++i) {
    now += 2 * kMs * clock.stretch();
    counted += clock.look(now, 2 * kMs * clock.stretch());
  }
  EXPECT_GT(counted, 0);
  EXPECT_EQ(clock.stretch(), 1);
}

TEST(CallClockTest, OnlyTheSameTurnAddsUp) {
  CallClock clock;
  EXPECT_EQ(clock.look(call_word(1, 7), 10), 0) << "it may just have begun";
  EXPECT_EQ(clock.look(call_word(1, 7), 10), 10);
  EXPECT_EQ(clock.look(call_word(1, 7), 5), 15);
  EXPECT_TRUE(clock.tell());
  EXPECT_FALSE(clock.tell()) << "once per turn";
  EXPECT_EQ(clock.look(call_word(2, 7), 10), 0) << "the same subscriber, another turn";
  EXPECT_TRUE(clock.tell());
  EXPECT_EQ(clock.look(0, 10), 0);
  EXPECT_EQ(clock.look(0, 10), 0) << "nobody is called, for however long";
}

}  // namespace
}  // namespace ringmain::tests
