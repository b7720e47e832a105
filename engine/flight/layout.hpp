// What lies where in a flight recorder's file? Version 1, described in docs/flight-ring.md.
//
//   header        4 KiB: who, when, where the rest is; counts; pairs of clocks
//   rings         a line of 128 bytes for each
//   operations    64 bytes for each place of the table of open operations
//   text          names, schemas, channels, patterns, sources; only ever longer
//   cells         of the rings
//
// All numbers are little-endian or big-endian as the machine is: `byte_order` says which.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "../system/cache_line.hpp"
#include "record.hpp"

namespace ringmain::engine::flight {

enum : std::uint32_t { kFlightVersion = 1 };
constexpr std::array<char, 8> kMagic{'R', 'M', 'F', 'L', 'I', 'G', 'H', 'T'};
constexpr std::uint64_t kByteOrder = 0x0102030405060708;

/// One part of the file. Bytes from its begin.
struct Part {
  std::uint64_t at = 0, bytes = 0;
};

/// What does not change after the file is made. Texts end with a zero.
struct FixedHeader {
  std::array<char, 8> magic;  // written last
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint64_t byte_order;
  std::uint64_t file_bytes;
  std::uint64_t salt;  // of all sums in the file
  std::array<std::uint8_t, 16> boot_id;
  std::uint64_t process_start;  // clock ticks since the machine's start, as in /proc/PID/stat
  std::uint64_t pid_namespace;  // its number in /proc/PID/ns/pid; 0: not known
  std::uint32_t pid, uid;
  std::uint32_t rank, local_rank, world_size, local_world_size, attempt;
  std::uint32_t ring_cells, annex_cells;  // of each ring
  std::uint32_t cell_bytes, record_header_bytes, payload_bytes_max;
  Part rings, operations, text, cells;
  std::array<char, 128> host, job;
  std::array<char, 32> launcher, program;
  std::uint64_t sum;  // of what stands above it
};

/// What changes. Each word is changed in one step.
struct Counts {
  std::uint64_t text_end;       // so many bytes of text are whole
  std::uint64_t text_left_out;  // entries that found no room
  std::uint64_t rings_refused;  // requests for a ring that found none
  std::uint64_t unrecorded;     // events that had no ring
  std::uint64_t operations_left_out;
  std::uint64_t operations_reach;  // how far from its first place an operation was put
  std::uint64_t clock_pairs;       // taken so far
  std::uint64_t closed;            // 1: the recorder was closed in order
};

/// The two clocks at one moment.
struct ClockPair {
  std::int64_t monotonic_ns, realtime_ns;
  std::uint64_t number;  // from 1 on
  std::uint64_t sum;
};
enum : std::size_t { kClockPairs = 64 };  // the first one taken, and the last of the others

struct Header {
  FixedHeader fixed;
  alignas(1024) Counts counts;
  alignas(1024) std::array<ClockPair, kClockPairs> clocks;
};
static_assert(sizeof(FixedHeader) <= 1024 && offsetof(Header, counts) == 1024 &&
              offsetof(Header, clocks) == 2048 && sizeof(Header) == 4096);

/// The writer's words of one row of cells.
struct Track {
  std::uint64_t at;         // its cells: bytes from the begin of the file
  std::uint64_t cells;      // a power of two
  std::uint64_t reserved;   // in cells since it was made: raised before a record is written
  std::uint64_t committed;  // the same: raised after it
  std::uint64_t written;    // records: raised after that
};
/// One ring. The annex holds what signal handlers recorded in the middle of a record.
struct alignas(kLineBytes) RingLine {
  Track ring, annex;
  std::uint64_t pattern;  // of the text
  std::uint64_t missed;   // records of handlers that interrupted handlers
  std::uint64_t state;    // RingState
};
static_assert(sizeof(RingLine) == 128);
enum class RingState : std::uint64_t { free, live, ended };

/// One place of the table of open operations.
struct OperationPlace {
  std::uint64_t state;  // 0: free; 2 * (id + 1), and 1 more while it is written
  std::uint64_t sum;
  std::uint64_t id;
  std::int64_t time_ns;
  std::uint64_t source_and_kind;  // source in the lower half
  std::uint64_t group, sequence, bytes;
};
static_assert(sizeof(OperationPlace) == 64);

/// Before each entry of the text; entries begin at multiples of 16 bytes.
struct TextHead {
  std::uint32_t kind;  // TextKind
  std::uint32_t bytes;
  std::uint64_t sum;  // of kind, bytes, id and the bytes
  std::uint64_t id;
};
enum class TextKind : std::uint32_t {
  name = 1,  // id: the Name's; its text
  schema,    // id: the hash; the description
  channel,   // id: from 1 on; 8 bytes of schema hash, the channel's name
  pattern,   // id: from 1 on; the pattern
  source     // id: from 1 on; SourceHead, the thread's name
};
struct SourceHead {
  std::uint32_t channel, publisher, thread, reserved;
};
inline std::uint64_t sum_of_text(std::uint64_t salt, const TextHead& head,
                                 const std::byte* bytes) noexcept {
  const std::uint64_t words[] = {std::uint64_t{head.kind} << 32 | head.bytes, head.id,
                                 sum_of(salt, bytes, head.bytes)};
  return sum_of(salt, words, sizeof words);
}
constexpr std::uint64_t text_step(std::uint64_t bytes) noexcept {
  return (sizeof(TextHead) + bytes + 15) / 16 * 16;
}

}  // namespace ringmain::engine::flight
