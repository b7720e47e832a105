// Which of CUPTI's numbers is which call of CUDA's? The one table: source, replay and tests read
// it.
//
// A number names a call only together with CUPTI's version: 783 has been two calls. What is missing
// here, and why, is in tests/adapters/cuda/ignored_calls.txt; a test compares both with the headers
// of CUPTI 12.9 to 13.5.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "cuda_call_kinds.hpp"
#include "cuda_call_shapes.hpp"

namespace ringmain::cuda {

/// CUPTI's numbers of its two domains of calls.
enum class CallDomain : std::uint8_t { driver = 1, runtime = 2 };

struct CallRow {
  std::uint16_t cbid;
  CallDomain domain;
  CallShape shape;
  Call call;
  bool per_thread_stream;  // its stream 0 is the calling thread's own default stream
  /// The CUPTI_API_VERSIONs in which it is this call: [since, until). CUDA 12.9's is 28, from CUDA
  /// 13.0 on they are like 130001.
  std::uint32_t since, until;
  std::string_view name;   // as a program calls it: "cudaEventRecord"
  std::string_view cupti;  // as CUPTI's enumerator ends: "cudaEventRecord_ptsz_v7000"
};

namespace detail {

/// "v2", "v3020"; "ptsz", "ptds" and "spt" say which default stream is meant.
constexpr bool is_version(std::string_view suffix) noexcept {
  if (suffix == "ptsz" || suffix == "ptds" || suffix == "spt") return true;
  return suffix.size() > 1 && suffix.front() == 'v' &&
         std::all_of(suffix.begin() + 1, suffix.end(), [](char c) { return c >= '0' && c <= '9'; });
}
/// "cudaEventRecord" of "cudaEventRecord_ptsz_v7000".
constexpr std::string_view without_version(std::string_view api) noexcept {
  for (auto cut = api.rfind('_'); cut != std::string_view::npos; cut = api.rfind('_')) {
    if (!is_version(api.substr(cut + 1))) break;
    api = api.substr(0, cut);
  }
  return api;
}

constexpr std::uint32_t kEver = std::numeric_limits<std::uint32_t>::max();

constexpr CallRow row(CallDomain domain, std::uint16_t cbid, std::string_view cupti, Call call,
                      CallShape shape, std::uint32_t since, std::uint32_t until) noexcept {
  return {.cbid = cbid,
          .domain = domain,
          .shape = shape,
          .call = call,
          .per_thread_stream = cupti.find("_ptsz") != std::string_view::npos,
          .since = since,
          .until = until,
          .name = without_version(cupti),
          .cupti = cupti};
}
constexpr CallRow runtime(std::uint16_t cbid, std::string_view cupti, Call call, CallShape shape,
                          std::uint32_t since = 0, std::uint32_t until = kEver) noexcept {
  return row(CallDomain::runtime, cbid, cupti, call, shape, since, until);
}
constexpr CallRow driver(std::uint16_t cbid, std::string_view cupti, Call call, CallShape shape,
                         std::uint32_t since = 0, std::uint32_t until = kEver) noexcept {
  return row(CallDomain::driver, cbid, cupti, call, shape, since, until);
}

namespace rows {
using enum CallKind;
using enum MemoryClass;
using S = CallShape;

constexpr Call allocation(MemoryClass memory) noexcept {
  return {memory_allocation, memory};
}
constexpr Call release(MemoryClass memory) noexcept {
  return {memory_deallocation, memory};
}
constexpr Call kMade{.kind = CallKind::context, .change = ContextChange::made};
constexpr Call kDestroyed{.kind = CallKind::context, .change = ContextChange::destroyed};
constexpr Call kReset{.kind = CallKind::context, .change = ContextChange::reset};
constexpr Call kBegin{.kind = capture, .step = CaptureStep::begin};
constexpr Call kEnd{.kind = capture, .step = CaptureStep::end};
constexpr Call kLaunch{.kind = capture, .step = CaptureStep::graph_launch};

constexpr std::uint32_t k130 = 130000, k131 = 130100, k133 = 130300, k134 = 130400, k135 = 130500;

// In the order of domain and number: kPlaces counts on it. Hidden: a plugin that has a copy can be
// unloaded.
[[gnu::visibility("hidden")]] inline constexpr CallRow kRows[] = {
    driver(10, "cuCtxCreate", kMade, S::context_made),
    driver(11, "cuCtxDestroy", kDestroyed, S::handle),
    driver(17, "cuCtxSynchronize", {device_synchronization}, S::none),
    driver(29, "cuMemAlloc", allocation(device), S::memory_32),
    driver(31, "cuMemAllocPitch", allocation(device), S::pitched_32),
    driver(33, "cuMemFree", release(device), S::handle_32),
    driver(37, "cuMemAllocHost", allocation(host_pinned), S::host_memory_32),
    driver(38, "cuMemFreeHost", release(host_pinned), S::handle),
    driver(39, "cuMemHostAlloc", allocation(host_pinned), S::memory),
    driver(87, "cuArrayCreate", allocation(array), S::out_handle),
    driver(89, "cuArrayDestroy", release(array), S::handle),
    driver(90, "cuArray3DCreate", allocation(array), S::out_handle),
    driver(118, "cuEventCreate", {event_creation}, S::event_made),
    driver(119, "cuEventRecord", {event_record}, S::record),
    driver(121, "cuEventSynchronize", {event_synchronization}, S::handle),
    driver(122, "cuEventDestroy", {event_deletion}, S::handle),
    driver(124, "cuStreamCreate", {stream_creation}, S::stream_flags),
    driver(126, "cuStreamSynchronize", {stream_synchronization}, S::stream),
    driver(127, "cuStreamDestroy", {stream_deletion}, S::stream),
    driver(235, "cuCtxCreate_v2", kMade, S::context_made),
    driver(243, "cuMemAlloc_v2", allocation(device), S::memory),
    driver(244, "cuMemAllocPitch_v2", allocation(device), S::pitched),
    driver(245, "cuMemFree_v2", release(device), S::handle),
    driver(271, "cuMemHostAlloc_v2", allocation(host_pinned), S::memory, 0, k135),
    driver(272, "cuArrayCreate_v2", allocation(array), S::array_described),
    driver(274, "cuArray3DCreate_v2", allocation(array), S::array_3d_described),
    driver(294, "cuMemAllocHost_v2", allocation(host_pinned), S::memory),
    driver(295, "cuStreamWaitEvent", {event_wait}, S::wait),
    driver(301, "cuMemHostRegister", allocation(host_registered), S::range),
    driver(302, "cuMemHostUnregister", release(host_registered), S::handle),
    driver(322, "cuCtxDestroy_v2", kDestroyed, S::handle),
    driver(325, "cuEventDestroy_v2", {event_deletion}, S::handle),
    driver(326, "cuStreamDestroy_v2", {stream_deletion}, S::stream),
    driver(329, "cuIpcOpenMemHandle", allocation(ipc), S::out_handle),
    driver(330, "cuIpcCloseMemHandle", release(ipc), S::handle),
    driver(335, "cuIpcOpenEventHandle", {event_creation}, S::out_handle),
    driver(347, "cuMipmappedArrayCreate", allocation(array), S::out_handle),
    driver(349, "cuMipmappedArrayDestroy", release(array), S::handle),
    driver(367, "cuStreamCreateWithPriority", {stream_creation}, S::stream_priority),
    driver(371, "cuMemAllocManaged", allocation(managed), S::memory),
    driver(379, "cuMemHostRegister_v2", allocation(host_registered), S::range),
    driver(389, "cuDevicePrimaryCtxReset", kReset, S::device),
    driver(436, "cuStreamWaitEvent_ptsz", {event_wait}, S::wait),
    driver(440, "cuStreamSynchronize_ptsz", {stream_synchronization}, S::stream),
    driver(441, "cuEventRecord_ptsz", {event_record}, S::record),
    driver(469, "cuEventCreateFromNVNSync", {event_creation}, S::unread, 0, k133),
    driver(479, "cuEventCreateFromEGLSync", {event_creation}, S::out_handle),
    driver(486, "cuExternalMemoryGetMappedBuffer", allocation(mapping), S::memory_buffer),
    driver(487, "cuExternalMemoryGetMappedMipmappedArray", allocation(array), S::out_handle),
    driver(495, "cuStreamBeginCapture", kBegin, S::stream),
    driver(496, "cuStreamBeginCapture_ptsz", kBegin, S::stream),
    driver(497, "cuStreamEndCapture", kEnd, S::capture_end),
    driver(498, "cuStreamEndCapture_ptsz", kEnd, S::capture_end),
    driver(514, "cuGraphLaunch", kLaunch, S::graph_launch),
    driver(515, "cuGraphLaunch_ptsz", kLaunch, S::graph_launch),
    driver(539, "cuStreamBeginCapture_v2", kBegin, S::stream),
    driver(540, "cuStreamBeginCapture_v2_ptsz", kBegin, S::stream),
    driver(545, "cuDevicePrimaryCtxReset_v2", kReset, S::device),
    driver(549, "cuMemCreate", allocation(physical), S::memory),
    driver(550, "cuMemRelease", release(physical), S::handle),
    driver(551, "cuMemMap", allocation(mapping), S::range),
    driver(552, "cuMemUnmap", release(mapping), S::range),
    driver(555, "cuMemImportFromShareableHandle", allocation(ipc), S::out_handle),
    driver(567, "cuIpcOpenMemHandle_v2", allocation(ipc), S::out_handle),
    driver(587, "cuEventRecordWithFlags", {event_record}, S::record_flags),
    driver(588, "cuEventRecordWithFlags_ptsz", {event_record}, S::record_flags),
    driver(598, "cuMemAllocAsync", allocation(stream_ordered), S::memory_on_stream),
    driver(599, "cuMemAllocAsync_ptsz", allocation(stream_ordered), S::memory_on_stream),
    driver(600, "cuMemFreeAsync", release(stream_ordered), S::free_on_stream),
    driver(601, "cuMemFreeAsync_ptsz", release(stream_ordered), S::free_on_stream),
    driver(611, "cuMemAllocFromPoolAsync", allocation(stream_ordered), S::memory_from_pool),
    driver(612, "cuMemAllocFromPoolAsync_ptsz", allocation(stream_ordered), S::memory_from_pool),
    driver(616, "cuMemPoolImportPointer", allocation(ipc), S::out_handle),
    driver(645, "cuCtxCreate_v3", kMade, S::context_affine),
    driver(706, "cuMulticastCreate", allocation(physical), S::out_handle),
    driver(720, "cuStreamBeginCaptureToGraph", kBegin, S::capture_into),
    driver(721, "cuStreamBeginCaptureToGraph_ptsz", kBegin, S::capture_into),
    driver(743, "cuGreenCtxCreate", kMade, S::context_green),
    driver(744, "cuGreenCtxDestroy", kDestroyed, S::handle),
    driver(749, "cuGreenCtxRecordEvent", {event_record}, S::context_event),
    driver(750, "cuGreenCtxWaitEvent", {event_wait}, S::context_event),
    driver(755, "cuCtxRecordEvent", {event_record}, S::context_event),
    driver(756, "cuCtxWaitEvent", {event_wait}, S::context_event),
    driver(757, "cuCtxCreate_v4", kMade, S::context_parametrized),
    driver(758, "cuGreenCtxStreamCreate", {stream_creation}, S::stream_of_context),
    driver(783, "cuStreamCreateForCaptureToCig", {stream_creation}, S::unread, 0, k131),
    driver(783, "cuStreamBeginCaptureToCig", kBegin, S::stream, k131),
    driver(800, "cuCtxSynchronize_v2", {device_synchronization}, S::handle, k130),
    driver(814, "cuStreamBeginCaptureToCig_ptsz", kBegin, S::stream, k131),
    driver(815, "cuStreamEndCaptureToCig", kEnd, S::stream, k131),
    driver(816, "cuStreamEndCaptureToCig_ptsz", kEnd, S::stream, k131),
    driver(846, "cuStreamBeginRecaptureToGraph", kBegin, S::recapture_into, k133),
    driver(847, "cuStreamBeginRecaptureToGraph_ptsz", kBegin, S::recapture_into, k133),
    runtime(20, "cudaMalloc_v3020", allocation(device), S::memory),
    runtime(21, "cudaMallocPitch_v3020", allocation(device), S::pitched),
    runtime(22, "cudaFree_v3020", release(device), S::handle),
    runtime(23, "cudaMallocArray_v3020", allocation(array), S::array),
    runtime(24, "cudaFreeArray_v3020", release(array), S::handle),
    runtime(25, "cudaMallocHost_v3020", allocation(host_pinned), S::memory),
    runtime(26, "cudaFreeHost_v3020", release(host_pinned), S::handle),
    runtime(27, "cudaHostAlloc_v3020", allocation(host_pinned), S::memory),
    runtime(123, "cudaThreadExit_v3020", kReset, S::none),
    runtime(126, "cudaThreadSynchronize_v3020", {device_synchronization}, S::none),
    runtime(129, "cudaStreamCreate_v3020", {stream_creation}, S::stream_made),
    runtime(130, "cudaStreamDestroy_v3020", {stream_deletion}, S::stream),
    runtime(131, "cudaStreamSynchronize_v3020", {stream_synchronization}, S::stream),
    runtime(133, "cudaEventCreate_v3020", {event_creation}, S::out_handle),
    runtime(134, "cudaEventCreateWithFlags_v3020", {event_creation}, S::event_made),
    runtime(135, "cudaEventRecord_v3020", {event_record}, S::record),
    runtime(136, "cudaEventDestroy_v3020", {event_deletion}, S::handle),
    runtime(137, "cudaEventSynchronize_v3020", {event_synchronization}, S::handle),
    runtime(140, "cudaMalloc3D_v3020", allocation(device), S::pitched_3d),
    runtime(141, "cudaMalloc3DArray_v3020", allocation(array), S::array_3d),
    runtime(147, "cudaStreamWaitEvent_v3020", {event_wait}, S::wait),
    runtime(152, "cudaHostRegister_v4000", allocation(host_registered), S::range),
    runtime(153, "cudaHostUnregister_v4000", release(host_registered), S::handle),
    runtime(164, "cudaDeviceReset_v3020", kReset, S::none),
    runtime(165, "cudaDeviceSynchronize_v3020", {device_synchronization}, S::none),
    runtime(177, "cudaIpcOpenEventHandle_v4010", {event_creation}, S::out_handle),
    runtime(179, "cudaIpcOpenMemHandle_v4010", allocation(ipc), S::out_handle),
    runtime(180, "cudaIpcCloseMemHandle_v4010", release(ipc), S::handle),
    runtime(192, "cudaMallocMipmappedArray_v5000", allocation(array), S::out_handle),
    runtime(194, "cudaFreeMipmappedArray_v5000", release(array), S::handle),
    runtime(198, "cudaStreamCreateWithFlags_v5000", {stream_creation}, S::stream_flags),
    runtime(201, "cudaStreamDestroy_v5050", {stream_deletion}, S::stream),
    runtime(202, "cudaStreamCreateWithPriority_v5050", {stream_creation}, S::stream_priority),
    runtime(206, "cudaMallocManaged_v6000", allocation(managed), S::memory),
    runtime(239, "cudaStreamSynchronize_ptsz_v7000", {stream_synchronization}, S::stream),
    runtime(242, "cudaEventRecord_ptsz_v7000", {event_record}, S::record),
    runtime(247, "cudaStreamWaitEvent_ptsz_v7000", {event_wait}, S::wait),
    runtime(271, "cudaEventCreateFromEGLSync_v9000", {event_creation}, S::out_handle),
    runtime(275, "cudaExternalMemoryGetMappedBuffer_v10000", allocation(mapping), S::memory_buffer),
    runtime(276, "cudaExternalMemoryGetMappedMipmappedArray_v10000", allocation(array),
            S::out_handle),
    runtime(311, "cudaGraphLaunch_v10000", kLaunch, S::graph_launch),
    runtime(312, "cudaGraphLaunch_ptsz_v10000", kLaunch, S::graph_launch),
    runtime(315, "cudaStreamBeginCapture_v10000", kBegin, S::stream),
    runtime(316, "cudaStreamBeginCapture_ptsz_v10000", kBegin, S::stream),
    runtime(319, "cudaStreamEndCapture_v10000", kEnd, S::capture_end),
    runtime(320, "cudaStreamEndCapture_ptsz_v10000", kEnd, S::capture_end),
    runtime(370, "cudaEventRecordWithFlags_v11010", {event_record}, S::record_flags),
    runtime(371, "cudaEventRecordWithFlags_ptsz_v11010", {event_record}, S::record_flags),
    runtime(373, "cudaMallocAsync_v11020", allocation(stream_ordered), S::memory_on_stream),
    runtime(374, "cudaMallocAsync_ptsz_v11020", allocation(stream_ordered), S::memory_on_stream),
    runtime(375, "cudaFreeAsync_v11020", release(stream_ordered), S::free_on_stream),
    runtime(376, "cudaFreeAsync_ptsz_v11020", release(stream_ordered), S::free_on_stream),
    runtime(390, "cudaMemPoolImportPointer_v11020", allocation(ipc), S::out_handle),
    runtime(391, "cudaMallocFromPoolAsync_v11020", allocation(stream_ordered), S::memory_from_pool),
    runtime(392, "cudaMallocFromPoolAsync_ptsz_v11020", allocation(stream_ordered),
            S::memory_from_pool),
    runtime(452, "cudaStreamBeginCaptureToGraph_v12030", kBegin, S::capture_into),
    runtime(453, "cudaStreamBeginCaptureToGraph_ptsz_v12030", kBegin, S::capture_into),
    runtime(526, "cudaGreenCtxCreate_v13010", kMade, S::context_green, k131),
    runtime(527, "cudaExecutionCtxDestroy_v13010", kDestroyed, S::handle, k131),
    runtime(533, "cudaExecutionCtxStreamCreate_v13010", {stream_creation}, S::stream_of_context,
            k131),
    runtime(534, "cudaExecutionCtxSynchronize_v13010", {device_synchronization}, S::handle, k131),
    runtime(543, "cudaExecutionCtxRecordEvent_v13010", {event_record}, S::context_event, k131),
    runtime(544, "cudaExecutionCtxWaitEvent_v13010", {event_wait}, S::context_event, k131),
    runtime(562, "cudaStreamBeginRecaptureToGraph_v13030", kBegin, S::recapture_into, k134),
    runtime(563, "cudaStreamBeginRecaptureToGraph_ptsz_v13030", kBegin, S::recapture_into, k134),
};
}  // namespace rows

constexpr std::size_t kDomains = 3;  // CUPTI counts them from 1
constexpr std::size_t kNumbers =
    1 + std::max_element(std::begin(rows::kRows), std::end(rows::kRows),
                         [](const CallRow& a, const CallRow& b) { return a.cbid < b.cbid; })
            ->cbid;
constexpr bool before(const CallRow& a, const CallRow& b) noexcept {
  if (a.domain != b.domain) return a.domain < b.domain;
  return a.cbid != b.cbid ? a.cbid < b.cbid : a.until <= b.since;
}
static_assert(std::adjacent_find(std::begin(rows::kRows), std::end(rows::kRows),
                                 [](const CallRow& a, const CallRow& b) {
                                   return !before(a, b);
                                 }) == std::end(rows::kRows),
              "rows rise, and no number is two calls in one version");

/// Where a number's first row is, from 1 on; 0: it has none. Found in one step, in callbacks.
using Places = std::array<std::array<std::uint8_t, kNumbers>, kDomains>;
constexpr Places places() noexcept {
  static_assert(std::size(rows::kRows) < 256);
  Places places{};
  for (std::size_t i = std::size(rows::kRows); i > 0; --i) {
    const CallRow& row = rows::kRows[i - 1];
    places[static_cast<std::size_t>(row.domain)][row.cbid] = static_cast<std::uint8_t>(i);
  }
  return places;
}
[[gnu::visibility("hidden")]] inline constexpr Places kPlaces = places();

}  // namespace detail

/// All rows, in the order of domain and number.
[[nodiscard]] constexpr std::span<const CallRow> call_rows() noexcept {
  return detail::rows::kRows;
}

/// The call that CUPTI of that version means by the number; nullptr: none of those that have a
/// kind. For callbacks: a constant number of steps, no memory, no lock.
[[nodiscard]] constexpr const CallRow* call_of(CallDomain domain, std::uint32_t cbid,
                                               std::uint32_t cupti_version) noexcept {
  const auto in_domain = static_cast<std::size_t>(domain);
  if (in_domain >= detail::kDomains || cbid >= detail::kNumbers) return nullptr;
  const std::size_t place = detail::kPlaces[in_domain][cbid];
  if (place == 0) return nullptr;
  for (const CallRow& row : call_rows().subspan(place - 1)) {
    if (row.cbid != cbid) break;
    if (row.since <= cupti_version && cupti_version < row.until) return &row;
  }
  return nullptr;
}

}  // namespace ringmain::cuda
