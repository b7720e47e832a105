#include "engine/flight/ring_writer.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/flight/flight_rig.hpp"

namespace ringmain::tests {
namespace {

using flight::kCellBytes;

/// One ring and its annex, in memory.
class RingWriterTest : public ::testing::Test {
 protected:
  explicit RingWriterTest(std::uint64_t cells = 64) {
    line_.ring.cells = cells;
    line_.annex.cells = 32;
    cells_.resize((cells + 32) * kCellBytes);
    writer_ = std::make_unique<flight::RingWriter>(line_, cells_.data(), kSalt);
  }
  void record(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t n = from; n <= to; ++n) {
      const Expected one(kWriter, n);
      writer_->record(one.head, one.payload.data(), one.bytes);
    }
  }
  [[nodiscard]] flight::TrackRead read() {
    return flight::read_track(flight::copy_track(line_.ring, cells_.data(), words_), kSalt);
  }
  [[nodiscard]] flight::TrackRead read_annex() {
    return flight::read_track(
        flight::copy_track(line_.annex, cells_.data() + line_.ring.cells * kCellBytes, words_),
        kSalt);
  }

  enum : std::uint64_t { kSalt = 77, kWriter = 5 };
  flight::RingLine line_{};
  std::vector<std::byte> cells_;
  std::unique_ptr<flight::RingWriter> writer_;
  std::vector<std::uint64_t> words_;
};

TEST_F(RingWriterTest, ARecordTakesItsPayloadAnd48BytesRoundedTo64) {
  static_assert(flight::cells_of(0) == 1 && flight::cells_of(16) == 1 && flight::cells_of(17) == 2);
  static_assert(flight::cells_of(80) == 2 && flight::cells_of(81) == 3);
  std::uint64_t cells = 0;
  for (const std::size_t bytes : {0u, 1u, 16u, 17u, 80u, 81u, 1024u}) {
    const Expected one(kWriter, 1);
    writer_->record(one.head, one.payload.data(), bytes);
    cells += (bytes + 48 + 63) / 64;
    EXPECT_EQ(line_.ring.committed, cells);
    EXPECT_EQ(line_.ring.reserved, cells);
  }
  EXPECT_EQ(line_.ring.written, 7u);
}

TEST_F(RingWriterTest, NothingWasRecordedInAFreshRing) {
  const flight::TrackRead fresh = read();
  EXPECT_TRUE(fresh.records.empty());
  EXPECT_EQ(fresh.written + fresh.overwritten + fresh.unreadable, 0u);
  EXPECT_FALSE(fresh.under_way || fresh.impossible);
}

TEST_F(RingWriterTest, AfterEachRecordTheLastOnesAreReadAndTheOthersCounted) {
  for (std::uint64_t n = 1; n <= 3000; ++n) {
    record(n, n);
    ASSERT_EQ(compare(kWriter, read(), line_.ring.cells, n, n), "") << n;
  }
}

TEST_F(RingWriterTest, EveryPublishCodeAndAnEmptyPayloadComeBack) {
  for (std::uint32_t code = 0; code <= static_cast<std::uint32_t>(PublishCode::forked); ++code)
    writer_->record({.time_ns = -1, .code = static_cast<PublishCode>(code)}, nullptr, 0);
  const flight::TrackRead all = read();
  ASSERT_EQ(all.records.size(), 9u);
  for (std::uint32_t code = 0; code < 9; ++code) {
    EXPECT_EQ(all.records[code].head.code, static_cast<PublishCode>(code));
    EXPECT_EQ(all.records[code].head.time_ns, -1);
    EXPECT_EQ(all.records[code].payload_bytes, 0u);
  }
}

/// As a writer leaves it that is killed between two stores: all that came before is there, nothing
/// that comes after.
TEST_F(RingWriterTest, WhereverItsWriterStoppedTheRestIsReadAndTheIdentityHolds) {
  record(1, 1);
  for (std::uint64_t n = 1; n <= 120; ++n) {
    const flight::RingLine line = line_;
    const std::vector<std::byte> cells = cells_;
    const std::uint32_t next = flight::cells_of(Expected(kWriter, n + 1).bytes);
    record(n + 1, n + 1);
    const flight::RingLine line_after = line_;
    const std::vector<std::byte> after = cells_;
    const std::uint64_t first = line.ring.committed * kCellBytes;
    const std::uint64_t mask = line.ring.cells * kCellBytes - 1;
    // In the writer's order: times and payload, then the sum, then the generation.
    std::vector<std::size_t> order;
    for (std::size_t i = 2; i < next * flight::kCellWords; ++i) order.push_back(i);
    order.push_back(flight::kSum);
    order.push_back(flight::kGeneration);
    line_ = line;
    cells_ = cells;
    ASSERT_EQ(compare(kWriter, read(), line_.ring.cells, n, n), "");
    line_.ring.reserved = line_after.ring.reserved;
    for (const std::size_t word : order) {
      const flight::TrackRead torn = read();
      ASSERT_TRUE(torn.under_way);
      ASSERT_EQ(compare(kWriter, torn, line_.ring.cells, n, n + 1), "") << n << " word " << word;
      const std::size_t at = (first + word * 8) & mask;
      std::memcpy(cells_.data() + at, after.data() + at, 8);
    }
    flight::TrackRead whole = read();
    ASSERT_FALSE(whole.under_way);
    ASSERT_EQ(whole.written, n + 1);
    ASSERT_EQ(compare(kWriter, whole, line_.ring.cells, n, n + 1), "");
    line_.ring.committed = line_after.ring.committed;
    ASSERT_EQ(compare(kWriter, read(), line_.ring.cells, n + 1, n + 1), "");
    line_ = line_after;
    cells_ = after;
  }
}

/// A check of the check: what is damaged is not read as valid, and is missed.
TEST_F(RingWriterTest, ADamagedWordIsNoticedWhereverItIs) {
  record(1, 200);
  const flight::TrackRead before = read();
  ASSERT_GT(before.records.size(), 2u);
  const std::uint64_t mask = line_.ring.cells * kCellBytes - 1;
  std::uint64_t position = line_.ring.committed;
  for (std::size_t i = before.records.size(); i-- > 0;) {
    const std::uint32_t bytes = before.records[i].payload_bytes;
    position -= flight::cells_of(bytes);
    for (std::size_t byte = 0; byte < flight::kRecordHeaderBytes + bytes; ++byte) {
      std::byte& damaged = cells_[(position * kCellBytes + byte) & mask];
      damaged ^= std::byte{0x10};
      const flight::TrackRead after = read();
      ASSERT_EQ(after.records.size(), before.records.size() - 1) << i << " byte " << byte;
      ASSERT_EQ(after.unreadable, 1u) << i << " byte " << byte;
      ASSERT_EQ(after.written, after.overwritten + after.records.size() + after.unreadable);
      damaged ^= std::byte{0x10};
    }
  }
}

TEST_F(RingWriterTest, ARecordOfAnotherLapOrAnotherFileIsNotTakenForOne) {
  record(1, 10);
  flight::TrackCopy copy = flight::copy_track(line_.ring, cells_.data(), words_);
  EXPECT_EQ(flight::read_track(copy, kSalt).records.size(), read().records.size());
  EXPECT_TRUE(flight::read_track(copy, kSalt + 2).records.empty());
  copy.committed += copy.cells;
  copy.reserved += copy.cells;
  EXPECT_TRUE(flight::read_track(copy, kSalt).records.empty());
}

TEST_F(RingWriterTest, ARecordThatRepeatsANumberIsNotCountedTwice) {
  record(1, 2);
  flight::TrackCopy copy = flight::copy_track(line_.ring, cells_.data(), words_);
  const std::uint64_t second = flight::cells_of(Expected(kWriter, 1).bytes);
  std::uint64_t* const words = words_.data() + second * kCellBytes / 8;
  flight::Packed packed = flight::Packed::of(words[flight::kPacked]);
  packed.number = 1;
  words[flight::kPacked] = packed.word();
  flight::Sum sum(kSalt);
  sum.add(words[flight::kGeneration], words[flight::kPacked]);
  sum.add(words[flight::kTime], words[flight::kSequence]);
  sum.add(words[flight::kSchema], packed.bytes);
  const Expected one(kWriter, 2);
  std::array<std::byte, 1040> padded{};
  std::memcpy(padded.data(), one.payload.data(), one.bytes);
  for (std::size_t i = 0; i < one.bytes; i += 16) {
    std::uint64_t pair[2];
    std::memcpy(pair, padded.data() + i, sizeof pair);
    sum.add(pair[0], pair[1]);
  }
  words[flight::kSum] = sum.value();
  copy.words = words_.data();
  const flight::TrackRead read = flight::read_track(copy, kSalt);
  EXPECT_EQ(read.records.size(), 1u);
  EXPECT_EQ(read.unreadable, 1u);
  EXPECT_EQ(read.written, read.overwritten + read.records.size() + read.unreadable);
}

flight::RingWriter* interrupted = nullptr;
const flight::RingLine* interrupted_line = nullptr;
std::atomic<std::uint64_t> handled{0}, in_annex{0};
void on_signal(int) {
  const std::uint64_t before = interrupted_line->annex.written;
  const Expected one(9, handled + 1);
  interrupted->record_signal_safe(one.head, one.payload.data(), one.bytes);
  ++handled;
  in_annex += interrupted_line->annex.written - before;
}

TEST_F(RingWriterTest, AHandlerInTheMiddleOfARecordRecordsInTheAnnex) {
  // Its own signal comes again and again, at whatever step the machine brings it.
  interrupted = writer_.get();
  interrupted_line = &line_;
  handled = in_annex = 0;
  struct sigaction old {};
  struct sigaction ours {};
  ours.sa_handler = on_signal;
  ASSERT_EQ(::sigaction(SIGRTMIN, &ours, &old), 0);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGRTMIN;
  event._sigev_un._tid = ::gettid();
  timer_t timer{};
  ASSERT_EQ(::timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec often{{0, 20'000}, {0, 20'000}};
  ASSERT_EQ(::timer_settime(timer, 0, &often, nullptr), 0);
  std::uint64_t n = 0;
  while (in_annex < 20) {
    const Expected one(kWriter, ++n);
    for (int i = 0; i < 100; ++i) writer_->record(one.head, one.payload.data(), one.bytes);
  }
  ::timer_delete(timer);
  ASSERT_EQ(::sigaction(SIGRTMIN, &old, nullptr), 0);
  const flight::TrackRead main = read();
  const flight::TrackRead annex = read_annex();
  EXPECT_EQ(main.written + annex.written, 100 * n + handled);
  EXPECT_EQ(main.unreadable + annex.unreadable + line_.missed, 0u);
  EXPECT_EQ(main.written, main.overwritten + main.records.size());
  EXPECT_EQ(annex.written, annex.overwritten + annex.records.size());
  ASSERT_FALSE(annex.records.empty());
  for (const flight::RecordRead& record : annex.records)
    EXPECT_TRUE(Expected(9, record.head.sequence).is(annex, record));
}

}  // namespace
}  // namespace ringmain::tests
