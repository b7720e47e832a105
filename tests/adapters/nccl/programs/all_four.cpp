// What a process calls that has its NCCL heard four times over: a library that calls it by the
// wrapper's header and by its symbols, over the stand-in for NCCL, which loads its profiler plugin
// and tells it of each operation as NCCL does. The process group above is up to who loads this.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <string_view>
#include <vector>

#include "adapters/sources/nccl/nccl.hpp"
#include "adapters/sources/nccl/nccl_profiler_abi.hpp"

#include "tests/adapters/nccl/fake/fake_nccl.hpp"
#include "tests/adapters/nccl/programs/front_end.hpp"

namespace ringmain::nccl {
extern "C" {
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclAllGather(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclBcast(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
}
}  // namespace ringmain::nccl

namespace {

namespace nccl = ringmain::nccl;
namespace abi = ringmain::nccl::abi;

/// NCCL's front end: what it tells the plugin of an operation, in the call, and of its kernel.
class Front {
 public:
  bool open(const char* group, int rank, int ranks) {
    const char* const named = std::getenv("NCCL_PROFILER_PLUGIN");
    if (named == nullptr) return true;  // as NCCL goes on without one
    void* const library = ::dlopen(named, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    table_ = static_cast<abi::TableV6*>(::dlsym(library, abi::symbol_of(6)));
    return table_ != nullptr &&
           table_->init(&context_, 0xabc, &mask_, group, 1, ranks, rank, nullptr) == abi::kSuccess;
  }
  /// In the call. Of a broadcast NCCL tells no more from 2.29 on.
  void call(std::string_view name) {
    const char* const func = name == "ncclAllReduce"   ? "AllReduce"
                             : name == "ncclAllGather" ? "AllGather"
                             : name == "ncclBroadcast" ? "Broadcast"
                                                       : nullptr;
    if (func == nullptr) return;
    auto d = nccl::descriptor(abi::kCollApi, nullptr);
    d.coll_api.func = func;
    d.coll_api.datatype = "ncclFloat32";
    d.coll_api.count = 4;
    void* const call = start(d);
    stop(call);
    if (name == "ncclBroadcast") return;
    calls_.push_back({func, call});
    if (depth == 0) enqueue();
  }
  /// Where the thread's outermost group ends.
  void enqueue() {
    for (const Call& one : calls_) {
      auto d = nccl::descriptor(abi::kColl, one.handle);
      d.coll.seq_number = sequence_++;
      d.coll.func = one.func;
      d.coll.datatype = "ncclFloat32";
      d.coll.count = 4;
      d.coll.n_channels = 1;
      void* const operation = start(d);
      stop(operation);
      operations_.push_back(operation);
    }
    calls_.clear();
  }
  /// The GPU has done them.
  int run_kernels() {
    for (void* const operation : operations_) {
      auto d = nccl::descriptor(abi::kKernelCh, operation);
      d.kernel_ch.p_timer = ++gpu_clock_;
      void* const kernel = start(d);
      abi::StateArgs args{};
      args.kernel_ch.p_timer = ++gpu_clock_;
      if (kernel != nullptr) (void)table_->record_event_state(kernel, abi::kKernelChStop, &args);
      stop(kernel);
    }
    const auto count = static_cast<int>(operations_.size());
    operations_.clear();
    return count;
  }
  void close() {
    if (table_ != nullptr) (void)table_->finalize(context_);
  }

  int depth = 0;

 private:
  struct Call {
    const char* func;
    void* handle;
  };
  void* start(abi::DescriptorV6& what) {
    void* handle = nullptr;
    if (table_ != nullptr) (void)table_->start_event(context_, &handle, &what);
    return handle;
  }
  void stop(void* handle) {
    if (handle != nullptr) (void)table_->stop_event(handle);
  }

  abi::TableV6* table_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
  std::uint64_t sequence_ = 0, gpu_clock_ = 1000;
  std::vector<Call> calls_;
  std::vector<void*> operations_;
};
Front front;
nccl::ncclComm_t comm = nullptr;
float from[4], to[16];

void in_nccl(const char* name, const void*) {
  front.call(name);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

/// 0: made, with the plugin that the run has named, if any.
int four_open(const char* group, int rank, int ranks) {
  nccl::ncclConfig_t config;
  config.commName = group;
  const nccl::ncclUniqueId id{};
  if (nccl::ncclCommInitRankConfig(&comm, ranks, id, rank, &config) != nccl::ncclSuccess) return 1;
  if (!front.open(group, rank, ranks)) return 2;
  ringmain::fake_nccl::fake_nccl_inside(&in_nccl);
  return 0;
}
int four_call(const char* op, int by_header) {
  const std::string_view name = op;
  const auto stream = reinterpret_cast<nccl::cudaStream_t>(std::uintptr_t{0x57});
  if (name == "all_reduce") {
    return by_header != 0
               ? nccl::AllReduce(from, to, 4, nccl::ncclFloat32, nccl::ncclSum, comm, stream)
               : nccl::ncclAllReduce(from, to, 4, nccl::ncclFloat32, nccl::ncclSum, comm, stream);
  }
  if (name == "all_gather") {
    return by_header != 0 ? nccl::AllGather(from, to, 4, nccl::ncclFloat32, comm, stream)
                          : nccl::ncclAllGather(from, to, 4, nccl::ncclFloat32, comm, stream);
  }
  return by_header != 0 ? nccl::Bcast(from, 4, nccl::ncclFloat32, 0, comm, stream)
                        : nccl::ncclBcast(from, 4, nccl::ncclFloat32, 0, comm, stream);
}
int four_group_start(int by_header) {
  ++front.depth;
  return by_header != 0 ? nccl::GroupStart() : nccl::ncclGroupStart();
}
/// What the group held is enqueued, as NCCL does in its own GroupEnd.
int four_group_end(int by_header) {
  if (--front.depth == 0) front.enqueue();
  return by_header != 0 ? nccl::GroupEnd() : nccl::ncclGroupEnd();
}
/// How many.
int four_run_kernels() {
  return front.run_kernels();
}
int four_close() {
  ringmain::fake_nccl::fake_nccl_inside(nullptr);
  front.close();
  return nccl::ncclCommDestroy(comm);
}

#pragma GCC visibility pop
}
