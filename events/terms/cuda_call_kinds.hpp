// What may a call of CUDA's be? One of the kinds that have a channel, or none of them.
#pragma once
#include <cstdint>

#include "../cuda.hpp"
#include "../cuda_lifetimes.hpp"

namespace ringmain::cuda {

/// The events of cuda.hpp in their order, then those of cuda_lifetimes.hpp.
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
  event_synchronization,
  stream_deletion,
  context,
  capture
};

struct Call {
  CallKind kind = CallKind::none;
  MemoryClass memory = MemoryClass::unknown;   // of memory_allocation and memory_deallocation
  ContextChange change = ContextChange::made;  // of context
  CaptureStep step = CaptureStep::begin;       // of capture

  constexpr bool operator==(const Call&) const noexcept = default;
};

}  // namespace ringmain::cuda
