// What may be asked of the source `nccl`? As a struct in C++, and as the words after the colon of
// `nccl:kernel=never,stall=30` in `ringmain run` and Python.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../../../bus/result.hpp"

namespace ringmain::nccl {

/// When is NCCL asked for the events of kernels' NCCL channels? They cost small collectives some
/// per cent of their time, and NCCL memory in /dev/shm, where too little of it ends the process.
enum class KernelChannels : std::uint8_t {
  when_heard,  // and only where /dev/shm has room
  always,      // whenever somebody listens, however full /dev/shm is
  never
};

/// What is NCCL asked for, so that the process's door can say what hangs (docs/door.md)? Beyond
/// that it is told what is asked for anyway.
enum class DoorAsks : std::uint8_t {
  operations,  // and their proxies
  steps,       // these and the proxies' steps
  all,         // these and the kernels' NCCL channels, as `kernel_channels` allows
  never        // nothing: what somebody else listens to is all that a door knows
};

struct Options {
  static constexpr std::uint32_t kLaneEventsMin = 64;
  static constexpr std::uint32_t kLaneEventsMax = 1 << 20;
  static constexpr std::uint32_t kStallSecondsMin = 1;
  static constexpr std::uint32_t kStallSecondsMax = 86400;

  KernelChannels kernel_channels = KernelChannels::when_heard;
  /// Also while somebody listens to them, or to what hangs.
  bool proxy_steps = true;
  /// How many events of one kind a thread may have on their way. Rounded up as the bus does.
  std::uint32_t lane_events = 8192;
  /// After how many seconds in which nothing of an operation was heard it is said to be stalled.
  std::uint32_t stall_seconds = 60;
  /// While the process has a door.
  DoorAsks door = DoorAsks::operations;

  /// Reads words divided by commas: kernel=always, kernel=never, steps=never, door=never,
  /// door=steps, door=all, lane=EVENTS, stall=SECONDS; "" gives the defaults. An Error (`refused`)
  /// is one sentence. Throws std::bad_alloc. Threads: any.
  [[nodiscard]] static Result<Options> read(std::string_view written);
  /// The first number that is outside of its limits, as an Error (`refused`). Throws
  /// std::bad_alloc. Threads: any.
  [[nodiscard]] std::optional<Error> fault() const;
};

}  // namespace ringmain::nccl
