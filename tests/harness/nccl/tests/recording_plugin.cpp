// A plugin that writes down each call, member by member: what NCCL's own front end and the model of
// it said can then be compared line by line.
//
// Compiled once for each ABI version (RINGMAIN_ABI), which it exports alone; with RINGMAIN_ALL_ABIS
// it exports tables of all, and says which one is used. Handles and contexts
// are numbers in the order in which they are given; the file is RINGMAIN_NCCL_RECORD, in which
// each load continues. RINGMAIN_NCCL_NULL_EVERY=n drops each nth event.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <type_traits>
#include <unistd.h>

#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

namespace {

namespace abi = ringmain::nccl::abi;

#define RINGMAIN_JOIN(a, b) a##b
#define RINGMAIN_OF_VERSION(name, version) RINGMAIN_JOIN(name, version)
using Descriptor = abi::RINGMAIN_OF_VERSION(DescriptorV, RINGMAIN_ABI);
using Table = abi::RINGMAIN_OF_VERSION(TableV, RINGMAIN_ABI);

unsigned long number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : 0;
}

class Record {
 public:
  Record() {
    const char* const path = std::getenv("RINGMAIN_NCCL_RECORD");
    file_ = path != nullptr ? std::fopen(path, "a") : stderr;
    std::fprintf(file_, "load\n");
  }
  ~Record() {
    std::fprintf(file_, "unload\n");
    if (file_ != stderr) (void)std::fclose(file_);
  }
  std::mutex lock;
  [[nodiscard]] std::FILE* file() const { return file_; }
  void* next_context() { return reinterpret_cast<void*>(0x1000 + 0x10 * ++contexts_); }
  void* next_handle() {
    ++handles_;
    if (null_every_ != 0 && handles_ % null_every_ == 0) return nullptr;
    return reinterpret_cast<void*>(0x1'0000 + 0x10 * handles_);
  }

 private:
  std::FILE* file_;
  std::uintptr_t contexts_ = 0;
  std::uintptr_t handles_ = 0;
  const unsigned long null_every_ = number_of("RINGMAIN_NCCL_NULL_EVERY");
};
Record record;

const char* shown(const char* text) {
  return text != nullptr ? text : "null";
}
void field(const char* name, const char* text) {
  std::fprintf(record.file(), " %s=%s", name, shown(text));
}
void field(const char* name, const void* pointer) {
  std::fprintf(record.file(), " %s=%p", name, pointer);
}
template <class Number>
requires std::is_arithmetic_v<Number>
void field(const char* name, Number number) {
  std::fprintf(record.file(), " %s=%lld", name, static_cast<long long>(number));
}

template <class Coll>
void coll(const Coll& from) {
  field("seq", from.seq_number), field("func", from.func), field("send", from.send_buff);
  field("recv", from.recv_buff), field("count", from.count), field("root", from.root);
  field("dtype", from.datatype), field("channels", from.n_channels), field("warps", from.n_warps);
  field("algo", from.algo), field("proto", from.proto);
  if constexpr (requires { from.parent_group; }) field("group", from.parent_group);
  if constexpr (requires { from.user_tag; }) {
    field("variant", from.kernel_variant), field("symmetric", from.is_sym_coll);
    field("tag", from.user_tag);
  }
}
template <class P2p>
void p2p(const P2p& from) {
  field("func", from.func), field("buff", from.buff), field("dtype", from.datatype);
  field("count", from.count), field("peer", from.peer);
  if constexpr (requires { from.parent_group; }) {  // v4's n_channels is not set by NCCL
    field("channels", from.n_channels), field("group", from.parent_group);
  }
  if constexpr (requires { from.user_tag; }) field("tag", from.user_tag);
}
template <class Api>
void api(const Api& from) {
  field("func", from.func), field("count", from.count), field("dtype", from.datatype);
  if constexpr (requires { from.root; }) field("root", from.root);
  field("stream", from.stream), field("captured", from.graph_captured);
  if constexpr (requires { from.user_tag; }) field("tag", from.user_tag);
}
void transport(const Descriptor& from) {
  if (from.type == abi::kProxyOp) {
    field("pid", from.proxy_op.pid == ::getpid() ? "self" : "other");
    field("channel", from.proxy_op.channel_id), field("peer", from.proxy_op.peer);
    field("steps", from.proxy_op.n_steps), field("chunk", from.proxy_op.chunk_size);
    field("is_send", from.proxy_op.is_send);
  }
  if (from.type == abi::kProxyStep) field("step", from.proxy_step.step);
  if (from.type == abi::kKernelCh) {
    field("channel", from.kernel_ch.channel_id), field("timer", from.kernel_ch.p_timer);
  }
  if (from.type == abi::kNetPlugin) field("id", from.net_plugin.id);
}
template <class D>
void calls(const D& from) {
  if constexpr (requires { from.group_api; }) {
    if (from.type == abi::kGroupApi) {
      field("captured", from.group_api.graph_captured), field("depth", from.group_api.group_depth);
    }
    if (from.type == abi::kCollApi) api(from.coll_api);
    if (from.type == abi::kP2pApi) api(from.p2p_api);
    if (from.type == abi::kKernelLaunch) field("stream", from.kernel_launch.stream);
  }
}
template <class D>
void copies(const D& from) {
  if constexpr (requires { from.ce_coll; }) {
    if (from.type == abi::kCeColl) {
      const auto& part = from.ce_coll;
      field("seq", part.seq_number), field("func", part.func), field("send", part.send_buff);
      field("recv", part.recv_buff), field("count", part.count), field("root", part.root);
      field("dtype", part.datatype), field("strategy", part.sync_strategy);
      field("stream", part.stream);
      if constexpr (requires { part.user_tag; }) field("tag", part.user_tag);
    }
    if (from.type == abi::kCeSync) {
      field("complete", from.ce_sync.is_complete), field("ranks", from.ce_sync.n_ranks);
    }
    if (from.type == abi::kCeBatch) {
      field("ops", from.ce_batch.num_ops), field("bytes", from.ce_batch.total_bytes);
      field("intra", from.ce_batch.use_intra_sync);
    }
  }
}

[[maybe_unused]] abi::Result begin(void** context, int* mask, const char* name, std::uint64_t id,
                                   int nodes, int ranks, int rank) {
  const std::lock_guard guard(record.lock);
  *context = record.next_context();
  __atomic_store_n(mask, static_cast<int>(abi::all_types(RINGMAIN_ABI)), __ATOMIC_RELAXED);
  std::fprintf(record.file(), "init id=%llx name=%s nodes=%d ranks=%d rank=%d -> %p\n",
               static_cast<unsigned long long>(id), shown(name), nodes, ranks, rank, *context);
  return abi::kSuccess;
}
#if RINGMAIN_ABI == 4
[[maybe_unused]] abi::Result init(void** context, int* mask, const char* name, std::uint64_t id,
                                  int nodes, int ranks, int rank, abi::Logger) {
  return begin(context, mask, name, id, nodes, ranks, rank);
}
#else
[[maybe_unused]] abi::Result init(void** context, std::uint64_t id, int* mask, const char* name,
                                  int nodes, int ranks, int rank, abi::Logger) {
  return begin(context, mask, name, id, nodes, ranks, rank);
}
#endif

[[maybe_unused]] abi::Result start(void* context, void** handle, Descriptor* descriptor) {
  const std::lock_guard guard(record.lock);
  *handle = record.next_handle();
  const auto type = static_cast<unsigned>(descriptor->type);
  std::fprintf(record.file(), "start type=%x", type);
  // Another process's words are as they are there: not comparable, and not ours to look at.
  const bool foreign = type == abi::kProxyOp && descriptor->proxy_op.pid != ::getpid();
  if (!foreign) field("context", static_cast<const void*>(context));
  if (!foreign) field("parent", static_cast<const void*>(descriptor->parent));
  field("rank", descriptor->rank);
  if (type == abi::kColl) coll(descriptor->coll);
  if (type == abi::kP2p) p2p(descriptor->p2p);
  transport(*descriptor);
  calls(*descriptor);
  copies(*descriptor);
  std::fprintf(record.file(), " -> %p\n", *handle);
  return abi::kSuccess;
}

abi::Result stop(void* handle) {
  const std::lock_guard guard(record.lock);
  std::fprintf(record.file(), "stop %p\n", handle);
  return abi::kSuccess;
}

abi::Result state(void* handle, abi::State is, abi::StateArgs* args) {
  const std::lock_guard guard(record.lock);
  std::fprintf(record.file(), "state %p %d", handle, static_cast<int>(is));
  const bool group = is == abi::kGroupStartApiStop || is == abi::kGroupEndApiStart;
  if (group) field("args", RINGMAIN_ABI < 6 ? "any" : args == nullptr ? "null" : "some");
  if (is == abi::kKernelChStop) field("timer", args->kernel_ch.p_timer);
  if (is >= abi::kCtrlIdle && is <= abi::kCtrlAppendEnd) {
    field("appended", args->proxy_ctrl.appended_proxy_ops);
  }
  const bool step = is <= abi::kRecvGpuWait || is == abi::kSendPeerWait;
  if (step) field("bytes", args->proxy_step.trans_size);
  std::fprintf(record.file(), "\n");
  return abi::kSuccess;
}

abi::Result finalize(void* context) {
  const std::lock_guard guard(record.lock);
  std::fprintf(record.file(), "finalize %p\n", context);
  return abi::kSuccess;
}

}  // namespace

