// What did each thread publish last, also if the process is killed? The flight recorder.
//
//   auto flight = bus.record("collective.>,train.*");
//   if (!flight) std::fprintf(stderr, "%s\n", flight.error().message.c_str());
//   … kill -9 …
//   ringmain post-mortem
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "../engine/flight/recorded.hpp"

#include "result.hpp"

namespace ringmain {

class Bus;
namespace detail {
class RecordingCore;
}  // namespace detail

/// What events of one type say of operations that begin and end: events/recorded_operations.hpp has
/// the rules of collectives.
using engine::flight::OperationRule;

struct RecordOptions {
  /// "": RINGMAIN_FLIGHT_DIR, else the user's runtime folder, else /dev/shm.
  std::string folder{};
  std::size_t file_bytes = 8u << 20;   // 1 MiB to 4 GiB, all of it allocated at once
  std::size_t ring_bytes = 64u << 10;  // of each thread and pattern: a power of two, 4 KiB or more
  std::size_t files_kept = 16;  // of dead processes, in the folder, while there is room; ~0: all
  std::vector<OperationRule> operations{};
};

/// Keeps the record of a bus going. After reset() or destruction no publish is recorded, and the
/// file says that it was closed in order. Move-only. It may outlive the bus.
///
/// Threads: one at a time. reset() may be called inside callbacks, too: no code of a user runs
/// while a record is written.
class [[nodiscard]] Recording {
 public:
  Recording() noexcept = default;
  Recording(Recording&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  Recording& operator=(Recording&& other) noexcept {
    Recording(std::move(other)).swap(*this);
    return *this;
  }
  ~Recording() { reset(); }

  /// Waits for threads that are in the middle of a record. In a forked child it does nothing.
  /// Progress: blocking.
  void reset() noexcept;
  void swap(Recording& other) noexcept { std::swap(core_, other.core_); }

  /// The file; "": the record is in the process's memory only.
  [[nodiscard]] std::string path() const;
  /// Why it is in memory only: one sentence, or "".
  [[nodiscard]] std::string complaint() const;
  [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

 private:
  friend class Bus;
  explicit Recording(detail::RecordingCore* core) noexcept : core_(core) {}
  detail::RecordingCore* core_ = nullptr;  // one holder of it
};

}  // namespace ringmain
