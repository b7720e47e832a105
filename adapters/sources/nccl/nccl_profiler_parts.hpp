// What is in the descriptors of nccl_profiler_abi.hpp? What NCCL says of each type of event,
// version by version: parts only grow at their ends.
//
// Texts are of static storage in NCCL's library, buffers are the program's: neither is followed
// after the call.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ringmain::nccl::abi {

// Parts that are the same in all versions that have them.

/// `proxyOp`, all versions.
struct ProxyOp {
  std::int32_t pid;  // of the process that asked for the operation, perhaps another one
  std::uint8_t channel_id;
  std::int32_t peer;
  std::int32_t n_steps;
  std::int32_t chunk_size;
  std::int32_t is_send;
};
static_assert(sizeof(ProxyOp) == 24 && offsetof(ProxyOp, channel_id) == 4);
static_assert(offsetof(ProxyOp, peer) == 8 && offsetof(ProxyOp, n_steps) == 12);
static_assert(offsetof(ProxyOp, chunk_size) == 16 && offsetof(ProxyOp, is_send) == 20);

struct ProxyStep {
  std::int32_t step;
};
static_assert(sizeof(ProxyStep) == 4);

/// `kernelCh`, from v4 on.
struct KernelCh {
  std::uint8_t channel_id;
  std::uint64_t p_timer;
};
static_assert(sizeof(KernelCh) == 16 && offsetof(KernelCh, p_timer) == 8);

struct NetPlugin {
  std::int64_t id;  // the version below, the type above it
  void* data;
};
static_assert(sizeof(NetPlugin) == 16 && offsetof(NetPlugin, data) == 8);

struct GroupApi {
  bool graph_captured;
  std::int32_t group_depth;
};
static_assert(sizeof(GroupApi) == 8 && offsetof(GroupApi, group_depth) == 4);

struct KernelLaunch {
  void* stream;
};
static_assert(sizeof(KernelLaunch) == 8);

struct CeSync {
  bool is_complete;
  std::int32_t n_ranks;
};
static_assert(sizeof(CeSync) == 8 && offsetof(CeSync, n_ranks) == 4);

struct CeBatch {
  std::int32_t num_ops;
  std::size_t total_bytes;
  bool use_intra_sync;
};
static_assert(sizeof(CeBatch) == 24 && offsetof(CeBatch, total_bytes) == 8);
static_assert(offsetof(CeBatch, use_intra_sync) == 16);

struct KernelPhase {
  std::uint8_t channel_id;
  std::uint8_t phase_id;  // 0: initial synchronization, 1: computation, 2: final synchronization
  const char* phase_name;
  std::uint64_t p_timer;
};
static_assert(sizeof(KernelPhase) == 24 && offsetof(KernelPhase, phase_id) == 1);
static_assert(offsetof(KernelPhase, phase_name) == 8 && offsetof(KernelPhase, p_timer) == 16);

// Parts that grew.

struct CollV4 {
  std::uint64_t seq_number;
  const char* func;
  const void* send_buff;
  void* recv_buff;
  std::size_t count;
  std::int32_t root;
  const char* datatype;
  std::uint8_t n_channels;
  std::uint8_t n_warps;
  const char* algo;
  const char* proto;
};
struct CollV5 {  // and v6
  std::uint64_t seq_number;
  const char* func;
  const void* send_buff;
  void* recv_buff;
  std::size_t count;
  std::int32_t root;
  const char* datatype;
  std::uint8_t n_channels;
  std::uint8_t n_warps;
  const char* algo;
  const char* proto;
  void* parent_group;
};
struct CollV7 {
  std::uint64_t seq_number;
  const char* func;
  const void* send_buff;
  void* recv_buff;
  std::size_t count;
  std::int32_t root;
  const char* datatype;
  std::uint8_t n_channels;
  std::uint8_t n_warps;
  const char* algo;
  const char* proto;
  void* parent_group;
  const char* kernel_variant;
  bool is_sym_coll;
  std::uint64_t user_tag;  // 0: none
};
static_assert(sizeof(CollV4) == 80 && sizeof(CollV5) == 88 && sizeof(CollV7) == 112);
static_assert(offsetof(CollV4, seq_number) == 0 && offsetof(CollV4, func) == 8);
static_assert(offsetof(CollV4, send_buff) == 16 && offsetof(CollV4, recv_buff) == 24);
static_assert(offsetof(CollV4, count) == 32 && offsetof(CollV4, root) == 40);
static_assert(offsetof(CollV4, datatype) == 48 && offsetof(CollV4, n_channels) == 56);
static_assert(offsetof(CollV4, n_warps) == 57 && offsetof(CollV4, algo) == 64);
static_assert(offsetof(CollV4, proto) == 72);
static_assert(offsetof(CollV5, proto) == 72 && offsetof(CollV5, parent_group) == 80);
static_assert(offsetof(CollV7, proto) == 72 && offsetof(CollV7, parent_group) == 80);
static_assert(offsetof(CollV7, kernel_variant) == 88 && offsetof(CollV7, is_sym_coll) == 96);
static_assert(offsetof(CollV7, user_tag) == 104);

