// What does a call of CUDA's say before it is made? Only one that goes through the wrapper
// (adapters/sources/cuda/traced.hpp) can be asked about, and refused.
//
// A refused call is not made. Its kind's channel says `failed`, with the error that the program
// got, and `cuda.call_refused` says why, with the same correlation.
#pragma once
#include <cstdint>
#include <string_view>

#include "terms/cuda_call_kinds.hpp"

namespace ringmain::cuda {

/// `cuda.call_begin`: published in the calling thread before the call is made. The veto of an
/// inline subscriber refuses the call; others hear of those that are made.
struct CallBegin {
  std::uint64_t handle = 0;  // the event, stream, array or address that is used or given back
  std::uint64_t bytes = 0;   // of memory_allocation: what is asked for
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;  // as in the events that the call's own kind publishes
  std::uint32_t flags = 0;
  std::int32_t priority = 0;
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  CallKind kind = CallKind::none;
  MemoryClass memory = MemoryClass::unknown;
};

/// `cuda.call_refused`: the call was not made.
struct CallRefused {
  std::uint64_t handle = 0;
  std::uint64_t bytes = 0;
  std::uint64_t correlation = 0;
  std::int32_t result = kNoResult;  // what the program got in CUDA's place
  std::int32_t device = kNoDevice;
  std::int32_t thread = 0;
  Name api;
  Name reason;  // as the subscriber gave it
  std::uint16_t cbid = 0;
  CallKind kind = CallKind::none;
  MemoryClass memory = MemoryClass::unknown;
};

namespace detail {
constexpr std::string_view kCallKinds =
    "none,event_creation,event_deletion,event_record,event_wait,memory_allocation,"
    "memory_deallocation,stream_creation,device_synchronization,stream_synchronization,"
    "event_synchronization,stream_deletion,context,capture";
}  // namespace detail

constexpr auto describe(EventOf<CallBegin>) {
  using E = CallBegin;
  return event("cuda.call_begin", field<&E::kind>("kind", detail::kCallKinds),
               field<&E::api>("api"), field<&E::handle>("handle", Unit::address),
               field<&E::bytes>("bytes", Unit::bytes),
               field<&E::memory>("memory", detail::kMemoryClasses),
               field<&E::stream>("stream", Unit::stream), field<&E::flags>("flags"),
               field<&E::priority>("priority"), field<&E::device>("device", Unit::device),
               field<&E::correlation>("correlation", Unit::id), field<&E::cbid>("cbid", Unit::id),
               field<&E::thread>("thread", Unit::id));
}
constexpr auto describe(EventOf<CallRefused>) {
  using E = CallRefused;
  return event("cuda.call_refused", field<&E::kind>("kind", detail::kCallKinds),
               field<&E::api>("api"), field<&E::reason>("reason"), field<&E::result>("result"),
               field<&E::handle>("handle", Unit::address), field<&E::bytes>("bytes", Unit::bytes),
               field<&E::memory>("memory", detail::kMemoryClasses),
               field<&E::device>("device", Unit::device),
               field<&E::correlation>("correlation", Unit::id), field<&E::cbid>("cbid", Unit::id),
               field<&E::thread>("thread", Unit::id));
}
static_assert(sizeof(CallBegin) <= 64 && sizeof(CallRefused) <= 64);

}  // namespace ringmain::cuda
