// Which calls of a CUDA program become events? Ten kinds, one event type each.
//
// The kinds are those of PyTorch's GPU trace, for any program and with what that trace leaves out:
// device, stream, bytes, result, duration. One event per call for the kinds that happen at an
// instant; a source that sees both edges of a synchronization publishes begin and end.
// A field that a source cannot know reads 0, but for device and result (-1) and stream (kNoStream).
// HIP programs use the same types: `api` holds the name of the call.
#pragma once
#include <cstdint>
#include <string_view>

#include "../bus/event.hpp"

namespace ringmain::cuda {

/// Stream 0 is CUDA's default stream, so "not known" needs a value of its own.
constexpr std::uint64_t kNoStream = ~std::uint64_t{0};
constexpr std::int32_t kNoDevice = -1;
constexpr std::int32_t kNoResult = -1;  // 0 is success; cudaError_t and CUresult share their codes

enum class Phase : std::uint8_t {
  instant,  // published once per call
  begin,    // the call has been entered
  end,      // the call has returned; duration_ns is its length
  failed    // the call has returned with result != 0
};
/// Which interface was called, as far as the source can tell.
enum class Layer : std::uint8_t { unknown, runtime, driver, wrapper, torch };
enum class MemoryClass : std::uint8_t {
  unknown,
  device,
  stream_ordered,  // cudaMallocAsync and its pools
  array,
  host_pinned,
  host_registered,
  managed,
  ipc,       // opened from, or closed towards, another process: no new memory
  physical,  // cuMemCreate: backing without an address
  mapping    // cuMemMap: an address for it; summing both counts the bytes twice
};

/// The fields that say which call it was: the same in every kind, after the kind's own.
///
/// correlation: the vendor's id of the call. duration_ns: how long the call took.
/// generation: handles are recycled addresses; it rises each time the source sees one made anew.
/// thread: the calling thread, as its system numbers it. cbid: CUPTI's number of the call.
struct EventCreation {
  std::uint64_t event = 0;  // cudaEvent_t
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::uint32_t flags = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct EventDeletion {
  std::uint64_t event = 0;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct EventRecord {
  std::uint64_t event = 0;
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::uint32_t flags = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct EventWait {
  std::uint64_t event = 0;
  std::uint64_t stream = kNoStream;  // the one that waits
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::uint32_t flags = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct MemoryAllocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
  MemoryClass memory = MemoryClass::unknown;
};

struct MemoryDeallocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // 0 where the source does not keep sizes
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
  MemoryClass memory = MemoryClass::unknown;
};

struct StreamCreation {
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::uint32_t flags = 0;
  std::int32_t priority = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct DeviceSynchronization {
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct StreamSynchronization {
  std::uint64_t stream = kNoStream;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

struct EventSynchronization {
  std::uint64_t event = 0;
  std::uint64_t correlation = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t generation = 0;
  std::int32_t device = kNoDevice;
  std::int32_t result = kNoResult;
  std::uint32_t context = 0;
  std::int32_t thread = 0;
  Name api;
  std::uint16_t cbid = 0;
  Phase phase = Phase::instant;
  Layer layer = Layer::unknown;
};

namespace detail {
/// A kind's description: its own fields, then those that every call has.
template <class E, class... Own>
constexpr auto call(std::string_view channel, Own... own) {
  return event(channel, own..., field<&E::device>("device", Unit::device),
               field<&E::phase>("phase", "instant,begin,end,failed"), field<&E::result>("result"),
               field<&E::duration_ns>("duration_ns", Unit::ns), field<&E::api>("api"),
               field<&E::layer>("layer", "unknown,runtime,driver,wrapper,torch"),
               field<&E::correlation>("correlation", Unit::id), field<&E::cbid>("cbid", Unit::id),
               field<&E::context>("context", Unit::id), field<&E::thread>("thread", Unit::id));
}
constexpr std::string_view kMemoryClasses =
    "unknown,device,stream_ordered,array,host_pinned,host_registered,managed,ipc,physical,mapping";
}  // namespace detail

constexpr auto describe(EventOf<EventCreation>) {
  using E = EventCreation;
  return detail::call<E>("cuda.event_creation", field<&E::event>("event", Unit::address),
                         field<&E::generation>("generation", Unit::count),
                         field<&E::flags>("flags"));
}
constexpr auto describe(EventOf<EventDeletion>) {
  using E = EventDeletion;
  return detail::call<E>("cuda.event_deletion", field<&E::event>("event", Unit::address),
                         field<&E::generation>("generation", Unit::count));
}
constexpr auto describe(EventOf<EventRecord>) {
  using E = EventRecord;
  return detail::call<E>("cuda.event_record", field<&E::event>("event", Unit::address),
                         field<&E::stream>("stream", Unit::stream),
                         field<&E::generation>("generation", Unit::count),
                         field<&E::flags>("flags"));
}
constexpr auto describe(EventOf<EventWait>) {
  using E = EventWait;
  return detail::call<E>("cuda.event_wait", field<&E::event>("event", Unit::address),
                         field<&E::stream>("stream", Unit::stream),
                         field<&E::generation>("generation", Unit::count),
                         field<&E::flags>("flags"));
}
constexpr auto describe(EventOf<MemoryAllocation>) {
  using E = MemoryAllocation;
  return detail::call<E>(
      "cuda.memory_allocation", field<&E::address>("address", Unit::address),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::memory>("memory", detail::kMemoryClasses),
      field<&E::stream>("stream", Unit::stream), field<&E::generation>("generation", Unit::count));
}
constexpr auto describe(EventOf<MemoryDeallocation>) {
  using E = MemoryDeallocation;
  return detail::call<E>(
      "cuda.memory_deallocation", field<&E::address>("address", Unit::address),
      field<&E::bytes>("bytes", Unit::bytes), field<&E::memory>("memory", detail::kMemoryClasses),
      field<&E::stream>("stream", Unit::stream), field<&E::generation>("generation", Unit::count));
}
constexpr auto describe(EventOf<StreamCreation>) {
  using E = StreamCreation;
  return detail::call<E>("cuda.stream_creation", field<&E::stream>("stream", Unit::stream),
                         field<&E::generation>("generation", Unit::count),
                         field<&E::flags>("flags"), field<&E::priority>("priority"));
}
constexpr auto describe(EventOf<DeviceSynchronization>) {
  return detail::call<DeviceSynchronization>("cuda.device_synchronization");
}
constexpr auto describe(EventOf<StreamSynchronization>) {
  using E = StreamSynchronization;
  return detail::call<E>("cuda.stream_synchronization", field<&E::stream>("stream", Unit::stream),
                         field<&E::generation>("generation", Unit::count));
}
constexpr auto describe(EventOf<EventSynchronization>) {
  using E = EventSynchronization;
  return detail::call<E>("cuda.event_synchronization", field<&E::event>("event", Unit::address),
                         field<&E::generation>("generation", Unit::count));
}

// With the 16 bytes in front of every event they fit the 128-byte slot, most the 96-byte one.
static_assert(sizeof(EventRecord) <= 64 && sizeof(MemoryAllocation) <= 72);

}  // namespace ringmain::cuda
