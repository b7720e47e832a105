// How does NCCL call a profiler plugin, and what does it give? The ABI of versions 4 to 7, without
// NVIDIA's headers; the front end of an installed NCCL checks it in the tests.
//
// A plugin exports one table for each version that it serves; NCCL takes the highest that it knows:
// v4 is NCCL 2.27, v5 2.28, v6 2.29 and 2.30, v7 2.31 and later. Within a version nothing moves.
// RCCL's own v6 has more members at the end of `proxyOp`: what is common lies where it lies here.
#pragma once
#include <cstddef>
#include <cstdint>

#include "adapters/sources/nccl/nccl_profiler_parts.hpp"

namespace ringmain::nccl::abi {

using Result = std::int32_t;  // ncclResult_t
enum : Result { kSuccess = 0, kInternalError = 3, kInvalidArgument = 4 };

/// ncclDebugLogger_t; the levels that a plugin has a use for.
using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);
enum : int { kWarn = 2, kInfo = 3 };
constexpr unsigned long kSubsystemProfile = 16384;

/// What begins and ends; a bit each, in masks and in a descriptor's `type`.
enum Type : std::uint64_t {
  kGroup = 1u << 0,
  kColl = 1u << 1,
  kP2p = 1u << 2,
  kProxyOp = 1u << 3,
  kProxyStep = 1u << 4,
  kProxyCtrl = 1u << 5,
  kKernelCh = 1u << 6,
  kNetPlugin = 1u << 7,
  kGroupApi = 1u << 8,  // from here on: v5
  kCollApi = 1u << 9,
  kP2pApi = 1u << 10,
  kKernelLaunch = 1u << 11,
  kCeColl = 1u << 12,  // from here on: v6
  kCeSync = 1u << 13,
  kCeBatch = 1u << 14,
  kKernelPhase = 1u << 15  // v7
};
constexpr int kTypes = 16;
/// The mask of all types that a version knows.
constexpr std::uint32_t all_types(int version) noexcept {
  return version >= 7 ? 0xFFFF : version == 6 ? 0x7FFF : version == 5 ? 0xFFF : 0xFF;
}

/// ncclProfilerEventState: one enumeration for all versions. 0 to 7 are not sent since 2.27.
enum State : std::int32_t {
  kSendGpuWait = 8,
  kSendWait = 9,
  kRecvWait = 10,
  kRecvFlushWait = 11,
  kRecvGpuWait = 12,
  kCtrlIdle = 13,
  kCtrlActive = 14,
  kCtrlSleep = 15,
  kCtrlWakeup = 16,
  kCtrlAppend = 17,
  kCtrlAppendEnd = 18,
  kProxyOpInProgress = 19,
  kSendPeerWait = 20,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
  kCeCollStart = 25,
  kCeCollComplete = 26,
  kCeSyncStart = 27,
  kCeSyncComplete = 28,
  kCeBatchStart = 29,
  kCeBatchComplete = 30,
  kKernelPhaseStop = 31
};

/// What comes with a state; the pointer to it is null for those of GroupApi.
union StateArgs {
  struct {
    std::size_t trans_size;
  } proxy_step;
  struct {
    std::int32_t appended_proxy_ops;
  } proxy_ctrl;
  struct {
    void* data;
  } net_plugin;
  struct {
    std::uint64_t p_timer;  // the GPU's %globaltimer in ns; of KernelPhaseStop, too
  } kernel_ch;
};
static_assert(sizeof(StateArgs) == 8 && alignof(StateArgs) == 8);

// Descriptors: what `startEvent` is given.

