// Is each handle told apart from all that had its address before, and from all others?
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/cuda/cuda_handles.hpp"

#include "tests/process/sanitized.hpp"
#include "tests/process/stopped.hpp"

namespace ringmain::cuda {
namespace {

constexpr auto kEvent = HandleClass::event;
constexpr auto kMemory = HandleClass::memory;

TEST(HandlesTest, AHandleIsKnownFromItsBirthAndDeadAfterItsEnd) {
  Handles handles(64);
  EXPECT_EQ(handles.find(kMemory, 0x1000).generation, 0u);
  EXPECT_EQ(handles.made(kMemory, 0x1000, 512, 7).generation, 1u);
  const auto known = handles.find(kMemory, 0x1000);
  EXPECT_TRUE(known.live);
  EXPECT_EQ(known.generation, 1u);
  EXPECT_EQ(known.bytes, 512u);
  EXPECT_EQ(known.context, 7u);
  EXPECT_TRUE(handles.gone(kMemory, 0x1000).live);
  EXPECT_FALSE(handles.find(kMemory, 0x1000).live);
  EXPECT_EQ(handles.find(kMemory, 0x1000).generation, 1u);
  EXPECT_FALSE(handles.gone(kMemory, 0x1000).live);
  EXPECT_EQ(handles.made(kMemory, 0x1000, 256, 7).generation, 2u);
  EXPECT_EQ(handles.find(kMemory, 0x1000).bytes, 256u);
}

TEST(HandlesTest, OneAddressInTwoClassesIsTwoHandles) {
  Handles handles(64);
  (void)handles.made(kMemory, 0x1000, 1, 1);
  EXPECT_EQ(handles.find(kEvent, 0x1000).generation, 0u);
  (void)handles.made(kEvent, 0x1000, 2, 2);
  EXPECT_EQ(handles.find(kMemory, 0x1000).bytes, 1u);
  EXPECT_EQ(handles.find(kEvent, 0x1000).bytes, 2u);
}

TEST(HandlesTest, AReleaseThatFailedLeavesItLiveWithItsGeneration) {
  Handles handles(64);
  (void)handles.made(kMemory, 0x1000, 1, 1);
  (void)handles.gone(kMemory, 0x1000);
  handles.back(kMemory, 0x1000);
  EXPECT_TRUE(handles.find(kMemory, 0x1000).live);
  EXPECT_EQ(handles.find(kMemory, 0x1000).generation, 1u);
  handles.back(kMemory, 0x1000);
  EXPECT_EQ(handles.unkept(), 0u);
  handles.back(kMemory, 0x2000);
  EXPECT_EQ(handles.unkept(), 1u);
}

TEST(HandlesTest, WithAContextGoWhatWasMadeInIt) {
  Handles handles(64);
  for (std::uint64_t n = 1; n <= 20; ++n) (void)handles.made(kMemory, n << 9, n, n % 2 == 0);
  handles.context_gone(1);
  for (std::uint64_t n = 1; n <= 20; ++n) {
    EXPECT_EQ(handles.find(kMemory, n << 9).live, n % 2 != 0) << n;
    EXPECT_EQ(handles.find(kMemory, n << 9).bytes, n);
  }
}

TEST(HandlesTest, WhatIsForgottenIsDeadAndComesBackYounger) {
  Handles handles(64);
  const auto before = handles.made(kEvent, 512, 1, 1);
  (void)handles.made(kMemory, 512, 1, 1);
  handles.forget(HandleClass::event);
  EXPECT_FALSE(handles.find(kEvent, 512).live);
  EXPECT_TRUE(handles.find(kMemory, 512).live);
  EXPECT_GT(handles.made(kEvent, 512, 1, 1).generation, before.generation);
}

TEST(HandlesTest, WhatFindsNoRoomIsCountedAndHarmsNoOther) {
  Handles handles(32);
  std::set<std::uint64_t> kept;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    if (handles.made(kEvent, n << 6, n, 0).generation != 0) kept.insert(n);
  }
  EXPECT_EQ(kept.size(), 32u);
  EXPECT_EQ(handles.unkept(), 68u);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    EXPECT_EQ(handles.find(kEvent, n << 6).bytes, kept.count(n) != 0 ? n : 0u);
  }
  EXPECT_EQ(handles.made(kEvent, ~0ull, 1, 0).generation, 0u);  // such an address there is not
  EXPECT_EQ(handles.unkept(), 69u);
}

