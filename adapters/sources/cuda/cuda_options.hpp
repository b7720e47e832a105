// What may be asked of the source `cuda`? As a struct in C++, and as the words after the colon of
// `cuda:driver,lane=32768` in `ringmain run` and Python.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../../../bus/result.hpp"

namespace ringmain::cuda {

struct Options {
  static constexpr std::uint32_t kLaneEventsMin = 64;
  static constexpr std::uint32_t kLaneEventsMax = 1 << 20;
  static constexpr std::uint32_t kHandlesMin = 1024;
  static constexpr std::uint32_t kHandlesMax = 1 << 24;

  /// Keeps CUPTI: Source::lend() is refused, so that torch.profiler may find its place taken.
  bool hold = false;
  /// Calls that are made within subscribers' callbacks are published, too.
  bool own = false;
  /// Only calls of the driver (cu…), among them those that the runtime (cuda…) makes.
  bool driver_only = false;
  /// A call waits until there is room for its event; otherwise that event is refused and counted.
  bool lossless = false;
  /// How many events of one kind a thread may have on their way. Rounded up as the bus does.
  std::uint32_t lane_events = 8192;
  /// How many live handles (events, streams, allocations) keep their generation and bytes; at most
  /// 32 bytes each. The source counts those for which there was no room.
  std::uint32_t handles = 65536;
  /// The file of libcupti, with its whole path; "": it is looked for.
  std::string cupti{};
  /// CUPTI is not asked: calls are heard that go through the wrapper (traced.hpp), and no others.
  /// Neither a driver nor CUPTI need be there.
  bool wrapped_only = false;

  /// Reads words divided by commas: hold, own, driver, wrapped, lossless, lane=EVENTS,
  /// handles=NUMBER, cupti=PATH; "" gives the defaults. An Error (`refused`) is one sentence.
  /// Whether the file of `cupti` is there is seen when the source attaches. Throws std::bad_alloc.
  /// Threads: any.
  [[nodiscard]] static Result<Options> read(std::string_view written);

  /// The first number that is outside of its limits, as an Error (`refused`): one sentence. Source
  /// asks for it when it attaches. Throws std::bad_alloc. Threads: any.
  [[nodiscard]] std::optional<Error> fault() const;
};

}  // namespace ringmain::cuda
