// Readers beside writers: whatever moment a ring is copied at, what is read is what was written,
// and what is missing was overwritten. Under ThreadSanitizer, too.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/flight/ring_reader.hpp"

#include "tests/engine/flight/flight_rig.hpp"
#include "tests/process/sanitized.hpp"

namespace ringmain::tests {
namespace {

using flight::TrackRead;

struct Writer {
  flight::RingWriter* ring = nullptr;
  std::atomic<std::uint64_t> begun{0}, done{0};
};

/// begins_at[n]: the cell at which record n begins; its end is begins_at[n + 1].
std::vector<std::uint64_t> positions(std::uint64_t writer, std::uint64_t last) {
  std::vector<std::uint64_t> begins_at{0, 0};
  for (std::uint64_t n = 1; n <= last; ++n)
    begins_at.push_back(begins_at.back() + flight::cells_of(Expected(writer, n).bytes));
  return begins_at;
}

/// As compare(), by the positions of all records and what was reserved after the copy.
std::string compare_living(std::uint64_t writer, const TrackRead& read,
                           const flight::TrackCopy& copy, std::uint64_t done, std::uint64_t begun,
                           const std::vector<std::uint64_t>& begins_at) {
  if (read.impossible || read.unreadable != 0) return "something is unreadable";
  if (read.written < done || read.written > begun) return "it is not of this time";
  if (read.written != read.overwritten + read.records.size())
    return "records are not accounted for";
  const std::uint64_t low = copy.reserved > copy.cells ? copy.reserved - copy.cells : 0;
  if (!read.records.empty() && begins_at[read.records.front().number] < low)
    return "one that was overwritten was read";
  if (read.overwritten > 0 && read.overwritten <= read.written &&
      begins_at[read.overwritten] >= low)
    return "one that is there was not read";
  for (std::size_t i = 0; i < read.records.size(); ++i) {
    const flight::RecordRead& record = read.records[i];
    if (record.number != read.overwritten + 1 + i) return "a record is out of its order";
    if (!Expected(writer, record.number).is(read, record)) return "a record was not written so";
  }
  return "";
}

TEST(FlightStressTest, WhateverMomentARingIsCopiedAtItHoldsWhatWasWritten) {
  enum : std::size_t { kWriters = 2 };
  const std::uint64_t last = is_sanitized() ? 20'000 : 200'000;
  flight::RingFileOptions options = small_rings("/dev/null");  // in memory
  const auto file = flight::RingFile::open(options);
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::vector<std::uint64_t>> begins_at;
  for (std::size_t w = 0; w < kWriters; ++w) {
    writers.push_back(std::make_unique<Writer>());
    writers.back()->ring = file->claim(1);
    begins_at.push_back(positions(w, last));
  }
  std::vector<std::thread> threads;
  for (std::size_t w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (std::uint64_t n = 1; n <= last; ++n) {
        const Expected one(w, n);
        writers[w]->begun = n;
        writers[w]->ring->record(one.head, one.payload.data(), one.bytes);
        writers[w]->done = n;
      }
    });
  }
  const auto* const header = reinterpret_cast<const flight::Header*>(file->memory());
  const auto* const lines =
      reinterpret_cast<const flight::RingLine*>(file->memory() + sizeof(flight::Header));
  std::vector<std::uint64_t> words;
  std::uint64_t read_records = 0;
  bool over = false;
  while (!over && !HasFailure()) {
    over = true;
    for (std::size_t w = 0; w < kWriters; ++w) {
      const std::uint64_t done = writers[w]->done;
      const flight::Track& track = lines[w].ring;
      const flight::TrackCopy copy = flight::copy_track(track, file->memory() + track.at, words);
      const std::uint64_t begun = writers[w]->begun;
      const TrackRead read = flight::read_track(copy, header->fixed.salt);
      ASSERT_EQ(compare_living(w, read, copy, done, begun, begins_at[w]), "");
      read_records += read.records.size();
      over = over && done == last;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(read_records, 0u);
}

TEST(FlightStressTest, RingsThatThreadsTakeAndLeaveKeepAllCounts) {
  enum : std::size_t { kThreads = 4 };
  const std::uint64_t rounds = is_sanitized() ? 500 : 5'000;
  const auto file = flight::RingFile::open(small_rings("/dev/null"));
  std::atomic<std::uint64_t> recorded{0}, refused{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        flight::RingWriter* const ring = file->claim(1);
        if (ring == nullptr) {
          ++refused;
          continue;
        }
        for (int n = 0; n < 3; ++n) ring->record({}, &i, sizeof i);
        recorded += 3;
        file->release(*ring);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::byte> bytes(file->memory(), file->memory() + file->bytes());
  const flight::FlightRead read = flight::parse_flight({}, bytes, {});
  std::uint64_t written = 0;
  for (const flight::RingRead& ring : read.rings) {
    written += ring.ring.written;
    EXPECT_EQ(ring.ring.unreadable, 0u);
    EXPECT_EQ(ring.ring.written, ring.ring.overwritten + ring.ring.records.size());
  }
  EXPECT_EQ(written, recorded);
  EXPECT_EQ(refused, read.counts.rings_refused);
  EXPECT_LE(read.rings.size(), file->rings() - file->rings() / 4 + kThreads);
}

TEST(FlightStressTest, OperationsThatOthersEndAreOpenOnceAndEndOnce) {
  const std::uint64_t last = is_sanitized() ? 10'000 : 200'000;
  const auto file = flight::RingFile::open(small_rings("/dev/null"));
  flight::OpenOperations& table = file->operations();
  std::atomic<std::uint64_t> opened{0}, ended{0}, left_out{0}, none{0};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> told[2] = {};
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 1; n <= last; ++n) {
        if (table.open({2 * n + t, 1, 2, 3, 4, 5, 6}))
          ++opened;
        else
          ++left_out;
        told[t] = n;
      }
    });
    threads.emplace_back([&, t] {
      for (std::uint64_t n = 1; n <= last; ++n) {
        while (told[t] < n) std::this_thread::yield();
        if (n % 1000 == 7) continue;  // hangs
        if (table.end(2 * n + t))
          ++ended;
        else
          ++none;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::byte> bytes(file->memory(), file->memory() + file->bytes());
  const flight::FlightRead read = flight::parse_flight({}, bytes, {});
  EXPECT_EQ(opened + left_out, 2 * last);
  EXPECT_EQ(read.operations.size(), opened - ended);
  EXPECT_EQ(read.operations_unreadable, 0u);
  EXPECT_EQ(read.counts.operations_left_out, left_out);
  EXPECT_LE(none, left_out);
}

}  // namespace
}  // namespace ringmain::tests
