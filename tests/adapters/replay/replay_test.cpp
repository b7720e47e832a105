#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/sources/replay/replay_pace.hpp"
#include "adapters/sources/replay/replay_recording.hpp"
#include "adapters/sources/replay/replay_source.hpp"
#include "adapters/sources/replay/replay_store.hpp"

namespace ringmain::replay {
namespace {

KinetoMapped at(std::int64_t time_ns, std::uint64_t id) {
  Flow flow;
  flow.id = id;
  return {flow, time_ns, 1};
}

std::vector<KinetoMapped> all_of(const ReplayStore& store) {
  ReplayStore::Reader reader(store);
  std::vector<KinetoMapped> all;
  KinetoMapped event;
  for (;;) {
    const auto more = reader.next(event);
    EXPECT_TRUE(more) << (more ? "" : more.error().message);
    if (!more || !more.value()) return all;
    all.push_back(event);
  }
}

/// Some times often, so that ties are common; the id says when it was added.
void expect_sorted_and_stable(ReplayStore& store, std::uint64_t events) {
  for (std::uint64_t i = 0; i < events; ++i) {
    ASSERT_FALSE(store.add(at(static_cast<std::int64_t>(i * 7919 % 1009) - 500, i)));
  }
  ASSERT_FALSE(store.sort());
  for (int reading = 0; reading < 2; ++reading) {
    const auto all = all_of(store);
    ASSERT_EQ(all.size(), events);
    for (std::size_t i = 1; i < all.size(); ++i) {
      const auto& a = all[i - 1];
      const auto& b = all[i];
      ASSERT_LE(a.time_ns, b.time_ns);
      if (a.time_ns == b.time_ns) {
        ASSERT_LT(std::get<Flow>(a.event).id, std::get<Flow>(b.event).id);
      }
    }
  }
}

TEST(ReplayStoreTest, WhatFitsIsSortedInMemoryAndTiesKeepTheirOrder) {
  ReplayStore store(std::uint64_t{64} << 20);
  expect_sorted_and_stable(store, 20'000);
  EXPECT_EQ(store.spilled_bytes(), 0u);
}

TEST(ReplayStoreTest, WhatDoesNotFitIsSortedInRunsOnDiskAndTiesKeepTheirOrder) {
  ReplayStore store(1);  // the least it takes is 4,096 events at a time
  expect_sorted_and_stable(store, 50'001);
  EXPECT_EQ(store.spilled_bytes(), 50'001 * sizeof(KinetoMapped));
}

TEST(ReplayStoreTest, AStoreOfNothingGivesNothing) {
  ReplayStore store(1 << 20);
  ASSERT_FALSE(store.sort());
  EXPECT_TRUE(all_of(store).empty());
}

TEST(ReplayPaceTest, EventsAreDueAtTheirRecordedDistanceDividedByTheSpeed) {
  Pace pace(10);
  EXPECT_EQ(pace.due_ns(5'000'000, true), 0);
  EXPECT_EQ(pace.due_ns(6'000'000, true), 100'000);
  EXPECT_EQ(pace.due_ns(-7, false), 100'000);  // the trace's own events have no real times
  EXPECT_EQ(pace.due_ns(6'500'000, true), 150'000);
  EXPECT_EQ(pace.due_ns(1'000'000, true), 150'000);  // the next loop begins at once
  EXPECT_EQ(pace.due_ns(2'000'000, true), 250'000);
  EXPECT_EQ(pace.cut_ns(), 0);
}

TEST(ReplayPaceTest, FlatOutEverythingIsDueAtOnce) {
  Pace pace(0);
  EXPECT_TRUE(pace.flat_out());
  EXPECT_EQ(pace.due_ns(1, true), 0);
  EXPECT_EQ(pace.due_ns(std::numeric_limits<std::int64_t>::max(), true), 0);
}

TEST(ReplayPaceTest, AStrayTimeStampCostsTenSecondsAndNotCenturies) {
  Pace pace(1);
  EXPECT_EQ(pace.due_ns(std::numeric_limits<std::int64_t>::min(), true), 0);
  EXPECT_EQ(pace.due_ns(std::numeric_limits<std::int64_t>::max(), true), Pace::kQuietMax.count());
  EXPECT_GT(pace.cut_ns(), 1e19);
}

/// A trace in a file that is gone at the end of the test.
class ReplaySourceTest : public testing::Test {
 protected:
  ReplaySourceTest() {
    std::string made = (std::filesystem::temp_directory_path() / "ringmain-XXXXXX").string();
    if (::mkdtemp(made.data()) != nullptr) folder_ = made;
  }
  ~ReplaySourceTest() override { std::filesystem::remove_all(folder_); }

  /// `threads` with `events` slices each; ids of threads begin at `first_thread`.
  std::string trace(const std::string& name, int first_thread, int threads, int events) {
    std::ofstream out(folder_ / name);
    out << "{\"traceEvents\":[";
    for (int t = 0; t < threads; ++t) {
      for (int i = 0; i < events; ++i) {
        if (t + i > 0) out << ',';
        out << R"({"ph":"X","cat":"cpu_op","name":"n","pid":1,"dur":1,"tid":)" << first_thread + t
            << ",\"ts\":" << i << '}';
      }
    }
    out << "]}";
    return folder_ / name;
  }
  Recording load(const std::vector<std::string>& files, const ReplayOptions& options = {}) {
    LoadProgress progress;
    auto loaded = Recording::load(files, options, {}, progress);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
    return std::move(loaded).value();
  }

  std::filesystem::path folder_;
};

TEST_F(ReplaySourceTest, EveryThreadIsAPublisherAndNothingIsLostThroughSmallQueues) {
  const Recording recording = load({trace("a.json", 1, 9, 3000)});
  for (const Order order : {Order::thread, Order::recorded}) {
    Bus bus;
    std::map<std::uint32_t, std::uint64_t> heard;
    auto said = bus.channel<Slice>().subscribe([&heard](const Slice&, const Stamp& stamp) {
      EXPECT_EQ(stamp.time_from, TimeFrom::source);
      EXPECT_EQ(stamp.sequence, ++heard[stamp.publisher]);
    });
    ReplayOptions options;
    options.speed = 0;
    options.order = order;
    options.visitors = true;
    auto source = Source::attach(bus, recording, options);
    ASSERT_TRUE(source) << source.error().message;
    const Outcome outcome = source.value().wait();
    ASSERT_TRUE(bus.flush(std::chrono::seconds(60)));
    said.reset();
    EXPECT_EQ(outcome.accepted, 27'000u);
    EXPECT_EQ(outcome.refused + outcome.unheard, 0u);
    EXPECT_EQ(outcome.threads, order == Order::thread ? 9u : 1u);
    EXPECT_EQ(outcome.churn.came, outcome.churn.went);
    EXPECT_GT(outcome.churn.came, 0u);
    EXPECT_EQ(outcome.churn.called_late + outcome.churn.kept_captures, 0u);
    ASSERT_EQ(heard.size(), 9u);
    for (const auto& [publisher, events] : heard) EXPECT_EQ(events, 3000u);
    EXPECT_TRUE(bus.verify_accounting());
  }
}

TEST_F(ReplaySourceTest, TracesPlayedTogetherShareLanesFromTheSixtyFifthThreadOn) {
  const Recording recording =
      load({trace("a.json", 1, 40, 10), trace("b.json", 100, 40, 10), trace("c.json", 200, 1, 10)});
  EXPECT_EQ(recording.lanes.size(), Recording::kLanesMax);
  EXPECT_EQ(recording.store.size(), 810u);
  EXPECT_EQ(recording.crowded, 81u - 63u);
  std::uint64_t events = 0;
  for (const std::uint64_t on_lane : recording.events_on) events += on_lane;
  EXPECT_EQ(events, 810u);
}

TEST_F(ReplaySourceTest, StopEndsAReplayThatWouldTakeHours) {
  const Recording recording = load({trace("a.json", 1, 2, 2000)});
  for (const Order order : {Order::thread, Order::recorded}) {
    Bus bus;
    auto said = bus.channel<Slice>().subscribe([](const Slice&) {});
    ReplayOptions options;
    options.speed = 1e-6;
    options.order = order;
    auto source = Source::attach(bus, recording, options);
    ASSERT_TRUE(source) << source.error().message;
    source.value().stop();
    const Outcome outcome = source.value().wait();
    EXPECT_TRUE(outcome.interrupted);
    EXPECT_LT(outcome.accepted, 4000u);
  }
}

TEST_F(ReplaySourceTest, TooLittleMemoryIsRefusedWithASentence) {
  ReplayOptions options;
  options.memory_max = 1 << 20;
  LoadProgress progress;
  const auto loaded = Recording::load({trace("a.json", 1, 1, 1)}, options, {}, progress);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("32 MiB"), std::string::npos) << loaded.error().message;
}

}  // namespace
}  // namespace ringmain::replay
