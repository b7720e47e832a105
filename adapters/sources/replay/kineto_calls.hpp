// Which side of a program does a record show, and which call, if it is one?
#pragma once
#include <cstdint>
#include <string_view>

#include "events/terms/cuda_calls.hpp"

#include "adapters/sources/replay/kineto_record.hpp"

namespace ringmain::replay {

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

/// The call in `record`, whose side is a call: by its name; by its number where the recorder knew
/// that and not yet the name.
[[nodiscard]] cuda::Call call_of(const KinetoRecord& record, KinetoSide side) noexcept;

/// True for the calls that put kernels on a stream: they share their correlation.
[[nodiscard]] bool is_launch(std::string_view api) noexcept;

}  // namespace ringmain::replay