TEST(HandlesTest, NoAddressGetsAGenerationTwiceThoughTheDeadAreEvicted) {
  Handles handles(32);
  std::map<std::uint64_t, std::uint32_t> last;
  std::mt19937_64 random(1);
  std::uint64_t unknown = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t address = (1 + random() % 500) << 9;
    unknown += handles.find(kMemory, address).generation == 0 && last[address] != 0;
    const std::uint32_t now = handles.made(kMemory, address, 1, 0).generation;
    ASSERT_GT(now, last[address]);
    last[address] = now;
    (void)handles.gone(kMemory, address);
  }
  EXPECT_GT(unknown, 1000u) << "none was evicted";
  EXPECT_EQ(handles.unkept(), 0u);
}

TEST(HandlesTest, FourFifthsOfTheRoomAreUsedBeforeTheFirstIsNotKept) {
  for (const unsigned alignment_bits : {6u, 9u}) {
    Handles handles(65'536);
    std::mt19937_64 random(alignment_bits);
    std::set<std::uint64_t> made;
    while (handles.unkept() == 0) {
      const std::uint64_t address = random() >> 17 >> alignment_bits << alignment_bits;
      if (made.insert(address).second) (void)handles.made(kMemory, address, 1, 0);
    }
    RecordProperty("kept_of_65536_at_" + std::to_string(alignment_bits),
                   static_cast<int>(made.size() - 1));
    EXPECT_GE(made.size() - 1, 65'536 * 4 / 5);
  }
}

/// `act` comes between any two instructions of `f`, each time in a new table, until `f` has no more
/// of them or `act` says that it came too late.
void act_within(void (*prepare)(Handles&), void (*f)(Handles&), bool (*act)(Handles&),
                void (*check)(Handles&, long), long stride = 1) {
  struct With {
    bool (*act)(Handles&);
    Handles& handles;
    bool early = true;
  };
  bool goes_on = true;
  for (long at = 1; goes_on && !::testing::Test::HasFailure(); at += stride) {
    Handles handles(32);
    prepare(handles);
    With with{act, handles};
    tests::Stopped stopped(
        at,
        [](void* given) {
          With& w = *static_cast<With*>(given);
          w.early = w.act(w.handles);
        },
        &with);
    goes_on = stopped.run([&] { f(handles); }) && with.early;
    if (goes_on) check(handles, at);
  }
}
constexpr auto kSkipped = "on x86-64 and without ThreadSanitizer only";

TEST(HandlesTest, AnAddressThatIsMadeAnewWhileItsClassIsForgottenIsInOnePlace) {
  if (!tests::stops_after_each_instruction()) GTEST_SKIP() << kSkipped;
  static std::uint32_t generation;
  act_within([](Handles& h) { (void)h.made(kMemory, 512, 1, 1); },
             [](Handles& h) { generation = h.made(kMemory, 512, 2, 1).generation; },
             [](Handles& h) {
               h.forget(kMemory);
               return true;
             },
             [](Handles& h, long at) {
               EXPECT_EQ(h.find(kMemory, 512).generation, generation) << at;
               EXPECT_EQ(h.find(kMemory, 512).bytes, 2u) << at;
               (void)h.gone(kMemory, 512);
               EXPECT_FALSE(h.find(kMemory, 512).live) << at;
               EXPECT_GT(h.made(kMemory, 512, 3, 1).generation, generation) << at;
             });
}

TEST(HandlesTest, AnAddressThatIsMadeAnewWhileItsContextGoesGetsNoGenerationTwice) {
  if (!tests::stops_after_each_instruction()) GTEST_SKIP() << kSkipped;
  static std::uint32_t generation;
  constexpr std::uint64_t kAddress = 1024;  // lies at the table's begin, so few steps reach it
  // Of the first generation, so that the end of one of them raises no floor.
  const auto fill = [](Handles& h) {
    (void)h.made(kMemory, kAddress, 1, 1);
    for (std::uint64_t n = 1; n <= 31; ++n) (void)h.made(kEvent, n << 9, 1, 3);
  };
  const auto again = [](Handles& h) {
    const bool early = h.gone(kMemory, kAddress).live;
    generation = h.made(kMemory, kAddress, 2, 2).generation;
    return early;
  };
  const auto again_after_another = [](Handles& h) {
    const bool early = h.gone(kMemory, kAddress).live;
    (void)h.made(kEvent, 32 << 9, 1, 3);
    (void)h.gone(kEvent, 32 << 9);
    generation = h.made(kMemory, kAddress, 2, 2).generation;
    return early;
  };
  // If it was taken for dead, another one evicts it.
  const auto comes_back_elsewhere = [](Handles& h, long at) {
    (void)h.made(kEvent, 33 << 9, 1, 3);
    (void)h.gone(kEvent, 1 << 9);
    EXPECT_GT(h.made(kMemory, kAddress, 1, 2).generation, generation) << at;
  };
  const auto context_goes = [](Handles& h) { h.context_gone(1); };
  const long kStride = tests::is_sanitized() ? 31 : 3;  // more lies between its look and its change
  act_within(fill, context_goes, again, comes_back_elsewhere, kStride);
  act_within(fill, context_goes, again_after_another, comes_back_elsewhere, kStride);
}

/// Eight threads, each with addresses of its own and a map of what it must find; others look at
/// them all the time, and what they find is never of another handle.
TEST(HandlesTest, WhatThreadsFindIsTheirsWhileOthersClaimAndEvict) {
  Handles handles(128);  // 8 * 12 live at most: dead ones are evicted all the time
  std::atomic<std::uint64_t> unknown{0};
  const auto live = [&](std::uint64_t me) {
    std::mt19937_64 random(me);
    struct Mine {
      std::uint32_t generation = 0;
      std::uint64_t bytes = 0;
      bool live = false;
    };
    std::map<std::uint64_t, Mine> mine;
    std::uint64_t living = 0;
    for (int i = 0; i < 20'000; ++i) {
      // Bytes say whose they are.
      const std::uint64_t address = (random() % 40 * 8 + me + 1) << 9;
      Mine& m = mine[address];
      if (m.live) {
        const auto was = handles.find(kMemory, address);
        ASSERT_TRUE(was.live && was.generation == m.generation && was.bytes == m.bytes);
        if (random() % 2 == 0) continue;
        ASSERT_TRUE(handles.gone(kMemory, address).live);
        m.live = false;
        --living;
      } else if (living < 6) {
        m.bytes = address | (random() & 0x1ff);
        const std::uint32_t generation = handles.made(kMemory, address, m.bytes, 0).generation;
        if (generation == 0) continue;  // counted
        ASSERT_GT(generation, m.generation);
        m.generation = generation;
        m.live = true;
        ++living;
      } else {
        const auto was = handles.find(kMemory, address);
        unknown += was.generation == 0;
        ASSERT_TRUE(was.generation == 0 || (was.generation == m.generation && !was.live));
        ASSERT_TRUE(was.generation == 0 || was.bytes >> 9 << 9 == address);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t me = 0; me < 8; ++me) threads.emplace_back(live, me);
  for (std::thread& t : threads) t.join();
  EXPECT_GT(unknown, 0u) << "none was evicted";
}

}  // namespace
}  // namespace ringmain::cuda
