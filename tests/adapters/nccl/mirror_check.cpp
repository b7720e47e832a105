// The same layouts of our own types, without NCCL's header.
#include <cstddef>

#include "adapters/sources/nccl/nccl.hpp"

namespace ringmain::nccl {
static_assert(offsetof(ncclConfig_t, commName) == 48);
static_assert(offsetof(ncclCollConfig_t, userProfilerTag) == 56);
static_assert(sizeof(ncclConfig_t) == 120 && sizeof(ncclCollConfig_t) == 72);
static_assert(sizeof(ncclUniqueId) == 128 && sizeof(ncclResult_t) == 4);
static_assert(sizeof(ncclEncryptionConfig_t) == 32 && sizeof(ncclSimInfo_t) == 24);
static_assert(sizeof(ncclWaitSignalDesc_t) == 16 && sizeof(ncclDataType_t) == 4);
}  // namespace ringmain::nccl
