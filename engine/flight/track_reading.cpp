#include "engine/flight/track_reading.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/system/atomics.hpp"

namespace ringmain::engine::flight {
namespace {

/// A record that is whole where it was looked for.
struct Found {
  RecordHead head;
  Packed packed;
  std::uint32_t cells = 0;
};

class Reading {
 public:
  Reading(const TrackCopy& copy, std::uint64_t salt) noexcept : copy_(copy), salt_(salt) {}

  [[nodiscard]] std::optional<Found> look(std::uint64_t position) {
    if (word(position, kGeneration) != generation_at(position)) return std::nullopt;
    const std::uint64_t packed_word = word(position, kPacked);
    const Packed packed = Packed::of(packed_word);
    if (packed.bytes > kPayloadBytesMax || packed.cells_before > kCellsPerRecordMax)
      return std::nullopt;
    Found found{{static_cast<std::int64_t>(word(position, kTime)), word(position, kSequence),
                 word(position, kSchema), static_cast<std::uint16_t>(packed.source),
                 static_cast<PublishCode>(packed.code)},
                packed,
                cells_of(packed.bytes)};
    if (found.cells > copy_.cells) return std::nullopt;
    copy_payload(position, packed.bytes);
    Sum sum(salt_);
    sum.add(generation_at(position), packed_word);
    sum.add(word(position, kTime), found.head.sequence);
    sum.add(found.head.schema, packed.bytes);
    for (std::size_t i = 0; i < packed.bytes; i += 16) {
      std::uint64_t pair[2];
      std::memcpy(pair, payload_ + i, sizeof pair);
      sum.add(pair[0], pair[1]);
    }
    if (sum.value() != word(position, kSum)) return std::nullopt;
    return found;
  }
  [[nodiscard]] const std::byte* payload() const noexcept { return payload_; }

 private:
  [[nodiscard]] std::uint64_t word(std::uint64_t position, std::size_t i) const noexcept {
    return copy_.words[(position * kCellWords + i) & (copy_.cells * kCellWords - 1)];
  }
  void copy_payload(std::uint64_t position, std::size_t bytes) noexcept {
    const std::size_t words = (bytes + 7) / 8;
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint64_t one = word(position, kRecordHeaderWords + i);
      std::memcpy(payload_ + 8 * i, &one, sizeof one);
    }
    // What fills the last pair of words is zero for the sum, whatever lies there.
    std::memset(payload_ + bytes, 0, sizeof payload_ - bytes);
  }

  const TrackCopy& copy_;
  std::uint64_t salt_;
  alignas(16) std::byte payload_[kPayloadBytesMax + 16] = {};
};

/// The whole number that ends in these 27 bits and is nearest to what the writer has said.
std::uint64_t whole_number(std::uint32_t number, std::uint64_t near) noexcept {
  constexpr std::uint64_t kModulus = std::uint64_t{1} << 27;
  std::uint64_t whole = (near & ~std::uint64_t{Packed::kNumberMask}) | number;
  if (whole > near && whole - near > kModulus / 2 && whole >= kModulus) whole -= kModulus;
  if (whole < near && near - whole > kModulus / 2) whole += kModulus;
  return whole;
}

void take(TrackRead& read, Reading& reading, const Found& found, std::uint64_t number) {
  const std::size_t at = read.payloads.size();
  read.payloads.insert(read.payloads.end(), reading.payload(),
                       reading.payload() + found.packed.bytes);
  read.records.push_back({number, found.head, found.packed.bytes, at});
}

}  // namespace

TrackRead read_track(const TrackCopy& copy, std::uint64_t salt) {
  TrackRead read;
  read.written = copy.written;
  // A writer that lives may have gone on for several laps since `committed` was read.
  const std::uint64_t low = copy.reserved > copy.cells ? copy.reserved - copy.cells : 0;
  if (copy.reserved < copy.committed || copy.committed < copy.written) {
    read.impossible = true;
    read.unreadable = copy.written;
    return read;
  }
  Reading reading(copy, salt);
  std::uint64_t last = 0;
  const auto take_at = [&](std::uint64_t position) -> std::uint32_t {
    const std::optional<Found> found = reading.look(position);
    if (!found) return 0;
    const std::uint64_t number = whole_number(found->packed.number, copy.written);
    if (number <= last) return 0;  // a damaged file: numbers only grow
    if (read.records.empty()) {
      read.overwritten = number - 1;
      // The one before it should be there, too, if it begins inside.
      if (number > 1 && position - found->packed.cells_before >= low) {
        --read.overwritten;
        ++read.unreadable;
      }
    } else {
      read.unreadable += number - last - 1;
    }
    last = number;
    take(read, reading, *found, number);
    return found->cells;
  };

  std::uint64_t at = low;
  while (at < copy.committed) at += std::max(take_at(at), 1u);
  // Perhaps its writer was stopped after the record and before the cursor.
  bool one_more = false;
  if (at == copy.committed && copy.reserved > at) one_more = take_at(at) != 0;
  if (read.records.empty()) {
    read.overwritten = copy.written;
  } else {
    // Nothing readable at the end, though the writer has said that it is there.
    if (last < copy.written) read.unreadable += copy.written - last;
    read.written = std::max(last, copy.written);
  }
  read.under_way = copy.reserved > copy.committed && !one_more;
  return read;
}

TrackCopy copy_track(const Track& track, const std::byte* cells,
                     std::vector<std::uint64_t>& words) {
  // A reader changes nothing; AtomicRef is for words that can be written.
  auto& shown = const_cast<Track&>(track);
  auto* from = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(cells));
  words.resize(track.cells * kCellWords);
  TrackCopy copy;
  copy.cells = track.cells;
  copy.written =
      AtomicRef<std::uint64_t>(shown.written).load(std::memory_order_acquire);  // z.committed
  copy.committed =
      AtomicRef<std::uint64_t>(shown.committed).load(std::memory_order_acquire);  // z.committed
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = AtomicRef<std::uint64_t>(from[i]).load(std::memory_order_acquire);  // z.reserved
  copy.reserved = AtomicRef<std::uint64_t>(shown.reserved)
                      .load(std::memory_order_relaxed);  // relaxed: z.reserved came before
  copy.words = words.data();
  return copy;
}

}  // namespace ringmain::engine::flight
