// Whose types have NCCL's calls? NCCL's, where <nccl.h> was included before; else our own, with the
// same names and layouts, so that a program can be built without NCCL.
//
// Handles are pointers to NCCL's own structs in either case. A type that is younger than the
// program's NCCL is ours. Layouts are those of 2.32.3. Needs the C library only.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(NCCL_VERSION_CODE)
struct ncclComm;
#endif
#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 22703
struct ncclWindow_vidmem;
#endif
#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 23000
struct ncclParamHandle;
#endif
struct CUstream_st;
struct CUevent_st;

namespace ringmain::nccl {

inline namespace own_types {

#if !defined(NCCL_VERSION_CODE)
using cudaStream_t = ::CUstream_st*;
using ncclComm_t = ::ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
/// Those of 2.32.3; every value of NCCL's may come.
enum ncclResult_t : int {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclTimeout = 8
};
enum ncclDataType_t : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11
};
/// From 5 on they are the program's own.
enum ncclRedOp_t : int { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };
enum ncclScalarResidence_t : int { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };

inline constexpr int kUndefined = -2147483647 - 1;  // NCCL_CONFIG_UNDEF_INT: NCCL decides

/// A communicator's configuration, as of 2.32.3; earlier libraries read the part that they know.
struct ncclConfig_t {
  std::size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 23203;
  int blocking = kUndefined;
  int cgaClusterSize = kUndefined;
  int minCTAs = kUndefined;
  int maxCTAs = kUndefined;
  const char* netName = nullptr;
  int splitShare = kUndefined;
  int trafficClass = kUndefined;
  const char* commName = nullptr;
  int collnetEnable = kUndefined;
  int CTAPolicy = kUndefined;
  int shrinkShare = kUndefined;
  int nvlsCTAs = kUndefined;
  int nChannelsPerNetPeer = kUndefined;
  int nvlinkCentricSched = kUndefined;
  int graphUsageMode = kUndefined;
  int numRmaCtx = kUndefined;
  int maxP2pPeers = kUndefined;
  int graphStreamOrdering = kUndefined;
  int launchOrderImplicit = kUndefined;
  int numRmaSig = kUndefined;
  int rmaEagerInit = kUndefined;
  int hostCftMode = kUndefined;
  int nvlsHostMode = kUndefined;
};
#else
using ::cudaStream_t;
using ::ncclComm_t;
using ::ncclConfig_t;
using ::ncclDataType_t;
using ::ncclRedOp_t;
using ::ncclResult_t;
using ::ncclScalarResidence_t;
using ::ncclUniqueId;

using ::ncclFloat32;
using ::ncclInProgress;
using ::ncclInternalError;
using ::ncclInvalidArgument;
using ::ncclInvalidUsage;
using ::ncclRemoteError;
using ::ncclSuccess;
using ::ncclSum;
using ::ncclSystemError;
using ::ncclUnhandledCudaError;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 22200
struct ncclSimInfo_t {
  std::size_t size = sizeof(ncclSimInfo_t);
  unsigned magic = 0x74685283;
  unsigned version = 23203;
  float estimatedTime = -1.0F;
};
#else
using ::ncclSimInfo_t;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 22703
using ncclWindow_t = ::ncclWindow_vidmem*;
#else
using ::ncclWindow_t;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 22900
struct ncclWaitSignalDesc_t {
  int opCnt, peer, sigIdx, ctx;
};
#else
using ::ncclWaitSignalDesc_t;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 23000
using ncclParamHandle_t = ::ncclParamHandle*;
enum ncclCommMemStat_t : int {
  ncclStatGpuMemSuspend = 0,
  ncclStatGpuMemSuspended = 1,
  ncclStatGpuMemPersist = 2,
  ncclStatGpuMemTotal = 3
};
#else
using ::ncclCommMemStat_t;
using ::ncclParamHandle_t;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 23100
/// One collective's configuration. `launchCompletionEvent` came with 2.32.
struct ncclCollConfig_t {
  std::size_t size = sizeof(ncclCollConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 23203;
  void* ext = nullptr;
  int minCTAs = -2147483647 - 1;
  int maxCTAs = -2147483647 - 1;
  int nvlsCTAs = -2147483647 - 1;
  int cgaClusterSize = -2147483647 - 1;
  const char* algSelection = nullptr;
  int forceAlgSelection = 1;
  int CTAPolicy = -2147483647 - 1;
  std::uint64_t userProfilerTag = 0;  // 0: none; the highest bit is NCCL's
  ::CUevent_st* launchCompletionEvent = nullptr;
};
#else
using ::ncclCollConfig_t;
#endif

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < 23200
struct ncclEncryptionConfig_t {
  std::size_t size = sizeof(ncclEncryptionConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 23203;
  int mode = 0;
  const char* psk = nullptr;
};
#else
using ::ncclEncryptionConfig_t;
#endif

}  // namespace own_types

}  // namespace ringmain::nccl
