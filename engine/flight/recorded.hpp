// As what is a channel recorded? What a publishing thread must know for a record of it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::engine::flight {

class Recording;
struct OpenOperation;

/// Of one bus at once; each has a place from 0 on.
enum : std::size_t { kRecordingsMax = 4 };

/// What events of one type say of operations, for the table of open ones.
struct OperationRule {
  std::uint64_t schema = 0;  // the type's hash
  bool ends = false;         // else they are issued
  /// Fills all but time and source. Async-signal-safe.
  void (*read)(const void* event, OpenOperation& operation) noexcept = nullptr;

  [[nodiscard]] bool opens() const noexcept { return read != nullptr && !ends; }
};

/// A channel in one recording. Does not change while publishers can find it.
struct Recorded {
  Recording* in = nullptr;
  std::uint32_t pattern = 0;  // the one that its records go by: its place in the recording
  std::uint32_t channel = 0;  // its number in the file
  std::uint16_t source = 0;   // of publishers that have no source of their own
  std::uint64_t schema = 0;
  OperationRule operation;
};

}  // namespace ringmain::engine::flight
