// Is nobody inside when the wait is over, and is each thread waited for that was?
#include "engine/system/presence.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <pthread.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/eventually.hpp"

namespace ringmain::engine {
namespace {

using tests::Door;
using tests::eventually;
using Waited = Presence::Waited;

// Never destroyed, as their users' are.
constinit Presence presence;
constinit Presence another;

TEST(PresenceTest, NobodyIsInsideAtFirst) {
  EXPECT_FALSE(presence.inside());
  EXPECT_EQ(presence.wait_until_none(0), Waited::none_inside);
  EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
}

TEST(PresenceTest, AThreadIsInsideUntilTheLastOfItsEntriesEnds) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(presence.enter());
  EXPECT_TRUE(presence.inside());
  for (int i = 0; i < 3; ++i) {
    std::thread([] { EXPECT_EQ(presence.wait_until_none(0), Waited::timeout); }).join();
    presence.leave();
  }
  EXPECT_FALSE(presence.inside());
  EXPECT_EQ(presence.wait_until_none(0), Waited::none_inside);
}

TEST(PresenceTest, AThreadThatIsInsideDoesNotWaitForItself) {
  ASSERT_TRUE(presence.enter());
  EXPECT_EQ(presence.wait_until_none(-1), Waited::itself);
  presence.leave();
}

TEST(PresenceTest, TwoPresencesAreTwo) {
  ASSERT_TRUE(presence.enter());
  EXPECT_EQ(another.wait_until_none(-1), Waited::none_inside);
  ASSERT_TRUE(another.enter());
  presence.leave();
  EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
  EXPECT_TRUE(another.inside());
  EXPECT_EQ(another.wait_until_none(-1), Waited::itself);
  another.leave();
  another.leave();  // of nobody: nothing
  EXPECT_FALSE(another.inside());
}

TEST(PresenceTest, AWaitRunsOutOfTimeWhileSomebodyIsInside) {
  Door door;
  std::thread inside([&door] {
    ASSERT_TRUE(presence.enter());
    EXPECT_TRUE(door.pass());
    presence.leave();
  });
  ASSERT_TRUE(door.await_arrival());
  EXPECT_EQ(presence.wait_until_none(1'000'000), Waited::timeout);
  door.open();
  EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
  inside.join();
}

TEST(PresenceTest, AThreadThatWaitsSleepsAndIsWokenByTheLastOne) {
  std::array<Door, 2> doors;
  std::atomic<long> waiter_id{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> inside;
  for (Door& door : doors) {
    inside.emplace_back([&door] {
      ASSERT_TRUE(presence.enter());
      EXPECT_TRUE(door.pass());
      presence.leave();
    });
    ASSERT_TRUE(door.await_arrival());
  }
  std::thread waiter([&] {
    waiter_id = ::gettid();
    EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
    over = true;
  });
  for (Door& door : doors) {
    ASSERT_TRUE(eventually([&] { return waiter_id != 0 && tests::is_asleep(waiter_id); }));
    EXPECT_FALSE(over);
    door.open();
  }
  waiter.join();
  for (std::thread& t : inside) t.join();
}

TEST(PresenceTest, AThreadThatComesBackAtOnceIsWaitedForOnce) {
  std::array<Door, 2> doors;
  std::thread inside([&doors] {
    ASSERT_TRUE(presence.enter());
    EXPECT_TRUE(doors[0].pass());
    presence.leave();
    ASSERT_TRUE(presence.enter());
    EXPECT_TRUE(doors[1].pass());
    presence.leave();
  });
  ASSERT_TRUE(doors[0].await_arrival());
  std::atomic<long> waiter_id{0};
  std::thread waiter([&waiter_id] {
    waiter_id = ::gettid();
    EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
  });
  ASSERT_TRUE(eventually([&] { return waiter_id != 0 && tests::is_asleep(waiter_id); }));
  doors[0].open();
  waiter.join();  // the other is inside again, or will be
  doors[1].open();
  inside.join();
}

TEST(PresenceTest, AThreadThatEndsInsideIsNotWaitedFor) {
  Door door;
  std::thread inside([&door] {
    ASSERT_TRUE(presence.enter());
    EXPECT_TRUE(door.pass());
  });
  ASSERT_TRUE(door.await_arrival());
  std::atomic<long> waiter_id{0};
  std::thread waiter([&waiter_id] {
    waiter_id = ::gettid();
    EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
  });
  ASSERT_TRUE(eventually([&] { return waiter_id != 0 && tests::is_asleep(waiter_id); }));
  door.open();
  waiter.join();
  inside.join();
}

// A destructor of thread-specific data that runs in the second round, when the thread's records
// have been given back.
struct Late {
  Door door;
  int rounds = 0;
  pthread_key_t key{};
};
void call_late(void* with) {
  auto* const late = static_cast<Late*>(with);
  if (++late->rounds == 1) {
    ::pthread_setspecific(late->key, late);
    return;
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(presence.enter());
    EXPECT_TRUE(presence.enter());  // nested
    presence.leave();
    EXPECT_TRUE(presence.inside());
    EXPECT_EQ(presence.wait_until_none(-1), Waited::itself);
    if (i == 1) {
      EXPECT_TRUE(late->door.pass());
    }
    presence.leave();
    EXPECT_FALSE(presence.inside());
  }
}

TEST(PresenceTest, LateDestructorsOfAThreadEnterAndAreWaitedFor) {
  for (const bool entered_before : {true, false}) {
    Late late;
    ASSERT_EQ(::pthread_key_create(&late.key, &call_late), 0);
    std::thread ending([&late, entered_before] {
      ::pthread_setspecific(late.key, &late);
      if (!entered_before) return;
      ASSERT_TRUE(presence.enter());
      presence.leave();
    });
    ASSERT_TRUE(late.door.await_arrival());
    EXPECT_EQ(presence.wait_until_none(0), Waited::timeout);
    late.door.open();
    ending.join();
    EXPECT_EQ(late.rounds, 2);
    EXPECT_EQ(presence.wait_until_none(0), Waited::none_inside);
    ::pthread_key_delete(late.key);
  }
}

// What the door guards is freed as soon as the wait is over: a thread that is still inside touches
// freed memory, which the sanitizers see.
struct Guarded {
  std::atomic<std::uint64_t> uses{0};
  std::array<std::uint64_t, 8> by_thread{};  // plain: the wait orders what they did
};

/// Eight threads enter while the door is opened and closed `rounds` times. `lives`: entries of a
/// thread, which is then followed by another one; 0: until the end.
void open_and_close(int rounds, int lives) {
  std::atomic<Guarded*> open{nullptr};
  std::atomic<bool> over{false};
  const auto enter_once = [&open](std::size_t me, bool nested) {
    ASSERT_TRUE(presence.enter());
    if (Guarded* const guarded = open) {
      guarded->uses.fetch_add(1);
      if (nested) {
        ASSERT_TRUE(presence.enter());
        presence.leave();
      }
      ++guarded->by_thread[me];
    }
    presence.leave();
  };
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < 8; ++me) {
    threads.emplace_back([&, me] {
      while (!over) {
        if (lives == 0) {
          for (int i = 0; i < 64; ++i) enter_once(me, me % 2 == 0);
          std::this_thread::yield();  // the one that closes is to have a turn
          continue;
        }
        std::thread([&, me] {
          for (int i = 0; i < lives && !over; ++i) enter_once(me, i % 2 == 0);
        }).join();
      }
    });
  }
  for (int round = 0; round < rounds; ++round) {
    auto guarded = std::make_unique<Guarded>();
    open = guarded.get();
    ASSERT_TRUE(eventually([&guarded] { return guarded->uses != 0; }));
    open = nullptr;
    ASSERT_EQ(presence.wait_until_none(-1), Waited::none_inside);
    std::uint64_t sum = 0;
    for (const std::uint64_t n : guarded->by_thread) sum += n;
    ASSERT_EQ(sum, guarded->uses);
  }
  over = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(presence.wait_until_none(0), Waited::none_inside);
}

TEST(PresenceTest, NobodyIsInsideAfterEachOfAThousandWaits) {
  open_and_close(1000, 0);
}

TEST(PresenceTest, NobodyIsInsideWhileThreadsComeAndGoAndTakeEachOthersRecords) {
  open_and_close(200, 50);
}

TEST(PresenceTest, SeveralMayWaitAtOnce) {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&over] {
      while (!over) {
        ASSERT_TRUE(presence.enter());
        presence.leave();
      }
    });
  }
  std::vector<std::thread> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([] {
      for (int n = 0; n < 300; ++n) EXPECT_EQ(presence.wait_until_none(-1), Waited::none_inside);
    });
  }
  for (std::thread& t : waiting) t.join();
  over = true;
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace ringmain::engine