struct P2pV4 {
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  std::int32_t peer;
  std::uint8_t n_channels;
};
struct P2pV5 {  // and v6
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  std::int32_t peer;
  std::uint8_t n_channels;
  void* parent_group;
};
struct P2pV7 {
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  std::int32_t peer;
  std::uint8_t n_channels;
  void* parent_group;
  std::uint64_t user_tag;
};
static_assert(sizeof(P2pV4) == 40 && sizeof(P2pV5) == 48 && sizeof(P2pV7) == 56);
static_assert(offsetof(P2pV4, func) == 0 && offsetof(P2pV4, buff) == 8);
static_assert(offsetof(P2pV4, datatype) == 16 && offsetof(P2pV4, count) == 24);
static_assert(offsetof(P2pV4, peer) == 32 && offsetof(P2pV4, n_channels) == 36);
static_assert(offsetof(P2pV5, n_channels) == 36 && offsetof(P2pV5, parent_group) == 40);
static_assert(offsetof(P2pV7, parent_group) == 40 && offsetof(P2pV7, user_tag) == 48);

struct CollApiV5 {  // and v6
  const char* func;
  std::size_t count;
  const char* datatype;
  std::int32_t root;
  void* stream;
  bool graph_captured;
};
struct CollApiV7 {
  const char* func;
  std::size_t count;
  const char* datatype;
  std::int32_t root;
  void* stream;
  bool graph_captured;
  std::uint64_t user_tag;
};
static_assert(sizeof(CollApiV5) == 48 && sizeof(CollApiV7) == 56);
static_assert(offsetof(CollApiV5, func) == 0 && offsetof(CollApiV5, count) == 8);
static_assert(offsetof(CollApiV5, datatype) == 16 && offsetof(CollApiV5, root) == 24);
static_assert(offsetof(CollApiV5, stream) == 32 && offsetof(CollApiV5, graph_captured) == 40);
static_assert(offsetof(CollApiV7, graph_captured) == 40 && offsetof(CollApiV7, user_tag) == 48);

struct P2pApiV5 {  // and v6
  const char* func;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};
struct P2pApiV7 {
  const char* func;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
  std::uint64_t user_tag;
};
static_assert(sizeof(P2pApiV5) == 40 && sizeof(P2pApiV7) == 48);
static_assert(offsetof(P2pApiV5, func) == 0 && offsetof(P2pApiV5, count) == 8);
static_assert(offsetof(P2pApiV5, datatype) == 16 && offsetof(P2pApiV5, stream) == 24);
static_assert(offsetof(P2pApiV5, graph_captured) == 32);
static_assert(offsetof(P2pApiV7, graph_captured) == 32 && offsetof(P2pApiV7, user_tag) == 40);

struct CeCollV6 {
  std::uint64_t seq_number;
  const char* func;
  const void* send_buff;
  void* recv_buff;
  std::size_t count;
  std::int32_t root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  std::uint32_t batch_size;
  std::uint32_t num_batches;
  std::uint32_t ce_seq_num;
  void* stream;
};
struct CeCollV7 {
  std::uint64_t seq_number;
  const char* func;
  const void* send_buff;
  void* recv_buff;
  std::size_t count;
  std::int32_t root;
  const char* datatype;
  const char* sync_strategy;
  bool intra_batch_sync;
  std::uint32_t batch_size;
  std::uint32_t num_batches;
  std::uint32_t ce_seq_num;
  void* stream;
  std::uint64_t user_tag;
};
static_assert(sizeof(CeCollV6) == 88 && sizeof(CeCollV7) == 96);
static_assert(offsetof(CeCollV6, seq_number) == 0 && offsetof(CeCollV6, func) == 8);
static_assert(offsetof(CeCollV6, send_buff) == 16 && offsetof(CeCollV6, recv_buff) == 24);
static_assert(offsetof(CeCollV6, count) == 32 && offsetof(CeCollV6, root) == 40);
static_assert(offsetof(CeCollV6, datatype) == 48 && offsetof(CeCollV6, sync_strategy) == 56);
static_assert(offsetof(CeCollV6, intra_batch_sync) == 64 && offsetof(CeCollV6, batch_size) == 68);
static_assert(offsetof(CeCollV6, num_batches) == 72 && offsetof(CeCollV6, ce_seq_num) == 76);
static_assert(offsetof(CeCollV6, stream) == 80);
static_assert(offsetof(CeCollV7, stream) == 80 && offsetof(CeCollV7, user_tag) == 88);

// What `netPlugin.data` points to. Low 16 bits of the id: the version; those above: the type.

constexpr std::int64_t kNetInfiniband = 1 << 16;
constexpr std::int64_t kNetSocket = 2 << 16;
struct NetInfiniband {  // version 1
  std::uint8_t type;    // 1: a queue pair
  struct {
    std::int32_t device;
    std::uint64_t wr_id;
    std::int32_t opcode;
    std::int32_t qp_num;
    std::size_t length;
  } qp;
};
struct NetSocket {    // version 1
  std::uint8_t type;  // 1: a socket
  struct {
    std::int32_t fd;
    std::int32_t op;
    std::size_t length;
  } sock;
};
static_assert(sizeof(NetInfiniband) == 40 && offsetof(NetInfiniband, qp.device) == 8);
static_assert(offsetof(NetInfiniband, qp.wr_id) == 16 && offsetof(NetInfiniband, qp.opcode) == 24);
static_assert(offsetof(NetInfiniband, qp.qp_num) == 28 && offsetof(NetInfiniband, qp.length) == 32);
static_assert(sizeof(NetSocket) == 24 && offsetof(NetSocket, sock.fd) == 8);
static_assert(offsetof(NetSocket, sock.op) == 12 && offsetof(NetSocket, sock.length) == 16);

}  // namespace ringmain::nccl::abi
