// Which of the ten kinds is a call of CUDA's? By its name, or by CUPTI's number of it.
//
// One row serves a call in the runtime, the driver and HIP, in each of its versions and in both
// kinds of default stream. Numbers are those of CUPTI 13.0; a number never gets another meaning.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

#include "../cuda.hpp"

namespace ringmain::cuda {

/// The events of cuda.hpp, in their order.
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

struct Call {
  CallKind kind = CallKind::none;
  MemoryClass memory = MemoryClass::unknown;

  constexpr bool operator==(const Call&) const noexcept = default;
};

namespace detail {

/// A call's name without its interface (cuda, cu, hip) and version.
struct Stem {
  std::string_view name;
  Call call;
};

constexpr Call allocation(MemoryClass memory) noexcept {
  return {CallKind::memory_allocation, memory};
}
constexpr Call release(MemoryClass memory) noexcept {
  return {CallKind::memory_deallocation, memory};
}

// Sorted by name: call_of_stem() searches it.
inline constexpr Stem kStems[] = {
    {"Array3DCreate", allocation(MemoryClass::array)},
    {"ArrayCreate", allocation(MemoryClass::array)},
    {"ArrayDestroy", release(MemoryClass::array)},
    {"CtxRecordEvent", {CallKind::event_record}},
    {"CtxSynchronize", {CallKind::device_synchronization}},
    {"CtxWaitEvent", {CallKind::event_wait}},
    {"DeviceSynchronize", {CallKind::device_synchronization}},
    {"EventCreate", {CallKind::event_creation}},
    {"EventCreateFromEGLSync", {CallKind::event_creation}},
    {"EventCreateFromNVNSync", {CallKind::event_creation}},
    {"EventCreateWithFlags", {CallKind::event_creation}},
    {"EventDestroy", {CallKind::event_deletion}},
    {"EventRecord", {CallKind::event_record}},
    {"EventRecordWithFlags", {CallKind::event_record}},
    {"EventSynchronize", {CallKind::event_synchronization}},
    {"ExtMallocWithFlags", allocation(MemoryClass::device)},
    {"ExtStreamCreateWithCUMask", {CallKind::stream_creation}},
    {"Free", release(MemoryClass::device)},
    {"FreeArray", release(MemoryClass::array)},
    {"FreeAsync", release(MemoryClass::stream_ordered)},
    {"FreeHost", release(MemoryClass::host_pinned)},
    {"FreeMipmappedArray", release(MemoryClass::array)},
    {"GreenCtxRecordEvent", {CallKind::event_record}},
    {"GreenCtxStreamCreate", {CallKind::stream_creation}},
    {"GreenCtxWaitEvent", {CallKind::event_wait}},
    {"HostAlloc", allocation(MemoryClass::host_pinned)},
    {"HostFree", release(MemoryClass::host_pinned)},
    {"HostMalloc", allocation(MemoryClass::host_pinned)},
    {"HostRegister", allocation(MemoryClass::host_registered)},
    {"HostUnregister", release(MemoryClass::host_registered)},
    {"IpcCloseMemHandle", release(MemoryClass::ipc)},
    {"IpcOpenEventHandle", {CallKind::event_creation}},
    {"IpcOpenMemHandle", allocation(MemoryClass::ipc)},
    {"Malloc", allocation(MemoryClass::device)},
    {"Malloc3D", allocation(MemoryClass::device)},
    {"Malloc3DArray", allocation(MemoryClass::array)},
    {"MallocArray", allocation(MemoryClass::array)},
    {"MallocAsync", allocation(MemoryClass::stream_ordered)},
    {"MallocFromPoolAsync", allocation(MemoryClass::stream_ordered)},
    {"MallocHost", allocation(MemoryClass::host_pinned)},
    {"MallocManaged", allocation(MemoryClass::managed)},
    {"MallocMipmappedArray", allocation(MemoryClass::array)},
    {"MallocPitch", allocation(MemoryClass::device)},
    {"MemAlloc", allocation(MemoryClass::device)},
    {"MemAllocAsync", allocation(MemoryClass::stream_ordered)},
    {"MemAllocFromPoolAsync", allocation(MemoryClass::stream_ordered)},
    {"MemAllocHost", allocation(MemoryClass::host_pinned)},
    {"MemAllocManaged", allocation(MemoryClass::managed)},
    {"MemAllocPitch", allocation(MemoryClass::device)},
    {"MemCreate", allocation(MemoryClass::physical)},
    {"MemFree", release(MemoryClass::device)},
    {"MemFreeAsync", release(MemoryClass::stream_ordered)},
    {"MemFreeHost", release(MemoryClass::host_pinned)},
    {"MemHostAlloc", allocation(MemoryClass::host_pinned)},
    {"MemHostRegister", allocation(MemoryClass::host_registered)},
    {"MemHostUnregister", release(MemoryClass::host_registered)},
    {"MemMap", allocation(MemoryClass::mapping)},
    {"MemRelease", release(MemoryClass::physical)},
    {"MemUnmap", release(MemoryClass::mapping)},
    {"MipmappedArrayCreate", allocation(MemoryClass::array)},
    {"MipmappedArrayDestroy", release(MemoryClass::array)},
    {"StreamCreate", {CallKind::stream_creation}},
    {"StreamCreateForCaptureToCig", {CallKind::stream_creation}},
    {"StreamCreateWithFlags", {CallKind::stream_creation}},
    {"StreamCreateWithPriority", {CallKind::stream_creation}},
    {"StreamSynchronize", {CallKind::stream_synchronization}},
    {"StreamWaitEvent", {CallKind::event_wait}},
    {"ThreadSynchronize", {CallKind::device_synchronization}},
};

/// CUPTI's number of a call: for a source that knows the number and not the name.
struct Number {
  std::int64_t cbid;
  std::string_view stem;
};
// Sorted by number: call_of_number() searches them.
inline constexpr Number kRuntimeNumbers[] = {
    {20, "Malloc"},
    {21, "MallocPitch"},
    {22, "Free"},
    {23, "MallocArray"},
    {24, "FreeArray"},
    {25, "MallocHost"},
    {26, "FreeHost"},
    {27, "HostAlloc"},
    {126, "ThreadSynchronize"},
    {129, "StreamCreate"},
    {131, "StreamSynchronize"},
    {133, "EventCreate"},
    {134, "EventCreateWithFlags"},
    {135, "EventRecord"},
    {136, "EventDestroy"},
    {137, "EventSynchronize"},
    {140, "Malloc3D"},
    {141, "Malloc3DArray"},
    {147, "StreamWaitEvent"},
    {152, "HostRegister"},
    {153, "HostUnregister"},
    {165, "DeviceSynchronize"},
    {177, "IpcOpenEventHandle"},
    {179, "IpcOpenMemHandle"},
    {180, "IpcCloseMemHandle"},
    {192, "MallocMipmappedArray"},
    {194, "FreeMipmappedArray"},
    {198, "StreamCreateWithFlags"},
    {202, "StreamCreateWithPriority"},
    {206, "MallocManaged"},
    {239, "StreamSynchronize"},
    {242, "EventRecord"},
    {247, "StreamWaitEvent"},
    {271, "EventCreateFromEGLSync"},
    {370, "EventRecordWithFlags"},
    {371, "EventRecordWithFlags"},
    {373, "MallocAsync"},
    {374, "MallocAsync"},
    {375, "FreeAsync"},
    {376, "FreeAsync"},
    {391, "MallocFromPoolAsync"},
    {392, "MallocFromPoolAsync"},
};
inline constexpr Number kDriverNumbers[] = {
    {17, "CtxSynchronize"},
    {29, "MemAlloc"},
    {31, "MemAllocPitch"},
    {33, "MemFree"},
    {37, "MemAllocHost"},
    {38, "MemFreeHost"},
    {39, "MemHostAlloc"},
    {87, "ArrayCreate"},
    {89, "ArrayDestroy"},
    {90, "Array3DCreate"},
    {118, "EventCreate"},
    {119, "EventRecord"},
    {121, "EventSynchronize"},
    {122, "EventDestroy"},
    {124, "StreamCreate"},
    {126, "StreamSynchronize"},
    {243, "MemAlloc"},
    {244, "MemAllocPitch"},
    {245, "MemFree"},
    {271, "MemHostAlloc"},
    {272, "ArrayCreate"},
    {274, "Array3DCreate"},
    {294, "MemAllocHost"},
    {295, "StreamWaitEvent"},
    {301, "MemHostRegister"},
    {302, "MemHostUnregister"},
    {325, "EventDestroy"},
    {329, "IpcOpenMemHandle"},
    {330, "IpcCloseMemHandle"},
    {335, "IpcOpenEventHandle"},
    {347, "MipmappedArrayCreate"},
    {349, "MipmappedArrayDestroy"},
    {367, "StreamCreateWithPriority"},
    {371, "MemAllocManaged"},
    {379, "MemHostRegister"},
    {436, "StreamWaitEvent"},
    {440, "StreamSynchronize"},
    {441, "EventRecord"},
    {469, "EventCreateFromNVNSync"},
    {479, "EventCreateFromEGLSync"},
    {549, "MemCreate"},
    {550, "MemRelease"},
    {551, "MemMap"},
    {552, "MemUnmap"},
    {567, "IpcOpenMemHandle"},
    {587, "EventRecordWithFlags"},
    {588, "EventRecordWithFlags"},
    {598, "MemAllocAsync"},
    {599, "MemAllocAsync"},
    {600, "MemFreeAsync"},
    {601, "MemFreeAsync"},
    {611, "MemAllocFromPoolAsync"},
    {612, "MemAllocFromPoolAsync"},
    {749, "GreenCtxRecordEvent"},
    {750, "GreenCtxWaitEvent"},
    {755, "CtxRecordEvent"},
    {756, "CtxWaitEvent"},
    {758, "GreenCtxStreamCreate"},
    {783, "StreamCreateForCaptureToCig"},
    {800, "CtxSynchronize"},
};

constexpr Call call_of_stem(std::string_view name) noexcept {
  const auto* const found = std::lower_bound(
      std::begin(kStems), std::end(kStems), name,
      [](const Stem& stem, std::string_view wanted) { return stem.name < wanted; });
  return found != std::end(kStems) && found->name == name ? found->call : Call{};
}

template <std::size_t N>
constexpr Call call_of_number(const Number (&numbers)[N], std::int64_t cbid) noexcept {
  const auto* const found = std::lower_bound(
      std::begin(numbers), std::end(numbers), cbid,
      [](const Number& number, std::int64_t wanted) { return number.cbid < wanted; });
  return found != std::end(numbers) && found->cbid == cbid ? call_of_stem(found->stem) : Call{};
}

/// In rising order, each once.
template <class Row, std::size_t N, class Key>
constexpr bool rises(const Row (&rows)[N], Key Row::*key) noexcept {
  return std::adjacent_find(std::begin(rows), std::end(rows), [key](const Row& a, const Row& b) {
           return !(a.*key < b.*key);
         }) == std::end(rows);
}
/// Each leads to a call that has a kind.
template <std::size_t N>
constexpr bool all_known(const Number (&numbers)[N]) noexcept {
  return std::all_of(std::begin(numbers), std::end(numbers), [](const Number& number) {
    return call_of_stem(number.stem).kind != CallKind::none;
  });
}
static_assert(rises(kStems, &Stem::name));
static_assert(rises(kRuntimeNumbers, &Number::cbid) && all_known(kRuntimeNumbers));
static_assert(rises(kDriverNumbers, &Number::cbid) && all_known(kDriverNumbers));

/// "v2", "v3020"; "ptsz", "ptds" and "spt" say which default stream is meant.
constexpr bool is_version(std::string_view suffix) noexcept {
  if (suffix == "ptsz" || suffix == "ptds" || suffix == "spt") return true;
  return suffix.size() > 1 && suffix.front() == 'v' &&
         std::all_of(suffix.begin() + 1, suffix.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "EventRecord" of cuEventRecord_ptsz, cudaEventRecord_v3020, hipEventRecord; "" of other names.
constexpr std::string_view stem_of(std::string_view api) noexcept {
  for (const std::string_view prefix : {"cuda", "hip", "cu"}) {  // the longer one first
    if (!api.starts_with(prefix)) continue;
    api.remove_prefix(prefix.size());
    for (auto cut = api.rfind('_'); cut != std::string_view::npos; cut = api.rfind('_')) {
      if (!is_version(api.substr(cut + 1))) break;
      api = api.substr(0, cut);
    }
    return api;
  }
  return {};
}

}  // namespace detail

/// The call with that name, as its interface or CUPTI writes it: cudaMalloc, cuMemAlloc_v2,
/// hipMalloc. Nothing where the name is of no such interface; other calls of these have no kind.
constexpr std::optional<Call> call_named(std::string_view api) noexcept {
  const std::string_view stem = detail::stem_of(api);
  if (stem.empty()) return std::nullopt;
  return detail::call_of_stem(stem);
}

/// CUPTI's CUPTI_RUNTIME_TRACE_CBID_…: the runtime's call of that number, or one without a kind.
constexpr Call runtime_call(std::int64_t cbid) noexcept {
  return detail::call_of_number(detail::kRuntimeNumbers, cbid);
}
/// CUPTI's CUPTI_DRIVER_TRACE_CBID_…: the driver's call of that number, or one without a kind.
constexpr Call driver_call(std::int64_t cbid) noexcept {
  return detail::call_of_number(detail::kDriverNumbers, cbid);
}

}  // namespace ringmain::cuda
