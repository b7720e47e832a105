// Which operations were issued and have not ended? A table that no number of later events pushes
// anything out of.
//
// Operations are found by their id, which is given once. An id has a first place; where that is
// taken the next free one is used, and `reach` remembers how far that was, so that an end looks no
// farther. Opening and ending are one compare-and-swap each; nobody waits. In a file, a place that
// was being written when its process died is seen by its state. Edge z.opened.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../system/atomics.hpp"
#include "layout.hpp"

namespace ringmain::engine::flight {

struct OpenOperation {
  std::uint64_t id = 0;      // below 2^62; not used twice
  std::int64_t time_ns = 0;  // when it was issued, CLOCK_MONOTONIC
  std::uint32_t source = 0;  // RingFile::add_source()
  std::uint32_t kind = 0;    // what it is, in the words of who tells it
  std::uint64_t group = 0, sequence = 0, bytes = 0;
};

/// Threads: any, and signal handlers. Progress: lock-free; no allocation, no system call.
class OpenOperations {
 public:
  OpenOperations() = default;
  OpenOperations(OperationPlace* places, std::size_t count, Counts& counts,
                 std::uint64_t salt) noexcept
      : places_(places), count_(count), counts_(&counts), salt_(salt) {}

  /// False, and counted as left out: all places are taken.
  bool open(const OpenOperation& operation) noexcept;
  /// False: it is not in the table. After its open() has returned.
  bool end(std::uint64_t id) noexcept;

 private:
  OperationPlace* places_ = nullptr;
  std::size_t count_ = 0;
  Counts* counts_ = nullptr;
  std::uint64_t salt_ = 0;
};

/// True: `operation` is what the place holds, as it was copied word by word from `state` on and
/// `state_after` was read last.
[[nodiscard]] bool read_operation(const OperationPlace& copy, std::uint64_t state_after,
                                  std::uint64_t salt, OpenOperation& operation) noexcept;
[[nodiscard]] std::uint64_t sum_of_operation(std::uint64_t salt,
                                             const OpenOperation& operation) noexcept;

}  // namespace ringmain::engine::flight
