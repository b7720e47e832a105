// How does a thread leave records of its publishes where they outlive it?
//
// Each ring has one writer, and its words in the file are only ever written by it: what it needs to
// know it keeps in its own memory. It says how far it will write before it writes (`reserved`) and
// how far it has written afterwards (`committed`), so a reader knows at any moment what is whole,
// what is overwritten, and that at most one record is under way. After SIGKILL the same holds, as
// the stores of a thread are done in the order in which others see them. A signal handler that
// comes in the middle of a record writes to the ring's annex, whose only writer it is then.
// Model: tests/model/flight_ring.pml. Edges z.reserved, z.committed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../system/atomics.hpp"
#include "../system/cache_line.hpp"
#include "layout.hpp"
#include "record.hpp"

namespace ringmain::engine::flight {

/// Threads: one at a time, and signal handlers of that thread.
class alignas(kLineBytes) RingWriter {
 public:
  RingWriter() = default;
  /// `line` and `cells`, the cells of the ring and then those of the annex, live as long as it.
  RingWriter(RingLine& line, std::byte* cells, std::uint64_t salt) noexcept;

  /// Leaves a record; the oldest ones make room. `bytes` of `payload`: kPayloadBytesMax at most.
  /// Async-signal-safe, also in the middle of another record of the same thread: then it goes to
  /// the annex, and in the middle of that one it is counted as missed, and not recorded. Progress:
  /// wait-free; no lock, no allocation, no system call.
  void record_signal_safe(const RecordHead& head, const void* payload, std::size_t bytes) noexcept;
  /// The same.
  void record(const RecordHead& head, const void* payload, std::size_t bytes) noexcept {
    record_signal_safe(head, payload, bytes);
  }

 private:
  enum : std::uint32_t { kTracks = 2 };
  struct Own {
    std::uint64_t* words = nullptr;  // the cells
    std::uint64_t word_mask = 0;
    Track* shown = nullptr;
    std::uint64_t position = 0;
    std::uint32_t cells_before = 0;
    std::uint64_t number = 0;
  };

  void write(Own& own, const RecordHead& head, const void* payload, std::size_t bytes) noexcept;
  void write_annex(const RecordHead& head, const void* payload, std::size_t bytes) noexcept;
  void miss() noexcept;

  Own tracks_[kTracks];
  std::uint64_t salt_ = 0;
  RingLine* line_ = nullptr;
  Atomic<std::uint32_t> depth_{0};
};

}  // namespace ringmain::engine::flight
