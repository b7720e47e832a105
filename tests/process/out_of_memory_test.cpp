// Does a bus survive each of its allocations failing, and say so? A script that uses all of it runs
// once for every allocation in it, which fails; and once more for every few, from which on all do.
//
// Required each time: no crash, no hang, nothing half attached, accounts that balance, and not one
// block more than before.
#include <array>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <thread>

#include <gtest/gtest.h>

#include "engine/publish/segments.hpp"

#include "bus/bus.hpp"
#include "bus/test_bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"
#include "tests/engine/rig.hpp"
#include "tests/process/allocation_faults.hpp"
#include "tests/process/child.hpp"
#include "tests/process/sanitized.hpp"
#include "tests/process/script.hpp"

namespace ringmain::tests {
namespace {

/// Runs the script in a thread of its own, whose lanes end with it.
Found run(long first, long width, bool& reached) {
  Found found;
  std::thread([&] {
    fail_allocations(first, width);
    {
      Script script(width == 1);
      found = script.run();
      script.expect_nothing_lives();
    }
    reached = heal_allocations();
  }).join();
  return found;
}

/// Runs the script with every `step`-th allocation and the `width` from there on failing. Twice:
/// what the process makes once and keeps, such as a name, is there when leaks are counted. Returns
/// how many allocations the script has.
long fail_in_turn(long step, long width) {
  long k = 1;
  for (const bool counting : {false, true}) {
    bool reached = false;
    EXPECT_EQ(run(1L << 50, 0, reached).fault, nullptr);
    const long before = allocations_living();
    reached = true;
    for (k = 1; reached && !::testing::Test::HasFailure(); k += step) {
      const Found found = run(k, width, reached);
      EXPECT_EQ(found.fault, nullptr) << "allocation " << k << ": " << found.fault;
      if (!counting) continue;
      EXPECT_EQ(allocations_living(), before) << "allocation " << k << " leaks";
    }
  }
  return k;
}

TEST(OutOfMemoryTest, EachAllocationMayFail) {
  const long allocations = fail_in_turn(1, 1);
  EXPECT_GT(allocations, 100) << "the script allocates next to nothing: the test sees too little";
}

TEST(OutOfMemoryTest, FromEachAllocationOnAllMayFail) {
  fail_in_turn(3, 1L << 40);
}

/// The system's own refusals come at other places than the counted ones.
TEST(OutOfMemoryTest, ASmallAddressSpaceIsSurvived) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's shadow memory does not fit into a limit";
  for (rlim_t more = 0; more <= 64; more = more == 0 ? 1 : more * 2) {
    const auto run_in_little = [more](Findings& f) {
      std::ifstream statm("/proc/self/statm");
      rlim_t pages = 0;
      statm >> pages;
      rlimit limit{};
      limit.rlim_cur = limit.rlim_max =
          pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (more << 20);
      f.expect(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
      for (int i = 0; i < 3; ++i) {
        const Found found = Script(false).run();
        f.expect(found.fault == nullptr, found.fault);
      }
    };
    EXPECT_EQ(in_child(run_in_little), kFine) << more << " MiB left";
  }
}

/// The queue takes a batch in blocks. One that got some of them and then no more must leave nothing
/// after that later events stumble over.
TEST(OutOfMemoryTest, ABatchThatGetsHalfOfItsMemoryLosesOnlyWhatItSays) {
  bool reached = true;
  for (long k = 1; reached && !HasFailure(); ++k) {
    reached = false;
    TestBus bus;
    auto& ticks = bus.channel<Tick>();
    Growing growing;
    const Subscription seen = ticks.subscribe([&growing](const Tick& t) { growing.hear(t.n); });
    auto publisher = ticks.publisher();
    std::array<Tick, 300> many{};
    std::uint64_t said = 0, accepted = 0;
    for (int batch = 0; batch < 40; ++batch) {
      for (Tick& t : many) t.n = ++said;
      if (batch % 8 == 0) fail_allocations(k, 1);
      accepted += publisher.publish_all(many).accepted;
      if (batch % 8 == 0) reached |= heal_allocations();
      if (batch % 16 == 15) bus.deliver();
    }
    bus.deliver();
    EXPECT_EQ(growing.count, accepted) << "allocation " << k;
    EXPECT_FALSE(growing.disordered) << "allocation " << k;
    EXPECT_TRUE(bus.verify_accounting().has_value());
  }
}

/// Of a lane through which somebody streams: the segment that it needs not, and does not get.
TEST(OutOfMemoryTest, AStreamGoesTheShorterWayWhereThereIsNoMemoryForALonger) {
  const auto workers = resting_workers();
  const auto channel = make_channel(workers);
  std::uint64_t heard = 0;
  const AttachedSubscriber attached(*channel, [&heard](const engine::Run& run) {
    for (std::size_t i = 0; i < run.count; ++i) EXPECT_EQ(number_of(run, i), heard++);
  });
  engine::Lane* const lane = channel->take_lane({}, *channel);
  ASSERT_NE(lane, nullptr);
  auto& all = *static_cast<engine::Segments*>(lane->slots.queue);
  engine::Drainer drainer;
  const std::uint64_t slots = all.slots;
  std::uint64_t said = 0;
  const auto stream = [&](bool memory) {
    bool refused = false;
    for (int i = 0; i < 2000; ++i) {
      all.extended_ns = INT64_MAX / 2;  // as if segments were filled in no time
      if (!memory) fail_own_allocations(1, 1L << 40);
      const engine::Pushed pushed = push_number(*lane, said++);
      if (!memory) refused |= heal_allocations();
      ASSERT_EQ(pushed, engine::Pushed::accepted);
      if (said > heard + slots / 4) {
        ASSERT_EQ(engine::drain(drainer, *channel, 1), 1u);
      }
    }
    EXPECT_EQ(refused, !memory);
  };
  stream(false);
  EXPECT_EQ(all.slots, slots);
  stream(true);
  EXPECT_GT(all.slots, slots);
  while (engine::drain(drainer, *channel, 256) != 0) {
  }
  EXPECT_EQ(heard, said);
}

/// In whichever allocation of taking its lane a thread fails, it loses that event, counted, and
/// gets its lane by the next one.
TEST(OutOfMemoryTest, AThreadThatGetsNoLaneLosesThatEventCounted) {
  bool reached = true;
  for (long k = 1; reached && !HasFailure(); ++k) {
    TestBus bus;
    auto& ticks = bus.channel<Tick>();
    std::uint64_t heard = 0;
    const Subscription sub = ticks.subscribe([&heard](const Tick&) { ++heard; });
    PublisherOptions realtime;
    realtime.capacity_events = 8192;
    realtime.realtime = true;
    ASSERT_TRUE(ticks.set_thread_lanes(realtime));
    std::thread([&] {
      fail_allocations(k, 1);
      const PublishResult first = ticks.publish({1});
      reached = heal_allocations();
      EXPECT_EQ(first, reached ? PublishCode::no_memory : PublishCode::accepted)
          << "allocation " << k;
      EXPECT_EQ(ticks.publish({2}), PublishCode::accepted) << "allocation " << k;
    }).join();
    EXPECT_EQ(ticks.stats().no_memory, reached ? 1u : 0u);
    bus.deliver();
    EXPECT_EQ(heard, reached ? 1u : 2u);
    EXPECT_TRUE(bus.verify_accounting().has_value());
    EXPECT_TRUE(reached || k > 3) << "it has a table, a place there and a lane";
  }
}

/// Also on a bus without threads, where no round ever looks at those that asked.
TEST(OutOfMemoryTest, WhatAskedForInterestLeavesNoBlockBehind) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  const auto blocks_of_a_thousand = [&](auto ask) {
    const auto ask_often = [&] {
      for (int i = 0; i < 1000; ++i) ask().reset();
    };
    ask_often();  // what is made once and kept is there
    const long before = allocations_living();
    ask_often();
    return allocations_living() - before;
  };
  EXPECT_EQ(blocks_of_a_thousand([&] { return bus.on_interest(ticks, [](Interest) {}); }), 0);
  EXPECT_EQ(blocks_of_a_thousand(
                [&] { return bus.on_interest("test.*", [](std::string_view, Interest) {}); }),
            0);
  // One that was told is dropped by the next round.
  EXPECT_EQ(blocks_of_a_thousand([&] {
              EXPECT_TRUE(bus.wait_told(kLong));
              Subscription asked = bus.on_interest(ticks, [](Interest) {});
              EXPECT_TRUE(bus.wait_told(kLong));
              return asked;
            }),
            0);
}

TEST(OutOfMemoryTest, ASourceThatCannotSayItsLanesIsToldAndMayTryAgain) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  fail_allocations(1, 1);
  const auto refused = ticks.set_thread_lanes({.capacity_events = 16});
  ASSERT_TRUE(heal_allocations());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::no_memory);
  EXPECT_TRUE(ticks.set_thread_lanes({.capacity_events = 32})) << "nothing was said yet";
}