#ifndef RINGMAIN_ALL_ABIS
extern "C" {
[[gnu::visibility("default")]] extern Table RINGMAIN_OF_VERSION(ncclProfiler_v, RINGMAIN_ABI);
Table RINGMAIN_OF_VERSION(ncclProfiler_v, RINGMAIN_ABI){"recording", &init,  &start,
                                                        &stop,       &state, &finalize};
}
#else
namespace {
template <class D>
abi::Result dropped(void*, void** handle, D*) {
  *handle = nullptr;
  return abi::kSuccess;
}
template <int version>
abi::Result said(void**, std::uint64_t, int*, const char*, int, int, int, abi::Logger) {
  std::fprintf(record.file(), "table v%d\n", version);
  return abi::kSuccess;
}
abi::Result said_v4(void**, int*, const char*, std::uint64_t, int, int, int, abi::Logger) {
  std::fprintf(record.file(), "table v4\n");
  return abi::kSuccess;
}
}  // namespace
extern "C" {
[[gnu::visibility("default")]] extern abi::TableV4 ncclProfiler_v4;
[[gnu::visibility("default")]] extern abi::TableV5 ncclProfiler_v5;
[[gnu::visibility("default")]] extern abi::TableV6 ncclProfiler_v6;
[[gnu::visibility("default")]] extern abi::TableV7 ncclProfiler_v7;
abi::TableV4 ncclProfiler_v4{"all", &said_v4, &dropped<abi::DescriptorV4>,
                             &stop, &state,   &finalize};
abi::TableV5 ncclProfiler_v5{"all", &said<5>, &dropped<abi::DescriptorV5>,
                             &stop, &state,   &finalize};
abi::TableV6 ncclProfiler_v6{"all", &said<6>, &dropped<abi::DescriptorV6>,
                             &stop, &state,   &finalize};
abi::TableV7 ncclProfiler_v7{"all", &said<7>, &dropped<abi::DescriptorV7>,
                             &stop, &state,   &finalize};
}
#endif
