// Which of the ten kinds is a recorded API call? By its name, or by CUPTI's number of it.
#pragma once
#include <cstdint>
#include <string_view>

#include "events/cuda.hpp"

#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

enum class CallKind : std::uint8_t {
  none,  // a call, but of no kind that has a channel
  event_creation,
  event_deletion,
  event_record,
  event_wait,
  memory_allocation,
  memory_deallocation,
  stream_creation,
  device_synchronization,
  stream_synchronization,
  event_synchronization
};

struct KinetoCall {
  CallKind kind = CallKind::none;
  cuda::MemoryClass memory = cuda::MemoryClass::unknown;
};

/// What a record's category says of it.
enum class KinetoSide : std::uint8_t {
  other,
  runtime_call,  // a call of the CUDA or HIP runtime
  driver_call,
  gpu  // work on a device, or what a profiler drew over it
};
[[nodiscard]] KinetoSide side_of(std::string_view category) noexcept;
[[nodiscard]] inline bool is_call(KinetoSide side) noexcept {
  return side == KinetoSide::runtime_call || side == KinetoSide::driver_call;
}

/// True for the categories of GPU kernels.
[[nodiscard]] bool is_kernel(std::string_view category) noexcept;

/// The kind of the call in `record`, whose side is a call.
[[nodiscard]] KinetoCall call_of(const KinetoRecord& record, KinetoSide side) noexcept;

/// True for the calls that put kernels on a stream: they share their correlation.
[[nodiscard]] bool is_launch(std::string_view api) noexcept;

}  // namespace ringmain::replay
