// What did a process leave in its flight recorder's file, whether it lives, is dead, or was killed
// in the middle of a record?
//
// Each ring is copied where its writer may be at work: its words, its cells, and its words again
// (track_reading.hpp). The file is read as if an enemy had written it: each place and length is
// looked at before it is used, and the work is bounded by the size of the file. What is in memory
// at once is one ring and what was recorded, however large the file is.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout.hpp"
#include "open_operations.hpp"
#include "process_life.hpp"
#include "track_reading.hpp"

namespace ringmain::engine::flight {

struct TextRead {
  TextKind kind{};
  std::uint64_t id = 0;
  std::string text;          // of a channel and a source without what stands before the name
  std::uint64_t schema = 0;  // of a channel
  SourceHead source{};       // of a source
};

struct RingRead {
  std::uint64_t pattern = 0;
  RingState state = RingState::free;
  std::uint64_t missed = 0;  // records of signal handlers that interrupted handlers
  TrackRead ring, annex;
};

/// All that is in a file.
struct FlightRead {
  FixedHeader header{};
  Counts counts{};
  std::vector<ClockPair> clocks;  // the oldest first
  std::vector<TextRead> text;     // in the order in which it was added
  std::vector<RingRead> rings;    // those that were ever used
  std::vector<OpenOperation> operations;
  std::uint64_t operations_unreadable = 0;  // being opened as it was read, or damaged
  std::uint64_t text_unreadable = 0;        // bytes
  Living living = Living::unknown;
  /// "": as it was written. Else a sentence on what is wrong with the file; what could be read is
  /// here nevertheless.
  std::string damage;
  /// Not empty: nothing could be read, and one sentence says why.
  std::string refusal;

  /// The first of that kind and id; null: none.
  [[nodiscard]] const TextRead* find(TextKind kind, std::uint64_t id) const noexcept;
};

/// As much as is recorded in the largest file.
constexpr std::uint64_t kAllThatIsRecorded = std::uint64_t{1} << 32;
/// Of files that nobody has named by themselves: what is made of it takes some times as much.
constexpr std::uint64_t kRecordedInAFolder = std::uint64_t{256} << 20;

/// A file of 4 GiB at most; one that holds more than `bytes_max` of records, text and operations is
/// refused. Throws std::bad_alloc.
[[nodiscard]] FlightRead read_flight(const std::string& path,
                                     std::uint64_t bytes_max = kAllThatIsRecorded);
/// The same of bytes, which `before` holds as they were a moment earlier as far as `before` goes:
/// to the end of its rings' lines. Its process is not looked for. Throws std::bad_alloc.
[[nodiscard]] FlightRead parse_flight(const std::vector<std::byte>& before,
                                      const std::vector<std::byte>& bytes,
                                      const std::vector<std::byte>& after);

}  // namespace ringmain::engine::flight