struct DescriptorV4 {
  std::uint8_t type;
  void* parent;
  std::int32_t rank;
  union {
    CollV4 coll;
    P2pV4 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
struct DescriptorV5 {
  std::uint64_t type;
  void* parent;
  std::int32_t rank;
  union {
    GroupApi group_api;
    CollApiV5 coll_api;
    P2pApiV5 p2p_api;
    KernelLaunch kernel_launch;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
  };
};
struct DescriptorV6 {
  std::uint64_t type;
  void* parent;
  std::int32_t rank;
  union {
    GroupApi group_api;
    CollApiV5 coll_api;
    P2pApiV5 p2p_api;
    KernelLaunch kernel_launch;
    CollV5 coll;
    P2pV5 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeCollV6 ce_coll;
    CeSync ce_sync;
    CeBatch ce_batch;
  };
};
struct DescriptorV7 {
  std::uint64_t type;
  void* parent;
  std::int32_t rank;
  union {
    GroupApi group_api;
    CollApiV7 coll_api;
    P2pApiV7 p2p_api;
    KernelLaunch kernel_launch;
    CollV7 coll;
    P2pV7 p2p;
    ProxyOp proxy_op;
    ProxyStep proxy_step;
    KernelCh kernel_ch;
    NetPlugin net_plugin;
    CeCollV7 ce_coll;
    CeSync ce_sync;
    CeBatch ce_batch;
    KernelPhase kernel_phase;
  };
};
static_assert(sizeof(DescriptorV4) == 104 && sizeof(DescriptorV5) == 112);
static_assert(sizeof(DescriptorV6) == 112 && sizeof(DescriptorV7) == 136);
template <class D>
constexpr bool has_common_header = offsetof(D, type) == 0 && offsetof(D, parent) == 8 &&
                                   offsetof(D, rank) == 16 && offsetof(D, coll) == 24 &&
                                   offsetof(D, p2p) == 24 && offsetof(D, proxy_op) == 24 &&
                                   offsetof(D, proxy_step) == 24 && offsetof(D, kernel_ch) == 24 &&
                                   offsetof(D, net_plugin) == 24 && alignof(D) == 8;
static_assert(has_common_header<DescriptorV4> && has_common_header<DescriptorV5>);
static_assert(has_common_header<DescriptorV6> && has_common_header<DescriptorV7>);
static_assert(offsetof(DescriptorV5, group_api) == 24 && offsetof(DescriptorV5, coll_api) == 24);
static_assert(offsetof(DescriptorV5, p2p_api) == 24 && offsetof(DescriptorV5, kernel_launch) == 24);
static_assert(offsetof(DescriptorV6, ce_coll) == 24 && offsetof(DescriptorV6, ce_sync) == 24);
static_assert(offsetof(DescriptorV6, ce_batch) == 24 && offsetof(DescriptorV7, ce_coll) == 24);
static_assert(offsetof(DescriptorV7, kernel_phase) == 24);

// The tables. `ncclProfiler_vN` is an object of one of these, with C's name.

using InitV4Fn = Result(void** context, int* mask, const char* comm_name, std::uint64_t comm_hash,
                        int n_nodes, int n_ranks, int rank, Logger log);
using InitFn = Result(void** context, std::uint64_t comm_id, int* mask, const char* comm_name,
                      int n_nodes, int n_ranks, int rank, Logger log);
using StopEventFn = Result(void* handle);
using RecordEventStateFn = Result(void* handle, State state, StateArgs* args);
using FinalizeFn = Result(void* context);

template <class Init, class Descriptor>
struct Table {
  const char* name;
  Init* init;
  Result (*start_event)(void* context, void** handle, Descriptor* descriptor);
  StopEventFn* stop_event;
  RecordEventStateFn* record_event_state;
  FinalizeFn* finalize;
};
using TableV4 = Table<InitV4Fn, DescriptorV4>;
using TableV5 = Table<InitFn, DescriptorV5>;
using TableV6 = Table<InitFn, DescriptorV6>;
using TableV7 = Table<InitFn, DescriptorV7>;
static_assert(sizeof(TableV4) == 48 && sizeof(TableV7) == 48);
static_assert(offsetof(TableV7, name) == 0 && offsetof(TableV7, init) == 8);
static_assert(offsetof(TableV7, start_event) == 16 && offsetof(TableV7, stop_event) == 24);
static_assert(offsetof(TableV7, record_event_state) == 32 && offsetof(TableV7, finalize) == 40);

/// The name of version N's table, for dlsym.
constexpr const char* symbol_of(int version) noexcept {
  constexpr const char* kSymbols[] = {"ncclProfiler_v4", "ncclProfiler_v5", "ncclProfiler_v6",
                                      "ncclProfiler_v7"};
  return version < 4 || version > 7 ? nullptr : kSymbols[version - 4];
}
constexpr int kOldestVersion = 4;
constexpr int kNewestVersion = 7;

}  // namespace ringmain::nccl::abi