/// The sentence must not advise to raise a limit that was never reached.
TEST(OutOfMemoryTest, APublisherThatGetsNoMemoryIsNotToldToRaiseLanesMax) {
  TestBus bus;
  auto& ticks = bus.channel<Tick>();
  fail_allocations(1, 1);
  const auto refused = ticks.publisher(PublisherOptions{});
  ASSERT_TRUE(heal_allocations());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Error::Code::no_memory);
  EXPECT_NE(refused.error().message.find("out of memory"), std::string::npos);
  EXPECT_EQ(refused.error().message.find("lanes_max"), std::string::npos)
      << refused.error().message;
}

// --- recorded ---

TEST(OutOfMemoryTest, ARecordedPublishAllocatesNothingAfterTheThreadsFirst) {
  if (is_sanitized()) GTEST_SKIP() << "a sanitizer's own allocator is not counted";
  const Folder folder;
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  const auto recording = bus.record("test.*", in_folder(folder.path())).value();
  ASSERT_EQ(recording.complaint(), "");
  auto own = ticks.publisher();
  std::thread([&] {
    (void)ticks.publish({1});
    (void)own.publish({2});
    fail_own_allocations(1, 1L << 40);
    int accepted = 0;
    for (std::uint64_t n = 0; n < 5000; ++n) {
      accepted += ticks.publish({n}) ? 1 : 0;
      accepted += own.publish({n}) ? 1 : 0;
    }
    EXPECT_FALSE(heal_allocations()) << "it has allocated";
    EXPECT_EQ(accepted, 10'000);
  }).join();
  // And a thread's first one does: the test would see it.
  std::thread([&] {
    fail_own_allocations(1, 1L << 40);
    (void)ticks.publish({1});
    EXPECT_TRUE(heal_allocations());
  }).join();
}

TEST(OutOfMemoryTest, EachAllocationOfAThreadsFirstRecordedPublishMayFail) {
  const Folder folder;
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  const auto recording = bus.record("test.*", in_folder(folder.path())).value();
  std::uint64_t accepted = 0, offered = 0;
  bool reached = true;
  for (long k = 1; reached; ++k) {
    std::thread([&] {
      fail_own_allocations(k, 1);
      accepted += ticks.publish({++offered}) ? 1 : 0;
      reached = heal_allocations();
      accepted += ticks.publish({++offered}) ? 1 : 0;
    }).join();
  }
  EXPECT_GE(offered, is_sanitized() ? 2u : 4u) << "its first allocates nothing";
  EXPECT_GE(accepted, offered / 2);
  const auto read = engine::flight::read_flight(recording.path());
  EXPECT_EQ(read.damage + read.refusal, "");
  std::uint64_t there = 0;
  for (const auto& ring : read.rings) there += ring.ring.written + ring.annex.written;
  EXPECT_EQ(there + read.counts.unrecorded, ticks.stats().offered);
  EXPECT_TRUE(bus.verify_accounting());
}

}  // namespace
}  // namespace ringmain::tests
