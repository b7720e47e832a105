// What does a record of the flight recorder look like in its ring?
//
// A ring is a row of cells of 64 bytes. A record takes as many as its payload and 48 bytes of
// header need, one after the other, round the end of the ring. Its position counts cells since the
// ring was made, so it is another one on each lap: that is the record's generation. The sum goes
// over all of it, the position, and a number drawn for the file, so that no half of a record and no
// record of another lap is taken for one. Model: tests/model/flight_ring.pml. On the disk:
// docs/flight-ring.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../publish/pushed.hpp"
#include "../publish/slot.hpp"

namespace ringmain::engine::flight {

enum : std::size_t {
  kCellBytes = 64,
  kCellWords = kCellBytes / 8,
  kRecordHeaderBytes = 48,
  kRecordHeaderWords = kRecordHeaderBytes / 8
};
/// Of a record with so many bytes of payload, kPayloadBytesMax at most.
constexpr std::uint32_t cells_of(std::size_t payload_bytes) noexcept {
  return static_cast<std::uint32_t>((payload_bytes + kRecordHeaderBytes + kCellBytes - 1) /
                                    kCellBytes);
}
constexpr std::uint32_t kCellsPerRecordMax = cells_of(kPayloadBytesMax);
static_assert(cells_of(16) == 1 && cells_of(17) == 2 && kCellsPerRecordMax == 17);

/// What is recorded of one publish, beside the event.
struct RecordHead {
  std::int64_t time_ns = 0;    // CLOCK_MONOTONIC
  std::uint64_t sequence = 0;  // the publisher's
  std::uint64_t schema = 0;    // the event type's hash
  std::uint16_t source = 0;    // RingFile::add_source()
  PublishCode code = PublishCode::accepted;
};

/// The last word of a record's header.
struct Packed {
  std::uint32_t bytes = 0;         // of payload: 11 bits
  std::uint32_t code = 0;          // 5 bits
  std::uint32_t cells_before = 0;  // of the record before it in the ring: 5 bits
  std::uint32_t source = 0;        // 16 bits
  std::uint32_t number = 0;        // the record's, from 1 on, modulo 2^27
  enum : std::uint32_t { kNumberMask = (1u << 27) - 1 };

  [[nodiscard]] constexpr std::uint64_t word() const noexcept {
    return std::uint64_t{bytes} | std::uint64_t{code} << 11 | std::uint64_t{cells_before} << 16 |
           std::uint64_t{source} << 21 | std::uint64_t{number & kNumberMask} << 37;
  }
  [[nodiscard]] static constexpr Packed of(std::uint64_t word) noexcept {
    return {static_cast<std::uint32_t>(word & 0x7ff), static_cast<std::uint32_t>(word >> 11 & 0x1f),
            static_cast<std::uint32_t>(word >> 16 & 0x1f),
            static_cast<std::uint32_t>(word >> 21 & 0xffff),
            static_cast<std::uint32_t>(word >> 37)};
  }
};

/// The words of a record's header, in their order in the first cell.
enum RecordWord : std::size_t { kGeneration, kSum, kTime, kSequence, kSchema, kPacked };
static_assert(kPacked + 1 == kRecordHeaderWords);
constexpr std::uint64_t generation_at(std::uint64_t position) noexcept {
  return position + 1;  // 0: nothing was written here yet
}

/// A checksum of 64 bits over words, two at a step: finds what is torn or mixed, not what somebody
/// forged. The folded product of 64 by 64 bits mixes all of both words.
class Sum {
 public:
  explicit Sum(std::uint64_t salt) noexcept : state_(salt ^ kFirst) {}
  void add(std::uint64_t a, std::uint64_t b) noexcept {
    state_ = fold(a ^ state_, b ^ kSecond) + (a ^ b << 1);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return fold(state_ ^ kSecond, kFirst); }

 private:
  // Odd, drawn at random, with as many bits set as not.
  static constexpr std::uint64_t kFirst = 0x9d3c5a71e86b42f5, kSecond = 0x4be197d2c0735a9d;
  static std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    auto low = static_cast<std::uint64_t>(product),
         high = static_cast<std::uint64_t>(product >> 64);
    // Keeps both in registers: GCC makes a way through the stack of it, for which each step of a
    // sum waits.
    asm("" : "+r"(low), "+r"(high));
    return low ^ high;
  }
  std::uint64_t state_;
};

/// Of bytes, the last word filled up with zeros.
inline std::uint64_t sum_of(std::uint64_t salt, const void* bytes, std::size_t size) noexcept {
  Sum sum(salt);
  const auto* at = static_cast<const std::byte*>(bytes);
  for (std::size_t i = 0; i < size; i += 16) {
    std::uint64_t pair[2] = {};
    std::memcpy(pair, at + i, size - i < sizeof pair ? size - i : sizeof pair);
    sum.add(pair[0], pair[1]);
  }
  sum.add(size, 0);
  return sum.value();
}

}  // namespace ringmain::engine::flight
