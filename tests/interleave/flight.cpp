// Scenario: what does a reader find in a ring of the flight recorder, at whatever step its writer
// is, and may the writer's signal handlers record too?
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/flight/ring_writer.hpp"
#include "engine/flight/track_reading.hpp"

#include "tests/interleave/rig.hpp"
#include "tests/interleave/scenarios.hpp"

namespace ringmain::interleave {
namespace {

namespace flight = engine::flight;

enum : std::uint64_t { kSalt = 91, kCells = 32 };

/// A ring, what was begun on it, and what was over.
struct Recorder {
  flight::RingLine line{};
  std::vector<std::byte> cells = std::vector<std::byte>(2 * kCells * flight::kCellBytes);
  flight::RingWriter writer{sized(line), cells.data(), kSalt};
  std::uint64_t next = 0, over = 0;
  static flight::RingLine& sized(flight::RingLine& line) {
    line.ring.cells = line.annex.cells = kCells;
    return line;
  }
  /// Some laps in few records: the cells hold three or four of them.
  void record() {
    const std::uint64_t which = ++next;
    std::uint64_t payload[64];
    const std::size_t words = 40 + which * 7 % 24;
    for (std::size_t i = 0; i < words; ++i) payload[i] = which * 1000 + i;
    writer.record({.time_ns = static_cast<std::int64_t>(which), .sequence = which, .schema = words},
                  payload, words * 8);
    ++over;
  }
  [[nodiscard]] flight::TrackRead read(const flight::Track& track, std::size_t from) const {
    std::vector<std::uint64_t> words;
    return flight::read_track(
        flight::copy_track(track, cells.data() + from * flight::kCellBytes, words), kSalt);
  }
  void check(const flight::TrackRead& read) const {
    expect(!read.impossible, "the words of a ring contradict each other");
    expect(read.unreadable == 0, "a record is unreadable that was not overwritten");
    expect(read.written == read.overwritten + read.records.size(), "a record is not accounted for");
    std::uint64_t last = read.overwritten;
    for (const flight::RecordRead& record : read.records) {
      expect(record.number == ++last, "a record is out of its order");
      expect(record.payload_bytes == record.head.schema * 8, "a record has another's length");
      for (std::size_t i = 0; i < record.head.schema; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, read.payloads.data() + record.payload_at + 8 * i, sizeof word);
        expect(word == record.head.sequence * 1000 + i, "a record is read that was not written");
      }
    }
  }
};

}  // namespace

/// A writer goes round, with handlers or without; another thread reads at any moment.
void flight_ring() {
  Recorder recorder;
  const bool handled = choose(2) == 0;
  Threads threads;
  threads.start([&recorder, handled] {
    const std::uint64_t times = 2 + choose(6);
    const auto all = [&recorder, times] {
      for (std::uint64_t i = 0; i < times; ++i) recorder.record();
    };
    if (handled) {
      const InHandlersReach reach([&recorder] { recorder.record(); });
      all();
    } else {
      all();
    }
  });
  for (std::uint64_t i = 1 + choose(2); i > 0; --i) {
    recorder.check(recorder.read(recorder.line.ring, 0));
  }
  threads.join();
  const flight::TrackRead ring = recorder.read(recorder.line.ring, 0);
  const flight::TrackRead annex = recorder.read(recorder.line.annex, kCells);
  recorder.check(ring);
  recorder.check(annex);
  expect(ring.written + annex.written + recorder.line.missed == recorder.next,
         "a record is neither written nor counted");
  expect(!ring.under_way && !annex.under_way, "a record is under way though nobody writes");
}

}  // namespace ringmain::interleave
