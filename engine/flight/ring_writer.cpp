#include "engine/flight/ring_writer.hpp"

#include <algorithm>
#include <cstring>

#include "engine/system/assert.hpp"

namespace ringmain::engine::flight {
namespace {

void put(std::uint64_t* to, std::uint64_t word) noexcept {
  AtomicRef<std::uint64_t>(*to).store(word, std::memory_order_release);  // z.reserved
}

/// Two words of a payload.
struct Pair {
  std::uint64_t one, two;
};
/// The last ones of a payload that has `left` more bytes, fewer than two words; what is past its
/// end is zero.
[[gnu::noinline]] Pair last_pair(const std::byte* at, std::size_t left) noexcept {
  Pair pair{0, 0};
  if (left < sizeof pair.one) {
    std::memcpy(&pair.one, at, left);
  } else {
    std::memcpy(&pair.one, at, sizeof pair.one);
    std::memcpy(&pair.two, at + sizeof pair.one, left - sizeof pair.one);
  }
  return pair;
}

/// Adds a payload to its record's sum and to its cells. `place`: where the word goes that the
/// payload's byte `at` begins.
template <class Place>
[[nodiscard, gnu::always_inline]] inline Sum store_payload(Sum sum, const void* payload,
                                                           std::size_t bytes,
                                                           Place place) noexcept {
  const auto* from = static_cast<const std::byte*>(payload);
  const auto add = [&sum](std::uint64_t* to, Pair pair) noexcept {
    sum.add(pair.one, pair.two);
    put(to, pair.one);
    put(to + 1, pair.two);
  };
  std::size_t at = 0;
  for (; at + sizeof(Pair) <= bytes; at += sizeof(Pair)) {
    Pair pair;
    std::memcpy(&pair.one, from + at, sizeof pair.one);
    std::memcpy(&pair.two, from + at + sizeof pair.one, sizeof pair.two);
    add(place(at), pair);
  }
  if (at != bytes) add(place(at), last_pair(from + at, bytes - at));
  return sum;
}
/// The same round the end of the ring.
[[nodiscard, gnu::noinline]] Sum store_round(Sum sum, const void* payload, std::size_t bytes,
                                             std::uint64_t* row, std::uint64_t first,
                                             std::uint64_t mask) noexcept {
  return store_payload(sum, payload, bytes,
                       [=](std::size_t at) noexcept { return row + ((first + at / 8) & mask); });
}

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

[[gnu::always_inline]] inline void RingWriter::write(Own& own, const RecordHead& head,
                                                     const void* payload,
                                                     std::size_t bytes) noexcept {
  bytes = std::min<std::size_t>(bytes, kPayloadBytesMax);
  const std::uint32_t cells = cells_of(bytes);
  const std::uint64_t position = own.position;
  const std::uint64_t packed =
      Packed{static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(head.code),
             own.cells_before, head.source, static_cast<std::uint32_t>(own.number + 1)}
          .word();
  own.position = position + cells;
  own.number += 1;
  own.cells_before = cells;
  // Relaxed: each word below is stored by release, z.reserved.
  AtomicRef<std::uint64_t>(own.shown->reserved).store(position + cells, std::memory_order_relaxed);

  // No cell goes round the end of the ring, and few records do.
  const std::uint64_t first = position * kCellWords & own.word_mask;
  std::uint64_t* const cell = own.words + first;
  const auto time = static_cast<std::uint64_t>(head.time_ns);
  const std::uint64_t sequence = head.sequence, schema = head.schema;
  Sum sum(salt_);
  sum.add(generation_at(position), packed);
  sum.add(time, sequence);
  sum.add(schema, bytes);
  put(cell + kTime, time);
  put(cell + kSequence, sequence);
  put(cell + kSchema, schema);
  put(cell + kPacked, packed);
  if (first + cells * kCellWords <= own.word_mask + 1) [[likely]] {
    sum = store_payload(sum, payload, bytes, [cell](std::size_t at) noexcept {
      return cell + kRecordHeaderWords + at / 8;
    });
  } else {
    sum = store_round(sum, payload, bytes, own.words, first + kRecordHeaderWords, own.word_mask);
  }
  put(cell + kSum, sum.value());
  put(cell + kGeneration, generation_at(position));
  AtomicRef<std::uint64_t>(own.shown->committed)
      .store(own.position, std::memory_order_release);  // z.committed
  AtomicRef<std::uint64_t>(own.shown->written)
      .store(own.number, std::memory_order_release);  // z.committed
}

void RingWriter::record_signal_safe(const RecordHead& head, const void* payload,
                                    std::size_t bytes) noexcept {
  // A handler that comes before the store has ended by then, and leaves the depth as it was.
  const std::uint32_t depth = depth_.load(std::memory_order_relaxed);  // relaxed: our own
  depth_.store(depth + 1, std::memory_order_relaxed);                  // relaxed: our own
  order_for_handlers();
  if (depth == 0) [[likely]]
    write(tracks_[0], head, payload, bytes);
  else if (depth < kTracks)
    write_annex(head, payload, bytes);
  else
    miss();
  order_for_handlers();
  depth_.store(depth, std::memory_order_relaxed);  // relaxed: our own
}

[[gnu::noinline]] void RingWriter::write_annex(const RecordHead& head, const void* payload,
                                               std::size_t bytes) noexcept {
  write(tracks_[1], head, payload, bytes);
}

void RingWriter::miss() noexcept {
  // A read-modify-write, as a handler of this handler may count too. Relaxed: a mere count.
  AtomicRef<std::uint64_t>(line_->missed).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace ringmain::engine::flight
