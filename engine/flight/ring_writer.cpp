#include "engine/flight/ring_writer.hpp"

#include <algorithm>
#include <cstring>

#include "engine/system/assert.hpp"

namespace ringmain::engine::flight {
namespace {

/// The words of a payload, two at a time; what is past its end reads as zero.
struct PayloadWords {
  const std::byte* at;
  std::size_t left;
  std::uint64_t next() noexcept {
    std::uint64_t word = 0;
    const std::size_t some = std::min(left, sizeof word);
    if (some == sizeof word)
      std::memcpy(&word, at, sizeof word);
    else if (some != 0)
      std::memcpy(&word, at, some);
    at += some;
    left -= some;
    return word;
  }
};

}  // namespace

RingWriter::RingWriter(RingLine& line, std::byte* cells, std::uint64_t salt) noexcept
    : salt_(salt), line_(&line) {
  for (std::uint32_t i = 0; i < kTracks; ++i) {
    Track& track = i == 0 ? line.ring : line.annex;
    RINGMAIN_ASSERT((track.cells & (track.cells - 1)) == 0 &&
                    track.cells >= 2 * kCellsPerRecordMax - 2);
    tracks_[i].words = reinterpret_cast<std::uint64_t*>(cells);
    tracks_[i].word_mask = track.cells * kCellWords - 1;
    tracks_[i].shown = &track;
    cells += track.cells * kCellBytes;
  }
}

void RingWriter::write(Own& own, const RecordHead& head, const void* payload,
                       std::size_t bytes) noexcept {
  bytes = std::min<std::size_t>(bytes, kPayloadBytesMax);
  const std::uint32_t cells = cells_of(bytes);
  const std::uint64_t position = own.position;
  const std::uint64_t number = own.number + 1;
  // Relaxed: each word below is stored by release, z.reserved.
  AtomicRef<std::uint64_t>(own.shown->reserved).store(position + cells, std::memory_order_relaxed);

  const std::uint64_t first = position * kCellWords;
  const auto store = [&own, first](std::size_t i, std::uint64_t word) noexcept {
    AtomicRef<std::uint64_t>(own.words[(first + i) & own.word_mask])
        .store(word, std::memory_order_release);  // z.reserved
  };
  const std::uint64_t packed =
      Packed{static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(head.code),
             own.cells_before, head.source, static_cast<std::uint32_t>(number)}
          .word();
  const auto time = static_cast<std::uint64_t>(head.time_ns);
  Sum sum(salt_);
  sum.add(generation_at(position), packed);
  sum.add(time, head.sequence);
  sum.add(head.schema, bytes);
  store(kTime, time);
  store(kSequence, head.sequence);
  store(kSchema, head.schema);
  store(kPacked, packed);
  PayloadWords words{static_cast<const std::byte*>(payload), bytes};
  for (std::size_t i = kRecordHeaderWords; i < cells * kCellWords && words.left != 0; i += 2) {
    const std::uint64_t one = words.next();
    const std::uint64_t two = words.next();
    sum.add(one, two);
    store(i, one);
    store(i + 1, two);
  }
  store(kSum, sum.value());
  store(kGeneration, generation_at(position));
  AtomicRef<std::uint64_t>(own.shown->committed)
      .store(position + cells, std::memory_order_release);  // z.committed
  AtomicRef<std::uint64_t>(own.shown->written)
      .store(number, std::memory_order_release);  // z.committed
  own.position = position + cells;
  own.number = number;
  own.cells_before = cells;
}

void RingWriter::miss() noexcept {
  // A read-modify-write, as a handler of this handler may count too. Relaxed: a mere count.
  AtomicRef<std::uint64_t>(line_->missed).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ringmain::engine::flight
