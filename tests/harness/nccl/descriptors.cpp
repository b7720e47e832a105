#include "tests/harness/nccl/descriptors.hpp"

namespace ringmain::nccl_conformance {
namespace {

template <class To>
void head(const abi::DescriptorV7& from, To& to) {
  to.type = static_cast<decltype(to.type)>(from.type);
  to.parent = from.parent;
  to.rank = from.rank;
}

template <class To>
void coll(const abi::CollV7& from, To& to) {
  to.seq_number = from.seq_number;
  to.func = from.func;
  to.send_buff = from.send_buff;
  to.recv_buff = from.recv_buff;
  to.count = from.count;
  to.root = from.root;
  to.datatype = from.datatype;
  to.n_channels = from.n_channels;
  to.n_warps = from.n_warps;
  to.algo = from.algo;
  to.proto = from.proto;
}

template <class To>
void p2p(const abi::P2pV7& from, To& to) {
  to.func = from.func;
  to.buff = from.buff;
  to.datatype = from.datatype;
  to.count = from.count;
  to.peer = from.peer;
}

template <class To>
void calls(const abi::DescriptorV7& from, To& to) {
  if (from.type == abi::kGroupApi) to.group_api = from.group_api;
  if (from.type == abi::kKernelLaunch) to.kernel_launch = from.kernel_launch;
  if (from.type == abi::kCollApi) {
    to.coll_api.func = from.coll_api.func;
    to.coll_api.count = from.coll_api.count;
    to.coll_api.datatype = from.coll_api.datatype;
    to.coll_api.root = from.coll_api.root;
    to.coll_api.stream = from.coll_api.stream;
    to.coll_api.graph_captured = from.coll_api.graph_captured;
  }
  if (from.type == abi::kP2pApi) {
    to.p2p_api.func = from.p2p_api.func;
    to.p2p_api.count = from.p2p_api.count;
    to.p2p_api.datatype = from.p2p_api.datatype;
    to.p2p_api.stream = from.p2p_api.stream;
    to.p2p_api.graph_captured = from.p2p_api.graph_captured;
  }
}

template <class To>
void transport(const abi::DescriptorV7& from, To& to) {
  if (from.type == abi::kProxyOp) to.proxy_op = from.proxy_op;
  if (from.type == abi::kProxyStep) to.proxy_step = from.proxy_step;
  if (from.type == abi::kKernelCh) {
    to.kernel_ch.channel_id = from.kernel_ch.channel_id;
    to.kernel_ch.p_timer = from.kernel_ch.p_timer;
  }
  if (from.type == abi::kNetPlugin) to.net_plugin = from.net_plugin;
}

template <class To>
void of_v5(const abi::DescriptorV7& from, To& to) {
  head(from, to);
  calls(from, to);
  transport(from, to);
  if (from.type == abi::kColl) {
    coll(from.coll, to.coll);
    to.coll.parent_group = from.coll.parent_group;
  }
  if (from.type == abi::kP2p) {
    p2p(from.p2p, to.p2p);
    to.p2p.n_channels = from.p2p.n_channels;
    to.p2p.parent_group = from.p2p.parent_group;
  }
}

}  // namespace

Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV4& to) {
  if (from.type > abi::all_types(4)) return Conversion::handle_untouched;
  head(from, to);
  transport(from, to);
  if (from.type == abi::kColl) {
    coll(from.coll, to.coll);
    to.parent = from.coll.parent_group;
  }
  if (from.type == abi::kP2p) {
    p2p(from.p2p, to.p2p);  // and no n_channels, which stays as it is
    to.parent = from.p2p.parent_group;
  }
  return Conversion::passed_on;
}

Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV5& to) {
  if (from.type > abi::all_types(6)) return Conversion::handle_untouched;
  if (from.type > abi::all_types(5)) return Conversion::handle_cleared;
  of_v5(from, to);
  return Conversion::passed_on;
}

Conversion convert(const abi::DescriptorV7& from, abi::DescriptorV6& to) {
  if (from.type > abi::all_types(6)) return Conversion::handle_cleared;
  of_v5(from, to);
  if (from.type == abi::kCeColl) {
    std::memcpy(static_cast<void*>(&to.ce_coll), &from.ce_coll, sizeof(to.ce_coll));
  }
  if (from.type == abi::kCeSync) to.ce_sync = from.ce_sync;
  if (from.type == abi::kCeBatch) to.ce_batch = from.ce_batch;
  return Conversion::passed_on;
}

bool passes(int version, int state) noexcept {
  if (version <= 4) return state >= abi::kSendGpuWait && state <= abi::kKernelChStop;
  if (version == 5) return state >= abi::kSendGpuWait && state <= abi::kGroupEndApiStart;
  return version >= 7 || state <= abi::kCeBatchComplete;
}

int converted_mask(int version, int mask) noexcept {
  constexpr int kCopies = abi::kCeColl | abi::kCeSync | abi::kCeBatch;
  return version == 5 ? mask & ~kCopies : mask;
}

}  // namespace ringmain::nccl_conformance
