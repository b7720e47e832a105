// Do our own declarations of NVTX's interface agree with its headers? They do if this compiles.
#include <cstddef>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>

#include "adapters/sources/nvtx/nvtx_abi.hpp"

namespace ringmain::nvtx::abi {

constexpr bool same(auto ours, auto theirs) {
  return static_cast<unsigned>(ours) == static_cast<unsigned>(theirs);
}

static_assert(kCallbacks == NVTX_ETID_CALLBACKS &&
              sizeof(Callbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(Callbacks, table_of_module) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(same(kCore, NVTX_CB_MODULE_CORE) && same(kCore2, NVTX_CB_MODULE_CORE2) &&
              same(kSync, NVTX_CB_MODULE_SYNC));

static_assert(
    same(kMarkEx, NVTX_CBID_CORE_MarkEx) && same(kMarkA, NVTX_CBID_CORE_MarkA) &&
    same(kMarkW, NVTX_CBID_CORE_MarkW) && same(kRangeStartEx, NVTX_CBID_CORE_RangeStartEx) &&
    same(kRangeStartA, NVTX_CBID_CORE_RangeStartA) &&
    same(kRangeStartW, NVTX_CBID_CORE_RangeStartW) && same(kRangeEnd, NVTX_CBID_CORE_RangeEnd) &&
    same(kRangePushEx, NVTX_CBID_CORE_RangePushEx) &&
    same(kRangePushA, NVTX_CBID_CORE_RangePushA) && same(kRangePushW, NVTX_CBID_CORE_RangePushW) &&
    same(kRangePop, NVTX_CBID_CORE_RangePop) &&
    same(kNameCategoryA, NVTX_CBID_CORE_NameCategoryA) &&
    same(kNameCategoryW, NVTX_CBID_CORE_NameCategoryW) && same(kCoreSize, NVTX_CBID_CORE_SIZE));
static_assert(same(kDomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx) &&
              same(kDomainRangeStartEx, NVTX_CBID_CORE2_DomainRangeStartEx) &&
              same(kDomainRangeEnd, NVTX_CBID_CORE2_DomainRangeEnd) &&
              same(kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx) &&
              same(kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop) &&
              same(kDomainResourceCreate, NVTX_CBID_CORE2_DomainResourceCreate) &&
              same(kDomainResourceDestroy, NVTX_CBID_CORE2_DomainResourceDestroy) &&
              same(kDomainNameCategoryA, NVTX_CBID_CORE2_DomainNameCategoryA) &&
              same(kDomainNameCategoryW, NVTX_CBID_CORE2_DomainNameCategoryW) &&
              same(kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA) &&
              same(kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW) &&
              same(kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA) &&
              same(kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW) &&
              same(kDomainDestroy, NVTX_CBID_CORE2_DomainDestroy) &&
              same(kCore2Size, NVTX_CBID_CORE2_SIZE));
static_assert(same(kSyncUserCreate, NVTX_CBID_SYNC_DomainSyncUserCreate) &&
              same(kSyncSize, NVTX_CBID_SYNC_SIZE));

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t) &&
              offsetof(EventAttributes, bytes) == offsetof(nvtxEventAttributes_t, size) &&
              offsetof(EventAttributes, category) == offsetof(nvtxEventAttributes_t, category) &&
              offsetof(EventAttributes, color_type) == offsetof(nvtxEventAttributes_t, colorType) &&
              offsetof(EventAttributes, color) == offsetof(nvtxEventAttributes_t, color) &&
              offsetof(EventAttributes, payload_type) ==
                  offsetof(nvtxEventAttributes_t, payloadType) &&
              offsetof(EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload) &&
              offsetof(EventAttributes, message_type) ==
                  offsetof(nvtxEventAttributes_t, messageType) &&
              offsetof(EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(sizeof(ResourceAttributes) == sizeof(nvtxResourceAttributes_t) &&
              offsetof(ResourceAttributes, message_type) ==
                  offsetof(nvtxResourceAttributes_t, messageType) &&
              offsetof(ResourceAttributes, message) == offsetof(nvtxResourceAttributes_t, message));
static_assert(sizeof(SyncAttributes) == sizeof(nvtxSyncUserAttributes_t) &&
              offsetof(SyncAttributes, message_type) ==
                  offsetof(nvtxSyncUserAttributes_t, messageType) &&
              offsetof(SyncAttributes, message) == offsetof(nvtxSyncUserAttributes_t, message));
static_assert(same(kAscii, NVTX_MESSAGE_TYPE_ASCII) && same(kWide, NVTX_MESSAGE_TYPE_UNICODE) &&
              same(kRegistered, NVTX_MESSAGE_TYPE_REGISTERED) && same(kArgb, NVTX_COLOR_ARGB));
static_assert(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 == 1 && NVTX_PAYLOAD_TYPE_INT64 == 2 &&
              NVTX_PAYLOAD_TYPE_DOUBLE == 3 && NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 == 4 &&
              NVTX_PAYLOAD_TYPE_INT32 == 5 && NVTX_PAYLOAD_TYPE_FLOAT == 6 &&
              kExtendedPayload == NVTX_PAYLOAD_TYPE_EXT);
static_assert(sizeof(RangeId) == sizeof(nvtxRangeId_t));

}  // namespace ringmain::nvtx::abi
