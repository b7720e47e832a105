// Recordings that begin and end while threads publish, come and go: every event is read,
// overwritten or counted, and nothing is written to a file that is gone. Under ThreadSanitizer,
// too.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bus/bus.hpp"

#include "tests/bus/events.hpp"
#include "tests/bus/recording_reader.hpp"
#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

enum : std::size_t { kPublishers = 3 };

TEST(RecordingStressTest, RecordingsBeginAndEndWhileThreadsPublish) {
  const int rounds = is_sanitized() ? 20 : 60;
  const Folder folder;
  Bus bus(with_workers(1));
  auto& ticks = bus.channel<Tick>();
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kPublishers; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 1; !over; ++n) (void)ticks.publish({n});
    });
  }
  threads.emplace_back([&] {  // threads that come and go
    while (!over) std::thread([&ticks] { (void)ticks.publish({7}); }).join();
  });
  RecordOptions options = in_folder(folder.path());
  options.files_kept = 2;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    auto made = bus.record("test.*", options);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    Recording recording = std::move(made).value();
    const std::string path = recording.path();
    auto more = round % 2 == 0 ? ticks.mailbox() : Mailbox<Tick>();
    while (engine::flight::read_flight(path).rings.empty()) std::this_thread::yield();
    recording.reset();
    const auto read = engine::flight::read_flight(path);
    ASSERT_EQ(read.refusal + read.damage, "");
    EXPECT_EQ(read.counts.closed, 1u);
    for (const auto& ring : read.rings) {
      EXPECT_EQ(ring.ring.written, ring.ring.overwritten + ring.ring.records.size());
      EXPECT_EQ(ring.ring.unreadable, 0u);
      EXPECT_FALSE(ring.ring.under_way) << "reset() has returned";
    }
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(bus.flush(kLong));
  const auto balanced = bus.verify_accounting();
  EXPECT_TRUE(balanced.has_value()) << balanced.error().message;
}

TEST(RecordingStressTest, WhatThreadsPublishIsWrittenOnce) {
  const std::uint64_t events = is_sanitized() ? 2'000 : 50'000;
  const Folder folder;
  Bus bus(with_workers(1));
  auto made = bus.record("test.*", in_folder(folder.path()));
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const Recording recording = std::move(made).value();
  auto& ticks = bus.channel<Tick>();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kPublishers; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 1; n <= events; ++n) (void)ticks.publish({n});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto read = engine::flight::read_flight(recording.path());
  std::uint64_t written = read.counts.unrecorded;
  for (const auto& ring : read.rings) written += ring.ring.written + ring.annex.written;
  EXPECT_EQ(written, kPublishers * events);
  EXPECT_EQ(read.counts.unrecorded, 0u);
}

}  // namespace
}  // namespace ringmain::tests
