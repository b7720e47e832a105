#include "adapters/sources/replay/kineto_calls.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace ringmain::replay {
namespace {

using cuda::MemoryClass;

/// A call's name without its interface (cuda, cu, hip) and version: one row serves all of them.
struct Stem {
  std::string_view name;
  KinetoCall call;
};

constexpr KinetoCall allocation(MemoryClass memory) {
  return {CallKind::memory_allocation, memory};
}
constexpr KinetoCall release(MemoryClass memory) {
  return {CallKind::memory_deallocation, memory};
}

// Sorted by name: find_stem() searches it. The calls are those that CUPTI 13.0 numbers, plus HIP's.
constexpr Stem kStems[] = {
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

constexpr bool by_name(const Stem& a, const Stem& b) {
  return a.name < b.name;
}
static_assert(std::is_sorted(std::begin(kStems), std::end(kStems), by_name));

/// CUPTI's number of a call, for traces whose recorder knew the number and not yet the name.
struct Number {
  std::int64_t cbid;
  std::string_view stem;
};
constexpr Number kRuntimeNumbers[] = {
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
constexpr Number kDriverNumbers[] = {
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

KinetoCall find_stem(std::string_view name) {
  const auto* const found =
      std::lower_bound(std::begin(kStems), std::end(kStems), Stem{name, {}}, by_name);
  return found != std::end(kStems) && found->name == name ? found->call : KinetoCall{};
}

template <std::size_t N>
KinetoCall find_number(const Number (&numbers)[N], std::int64_t cbid) {
  const auto* const found =
      std::find_if(std::begin(numbers), std::end(numbers),
                   [cbid](const Number& number) { return number.cbid == cbid; });
  return found == std::end(numbers) ? KinetoCall{} : find_stem(found->stem);
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "EventRecord" of cuEventRecord_ptsz, cudaEventRecord_v3020, hipEventRecord; "" of other names.
std::string_view stem_of(std::string_view api) {
  for (const std::string_view interface : {"cuda", "hip", "cu"}) {  // the longer one first
    if (!api.starts_with(interface)) continue;
    api.remove_prefix(interface.size());
    for (auto cut = api.rfind('_'); cut != std::string_view::npos; cut = api.rfind('_')) {
      const std::string_view suffix = api.substr(cut + 1);
      const bool version =
          suffix.size() > 1 && suffix.front() == 'v' && is_digits(suffix.substr(1));
      if (!version && suffix != "ptsz" && suffix != "ptds" && suffix != "spt") break;
      api = api.substr(0, cut);
    }
    return api;
  }
  return {};
}

bool equal_in_any_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

KinetoSide side_of(std::string_view category) noexcept {
  struct Row {
    std::string_view category;
    KinetoSide side;
  };
  static constexpr Row kRows[] = {
      // the most frequent first
      {"cuda_runtime", KinetoSide::runtime_call},
      {"kernel", KinetoSide::gpu},
      {"gpu_memcpy", KinetoSide::gpu},
      {"gpu_memset", KinetoSide::gpu},
      {"cuda_driver", KinetoSide::driver_call},
      {"gpu_user_annotation", KinetoSide::gpu},
      {"cuda_sync", KinetoSide::gpu},
      {"cuda_event", KinetoSide::gpu},
      {"cuda_profiler_range", KinetoSide::gpu},
      {"concurrent_kernel", KinetoSide::gpu},
      {"hip_runtime", KinetoSide::runtime_call},
      {"hip_driver", KinetoSide::driver_call},
      {"runtime", KinetoSide::runtime_call},  // this and the next two: Kineto of 2021
      {"memcpy", KinetoSide::gpu},
      {"memset", KinetoSide::gpu},
  };
  if (category.size() < 6 || category == "cpu_op") return KinetoSide::other;
  for (const Row& row : kRows) {
    if (equal_in_any_case(category, row.category)) return row.side;
  }
  return KinetoSide::other;
}

bool is_kernel(std::string_view category) noexcept {
  return equal_in_any_case(category, "kernel") || equal_in_any_case(category, "concurrent_kernel");
}

KinetoCall call_of(const KinetoRecord& record, KinetoSide side) noexcept {
  const std::string_view stem = stem_of(record.name);
  if (!stem.empty()) return find_stem(stem);
  return side == KinetoSide::driver_call ? find_number(kDriverNumbers, record.args.cbid)
                                         : find_number(kRuntimeNumbers, record.args.cbid);
}

bool is_launch(std::string_view api) noexcept {
  return api.find("Launch") != std::string_view::npos;
}

}  // namespace ringmain::replay
